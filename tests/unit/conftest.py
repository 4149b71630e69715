# SPDX-License-Identifier: Apache-2.0
"""A ledger in memory that speaks the wire format."""

import uuid

import pytest

from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica import batch
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import wire


class MemoryLedger:
    """A ledger that keeps all revisions, with the manager's responses."""

    def __init__(self, id_=None, revisions=()):
        self.id = id_ or str(uuid.uuid4())
        self.revisions = []
        self.image = {}
        # Revisions up to this one are pruned.
        self.pruned = 0
        for records in revisions:
            self._write(records)

    @property
    def newest(self):
        return len(self.revisions)

    def commit(self, *nouns, gone=()):
        """Write objects, and (kind, key) of deleted ones, as one revision."""
        records = [record.encode(noun) for noun in nouns]
        records += [(kind, key, None) for kind, key in gone]
        self._write(records)

    def _write(self, records):
        self.revisions.append(records)
        record.merge(self.image, records)

    def at(self, revision):
        """Return the ledger as it was at a revision."""
        return MemoryLedger(self.id, self.revisions[:revision])

    def items(self):
        return items_of((*key, data) for key, data in self.image.items())

    def changes(self, since, limit):
        if not self.pruned <= since <= self.newest:
            return wire.changes_page(self.id, since, None, [], self.newest)
        records, revision = [], since
        while revision < self.newest and (
            not records or len(records) + len(self.revisions[revision])
            <= limit
        ):
            records += self.revisions[revision]
            revision += 1
        return wire.changes_page(
            self.id, since, revision, records, self.newest
        )

    def snapshot(self, after, limit):
        keys = sorted(self.image, key=place_of)
        if after is not None:
            known = place_of(after.split('/', 1))
            keys = [key for key in keys if place_of(key) > known]
        page, rest = keys[:limit], keys[limit:]
        return wire.snapshot_page(
            self.id, self.newest, after,
            items_of((*key, self.image[key]) for key in page),
            '/'.join(page[-1]) if rest else None,
        )


def place_of(key):
    """Return the sort key of a record: allocations come last."""
    return key[0] == record.ALLOCATION, *key


def items_of(records):
    """Return records as the items of a full copy."""
    entries, others = [], []
    for kind, key, data in records:
        if kind != record.ALLOCATION:
            yield kind, key, data
            continue
        noun = record.decode(kind, data)
        if inventory.others(noun.amounts):
            others.append((kind, key, data))
        else:
            _, *entry = batch.add_allocation(noun)
            entries.append(entry)
    yield from packing.texts(entries)
    yield from others


def records_of(items):
    """Return the records of the items, the reverse of `items_of`."""
    records, allocations = packing.split(items)
    yield from records
    for each in allocations:
        if isinstance(each, Allocation):
            yield record.encode(each)
            continue
        hosts, _, ids, owners, rows, starts, ends, amounts, whole = each
        for n, id_ in enumerate(ids):
            own = amounts[n * packing.WIDTH:(n + 1) * packing.WIDTH]
            yield record.encode(Allocation(
                id_, owners[n], hosts[rows[n]], starts[n], ends[n],
                {
                    c: amount for c, amount in zip(
                        inventory.RESOURCE_CLASSES, own, strict=True
                    ) if amount
                },
                bool(whole[n])
            ))


def amounts(vcpus, gpus):
    held = {inventory.VCPU: vcpus, 'CUSTOM_GPU': gpus}
    return {name: amount for name, amount in held.items() if amount}


class Make:
    """Objects with defaults for the fields that a test does not name."""

    @staticmethod
    def host(uuid, vcpus=8, gpus=0, **fields):
        gpu = {'CUSTOM_GPU': Inventory(gpus)} if gpus else {}
        return Host(
            uuid=uuid, id=uuid, hypervisor_hostname=uuid,
            inventory={
                inventory.VCPU: Inventory(vcpus),
                inventory.MEMORY_MB: Inventory(1 << 20),
                inventory.DISK_GB: Inventory(1 << 20), **gpu,
            },
            **fields
        )

    @staticmethod
    def reservation(id, start=100, end=200, project_id='p1', slot=None):
        return record.Reservation(
            id=id, lease_id=f'lease-{id}', project_id=project_id,
            resource_type='virtual:instance' if slot else 'physical:host',
            start=start, end=end, slot=slot,
        )

    @staticmethod
    def allocation(
        id, host, start=100, end=200, vcpus=0, reservation_id='r1', gpus=0
    ):
        """Return an allocation, of the whole host without `vcpus` and `gpus`.
        """
        return Allocation(
            id=id, reservation_id=reservation_id, host=host, start=start,
            end=end, amounts=amounts(vcpus, gpus), whole=not vcpus and not gpus
        )

    @staticmethod
    def instance(uuid, host, vcpus=1, gpus=0, **fields):
        return Instance(
            uuid=uuid, host=host, project_id='p1',
            amounts=amounts(vcpus, gpus), **fields,
        )


@pytest.fixture(scope='session')
def make():
    return Make


@pytest.fixture(scope='session')
def memory_ledger():
    return MemoryLedger


@pytest.fixture(scope='session')
def as_items():
    return items_of


@pytest.fixture(scope='session')
def as_records():
    return records_of


@pytest.fixture
def ledger(memory_ledger):
    return memory_ledger()
