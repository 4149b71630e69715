# SPDX-License-Identifier: Apache-2.0
"""A replica of the ledger: entities and timeline indexes at one revision.

A replica has one writer, and any number of readers: see replica.indexes. This
module does no I/O: see replica.puller for the source of the records.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import itertools
from typing import cast
from typing import Protocol

from blazar_sched import ext
from blazar_sched.domain import duration
from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.group_limit import GroupLimit
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.settings import Settings
from blazar_sched.domain.settings import UNTOLD
from blazar_sched.replica import accounting
from blazar_sched.replica import left_out
from blazar_sched.replica import packing
from blazar_sched.replica import present
from blazar_sched.replica import record
from blazar_sched.replica.batch import Batch
from blazar_sched.replica.batch import entity_of
from blazar_sched.replica.catalog import Catalog
from blazar_sched.replica.entities import Entities
from blazar_sched.replica.entities import Image
from blazar_sched.replica.indexes import Indexes

# Entries that the index takes in one call, so that no call holds the GIL for
# long.
CHUNK = 1000


class Put(Protocol):
    """A function that applies records on trial."""

    def __call__(
        self, records: Iterable[record.Record], leave_out: bool = False
    ) -> None: ...


class Replica(Entities):
    """The entities of the ledger by key, and the indexes built from them.

    :param accounting_: how instances are counted; see replica.accounting
    :param overcommit: whether reservations may overcommit hosts
    :param relocating: whether instances may be relocated, so that the demand
        for all hosts together is counted; it is also counted where `settings`
        or a host of its own have this policy
    :param group_limits: the limits on what is reserved on groups of hosts
    :param settings: what a manager has told to nova-scheduler
    """

    def __init__(
        self, accounting_: accounting.Accounting, revision: int = 0,
        overcommit: bool = True, relocating: bool = False,
        group_limits: Iterable[GroupLimit] = (), settings: Settings = UNTOLD,
    ) -> None:
        super().__init__()
        self._relocating = relocating
        self.settings = settings
        self.accounting = accounting_
        self.revision = revision
        self.indexes = Indexes(
            self.hosts, accounting_, overcommit, group_limits
        )
        self.present = present.Present(self.hosts)
        self.left_out = left_out.LeftOut()
        self.catalog = Catalog(self.indexes.main, self.hosts)
        # The reservations whose use may have changed; None for no reservation.
        self._drawn_on: set[str | None] = set()

    def use(self, settings: Settings) -> None:
        """Decide by the settings that a manager has told."""
        if settings != self.settings:
            self.settings = settings
            self._settle()

    def apply(
        self, revision: int, records: Iterable[record.Record],
        leave_out: bool = False,
    ) -> None:
        """Apply the records between the replica's revision and `revision`.

        Nothing is changed if a record is refused.

        :param leave_out: continue without the records that the indexes
            refuse, and close the hosts of these records: see replica.left_out
        :raises ValueError: if a record is malformed or refers to an unknown
            entity
        """
        image = self._decode(records)
        if leave_out:
            self._use_what_can_be(image)
        else:
            self._use(image)
        self._settle()
        self.revision = revision

    def check(self, records: Iterable[record.Record]) -> None:
        """Refuse the records that `apply` would refuse, but apply none.

        :raises ValueError: as `apply` does
        """
        self.indexes.check(self._batch(self._decode(records)))

    def load(
        self, revision: int, records: Iterable[record.Record],
        allocations: Iterable[packing.Allocations] = (),
        leave_out: bool = False,
    ) -> set[str]:
        """Fill a new replica with a full copy of the ledger, in bulk.

        The records are read to their end, then the allocations in pieces.
        Nothing is changed if a record or an allocation is refused.

        :param leave_out: continue without the records and allocations that
            the indexes refuse, and close their hosts: see replica.left_out.
            This is slower.
        :returns: the ids of the instances and allocations that were left out
            because the copy lacks their host. Pages that were read at
            different times may have such entities, and the changes between
            those times name these entities: see Puller.
        :raises ValueError: if a record is malformed
        """
        if leave_out:
            missing = self._load_what_can_be(records, allocations)
        else:
            missing = self._load_all(records, allocations)
        self.indexes.start_groups(self.reservations)
        self._settle()
        self.revision = revision
        return missing

    def _load_all(
        self, records: Iterable[record.Record],
        allocations: Iterable[packing.Allocations],
    ) -> set[str]:
        image = self._decode(records)
        missing = {
            entity_of(id_) for id_ in self.indexes.load(
                self._batch(image), allocations
            )
        }
        self._keep_all(image)
        for instance in self.instances.values():
            self.present.add(instance)
        return missing

    def _load_what_can_be(
        self, records: Iterable[record.Record],
        allocations: Iterable[packing.Allocations],
    ) -> set[str]:
        hosts: list[record.Record] = []
        others: list[record.Record] = []
        for each in records:
            (hosts if each[0] == record.HOST else others).append(each)
        self._use_what_can_be(self._decode(hosts))
        missing: set[str] = set()

        def there() -> Iterator[record.Record]:
            for each in itertools.chain(others, _records_of(allocations)):
                host = left_out.host_of(each)
                if host is None or host in self.hosts:
                    yield each
                else:
                    missing.add(each[1])

        those = there()
        while chunk := list(itertools.islice(those, CHUNK)):
            self._use_what_can_be(self._decode(chunk))
        return missing

    def advance(self, now: int) -> None:
        """Count the instances that are past their end as unbounded.

        A clock that is set back changes nothing. O(1) if no instance has
        ended.
        """
        for instance in self.due(now):
            self._drawn_on.add(instance.reservation_id)
            batch = Batch(self.hosts)
            batch.remove_instance(instance.uuid)
            batch.add_instance(instance, self.accounting, overdue=True)
            try:
                self.indexes.apply(batch)
            except ext.TimelineError as e:
                self._leave_out([instance], e)
                self._settle()
        self._count_overdrawn()
        self.indexes.main.advance(now)

    @contextlib.contextmanager
    def changing(self) -> Iterator[Put]:
        """Apply records on trial, and undo that after the block.

        The block is given a function that applies records as `apply` does.
        """
        before: dict[record.Key, record.Record] = {}

        def put(
            records: Iterable[record.Record], leave_out: bool = False
        ) -> None:
            changes = list(records)
            for each in self._present_records(changes):
                before.setdefault(each[:2], each)
            self.apply(self.revision, changes, leave_out)

        try:
            yield put
        finally:
            # An empty change would touch the indexes, too.
            if before:
                self.apply(self.revision, before.values(), leave_out=True)

    def _present_records(
        self, changes: Iterable[record.Record]
    ) -> Iterator[record.Record]:
        """Yield the records of the entities as they are before changes."""
        held: dict[str, dict[str, Allocation]] = {}
        for each in changes:
            kind, key, _ = each
            entity: record.Entity | None
            if kind == record.ALLOCATION:
                reservation_id = record.reservation_of(each)
                if reservation_id not in held:
                    held[reservation_id] = {
                        a.id: a for a in self.indexes.allocations(
                            reservation_id
                        ).values()
                    }
                entity = held[reservation_id].get(key)
            else:
                entity = self.entity(kind, key)
            if (kind, key) in self.left_out:
                yield self.left_out.item((kind, key))
            elif entity is None:
                yield kind, key, None
            else:
                yield record.encode(entity)

    def items(self) -> Iterator[packing.Item]:
        """Yield the items that rebuild this replica: see replica.packing."""
        yield from map(record.encode, self.entities())
        yield from self.left_out.items()
        reservations = dict.fromkeys(
            [*self.reservations, *self.left_out.reservations]
        )
        wide = set(filter(self.indexes.extra.owns, reservations))
        for reservation_id in wide:
            allocations = self.indexes.allocations(reservation_id).values()
            yield from map(record.encode, allocations)
        yield from packing.texts(
            (held[0], reservation_id, *held[1:])
            for reservation_id in reservations
            if reservation_id not in wide
            for held in self.indexes.main.held(reservation_id)
        )

    def _decode(self, records: Iterable[record.Record]) -> Image:
        image: Image = {}
        for kind, key, data in records:
            if kind not in record.KINDS:
                # A newer version has more kinds.
                continue
            if data is None:
                image[kind, key] = None
                continue
            if self.left_out.take((kind, key, data)):
                image.pop((kind, key), None)
                continue
            entity = record.decode(kind, data)
            own_key = record.key_of(entity)
            if own_key != key:
                raise ValueError(f'the {kind} {key!r} has another key')
            image[kind, own_key] = entity
        return image

    def _batch(self, image: Image) -> Batch:
        """Return the changes of the indexes that bring them to an image."""
        # The hosts come first: their inventories say which amounts of an
        # instance count.
        batch = Batch(self.hosts, {
            key: cast(Host | None, entity)
            for (kind, key), entity in image.items()
            if kind == record.HOST
        })
        for (kind, key), entity in image.items():
            if kind == record.HOST and key in self.hosts:
                batch.open(self.hosts[key])
            if isinstance(entity, Host):
                batch.close(entity)
            if kind == record.ALLOCATION:
                batch.removes.append(key)
            elif kind == record.INSTANCE:
                batch.remove_instance(key)
            if isinstance(entity, Allocation):
                batch.add_allocation(entity)
            elif isinstance(entity, Instance):
                batch.add_instance(
                    entity, self.accounting, self.is_overdue(entity)
                )
        for instance in self._counted_anew(batch):
            of = record.INSTANCE, instance.uuid
            if of not in image and of not in self.left_out:
                batch.remove_instance(instance.uuid)
                batch.add_instance(
                    instance, self.accounting, self.is_overdue(instance)
                )
        return batch

    def _instance_changes(self, image: Image) -> Iterator[present.Change]:
        """Yield each instance record that changes, before and after."""
        for (kind, key), entity in image.items():
            if kind == record.INSTANCE:
                yield (
                    self.instances.get(key),
                    cast(Instance | None, entity),
                )

    def _use(self, image: Image) -> None:
        """Count and keep the entities of an image: all of them, or none.

        :raises TimelineError: if the indexes refuse an entity
        """
        self._count(image)
        for key in image:
            self.left_out.discard(key)

    def _count(self, image: Image) -> None:
        batch = self._batch(image)
        with self.present.changing(self._instance_changes(image)):
            self.indexes.apply(batch)
        self._keep_all(image)

    def _use_what_can_be(self, image: Image) -> None:
        """Count and keep the entities of an image that the indexes accept."""
        try:
            self._use(image)
        except ext.TimelineError:
            for key in sorted(image, key=lambda key: _turn(key, image[key])):
                self._use_alone(key, image[key])

    def _use_alone(
        self, key: record.Key, entity: record.Entity | None
    ) -> None:
        try:
            self._use({key: entity})
        except ext.TimelineError as e:
            if entity is None:
                self.left_out.add((*key, None), e)
            elif isinstance(entity, Host):
                # The host gets a resource class of which its instances have
                # amounts.
                self._leave_out(
                    [self.instances[uuid]
                     for uuid in self.with_others.get(entity.uuid, ())],
                    e,
                )
                self._use({key: entity})
            else:
                self._leave_out([entity], e)

    def _leave_out(
        self, entities: Sequence[record.Entity], error: ext.TimelineError
    ) -> None:
        """Close the hosts of entities, then stop counting the entities."""
        batch = Batch(self.hosts)
        for each in map(record.encode, entities):
            self.left_out.add(each, error)
            if each[0] == record.INSTANCE:
                batch.remove_instance(each[1])
            else:
                batch.removes.append(each[1])
        self._close_hosts()
        # The instances are on their hosts, though they cannot be counted.
        there: Image = {
            (record.INSTANCE, entity.uuid): entity
            for entity in entities
            if isinstance(entity, Instance)
        }
        with self.present.changing(self._instance_changes(there)):
            self.indexes.apply(batch)
        self._keep_all(there)

    def _settle(self) -> None:
        """Retry the records left out for now, and reopen hosts if possible."""
        for each in self.left_out.for_now():
            [(key, entity)] = self._decode([each]).items()
            self._use_alone(key, entity)
        for uuid in self.left_out.hosts:
            if uuid not in self.hosts:
                self._count({(record.HOST, uuid): _stub(uuid)})
        self._close_hosts()
        self._count_overdrawn()
        self.indexes.reopen(self.left_out.closed)
        self.indexes.extra.prune()
        if self.indexes.total is None and (
            self._relocating or self.with_relocation
            or self.settings.unbounded == duration.RELOCATE
        ):
            batch = Batch(self.hosts)
            for instance in self.instances.values():
                batch.add_instance(
                    instance, self.accounting, self.is_overdue(instance)
                )
            self.indexes.start_total(self.instances, batch.lifetimes)

    def _count_overdrawn(self) -> None:
        """Count what instances use beyond the reservations they draw on."""
        if not self._drawn_on:
            return

        def used(reservation_id: str) -> dict[str, list[int]]:
            found: dict[str, list[int]] = {}
            for uuid in self.bound.get(reservation_id, ()):
                each = self.instances[uuid]
                if each.preemptible or self.is_overdue(each):
                    continue
                amounts = packing.amounts_of(each.countable())
                total = found.get(each.host, (0,) * packing.WIDTH)
                found[each.host] = list(map(int.__add__, total, amounts))
            return found

        drawn_on, self._drawn_on = self._drawn_on, set()
        self.indexes.overdraw(
            (id_ for id_ in drawn_on if id_ is not None and id_ in self.bound),
            used,
        )

    def _close_hosts(self) -> None:
        """Close the hosts of the records left out: take each host whole."""
        self.indexes.close(self.left_out.closed & self.hosts.keys())

    def _keep_all(self, image: Image) -> None:
        for (kind, key), entity in image.items():
            for each in entity, self.instances.get(key):
                if isinstance(each, Allocation | Instance):
                    self._drawn_on.add(each.reservation_id)
            if kind == record.ALLOCATION:
                self._drawn_on.add(None)
        self.keep(image)
        for kind, key in image:
            if kind == record.HOST:
                self.catalog.forget()
                self.present.resize(key)

    def _counted_anew(self, batch: Batch) -> Iterator[Instance]:
        """Yield the instances on hosts whose resource classes change."""
        for uuid, new in batch.hosts.items():
            if new is None or uuid not in self.with_others:
                continue
            old = self.hosts.get(uuid)
            if old is None or (
                inventory.others(old.inventory).keys()
                != inventory.others(new.inventory).keys()
            ):
                for each in self.with_others[uuid]:
                    yield self.instances[each]


def _turn(key: record.Key, entity: record.Entity | None) -> int:
    """Return the rank at which an entity is used, while its host is known."""
    if key[0] == record.HOST:
        return 3 if entity is None else 0
    return 1 if entity is None else 2


def _stub(uuid: str) -> Host:
    """Return the placeholder for a host whose record cannot be used."""
    return Host(uuid, '', '', disabled=True)


def _records_of(
    allocations: Iterable[packing.Allocations]
) -> Iterator[record.Record]:
    for each in allocations:
        if isinstance(each, Allocation):
            yield record.encode(each)
        else:
            yield from map(record.encode, packing.allocations(each))
