# SPDX-License-Identifier: Apache-2.0
"""A replica: the ledger's nouns and their timeline index at one revision.

One writer; readers see each change whole, because the index takes a batch in
one call. Of the indexes of other resource classes, which follow one by one,
they see what is added before and what is removed after. No I/O: see
replica.puller for how records come.
"""

from collections import Counter
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
import heapq
import itertools
from typing import Any
from typing import cast

from blazar_sched import ext
from blazar_sched.domain import allocation
from blazar_sched.domain import catalog
from blazar_sched.domain import host
from blazar_sched.domain import instance
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.ext import packed
from blazar_sched.replica import accounting
from blazar_sched.replica import extra
from blazar_sched.replica import packing
from blazar_sched.replica import record

Change = extra.Change
# Nouns by (kind, key), None for what is gone.
Image = dict[tuple[str, str], record.Noun | None]


class Replica:
    """The nouns by key, and the indexes made of them.

    Allocations, of which there are very many, are in the indexes alone:
    `index` is of RESOURCE_CLASSES, `extra` has one for each other class.

    :param accounting_: what instances count for; see replica.accounting
    """

    def __init__(
        self, accounting_: accounting.Accounting, revision: int = 0
    ) -> None:
        self.accounting = accounting_
        self.revision = revision
        self.hosts: dict[str, host.Host] = {}
        self.reservations: dict[str, record.Reservation] = {}
        self.instances: dict[str, instance.Instance] = {}
        # The hosts that are held so, and those with a policy of their own.
        self.dedicated: set[str] = set()
        self.with_policy: set[str] = set()
        # The magnetic reservations that are open to a project.
        self.magnetic: dict[str | None, set[str]] = defaultdict(set)
        # How much memory preemptible instances have, by host.
        self.preemptible_mb: Counter[str] = Counter()
        # A reservation's bound instances.
        self.bound: dict[str, set[str]] = defaultdict(set)
        # The instances with amounts of other resource classes, by host.
        self._with_others: dict[str, set[str]] = defaultdict(set)
        self.index = ext.TimelineIndex(inventory.RESOURCE_CLASSES)
        self.extra = extra.Extra(self.hosts)
        self.catalog = catalog.Catalog(self.index, self.hosts)
        self._nouns: dict[str, dict[str, Any]] = {
            record.HOST: self.hosts,
            record.RESERVATION: self.reservations,
            record.INSTANCE: self.instances,
        }
        # The last time that advance() was told, and by it: the bounded
        # instances that are overdue, the others as (end, uuid), next first.
        self._now = 0
        self._overdue: set[str] = set()
        self._ends: list[tuple[int, str]] = []

    def apply(self, revision: int, records: Iterable[record.Record]) -> None:
        """Bring the replica to `revision` by the records since its own.

        Nothing is changed if a record cannot be used.

        :raises ValueError: if a record is malformed or names what is unknown
        """
        image = self._decode(records)
        batch = extra.Batch()
        changes = self._changes(image, batch)
        with self.extra.changing(batch):
            self.index.apply(changes, force=True)
        self._keep_all(revision, image)

    def load(
        self,
        revision: int,
        records: Iterable[record.Record],
        allocations: Iterable[packing.Allocations] = (),
    ) -> set[str]:
        """Fill a new replica with a full copy, in bulk.

        The records are read to their end, then the allocations piece by
        piece. Nothing is changed if anything of it cannot be used.

        :returns: the ids of what is on a host that the copy lacks, and so was
            left out. Pages read at different times may have such, and the
            changes in between tell of it: see Puller.
        :raises ValueError: if a record is malformed
        """
        image = self._decode(records)
        batch = extra.Batch()
        changes = self._changes(image, batch)
        capacity = {c[1]: c[2] for c in changes if c[0] == 'capacity'}
        row_of = {host: row for row, host in enumerate(capacity)}
        left_out: set[str] = set()
        others = extra.Extra(self.hosts)

        def placed(columns: packed.Columns) -> packing.Part:
            part, without_host = packing.placed(columns, row_of)
            left_out.update(without_host)
            return part

        def parts() -> Iterator[packing.Part]:
            adds = [c for c in changes if c[0] == 'add']
            for each in allocations:
                if isinstance(each, allocation.Allocation):
                    adds += _add_allocation(each, batch)
                else:
                    yield placed(each)
            yield placed(
                packing.columns(*packing.transposed(c[1:] for c in adds))
            )
            left_out.update(others.load(batch))

        self.index.load_parts(
            list(capacity),
            list(itertools.chain.from_iterable(capacity.values())),
            parts(),
        )
        self.extra = others
        self._keep_all(revision, image)
        return left_out

    def advance(self, now: int) -> None:
        """Count instances that are past their end as unbounded.

        A clock that is set back changes nothing. O(1) if nothing ended.
        """
        self._now = max(self._now, now)
        while self._ends and self._ends[0][0] <= self._now:
            end, uuid = heapq.heappop(self._ends)
            noun = self.instances.get(uuid)
            if noun is None or noun.end != end or uuid in self._overdue:
                continue
            batch = extra.Batch()
            changes = self._remove(uuid, batch)
            changes += self._add_instance(noun, batch)
            with self.extra.changing(batch):
                self.index.apply(changes, force=True)
            self._overdue.add(uuid)
        self.index.advance(now)

    def held(self, reservation_id: str) -> dict[str, allocation.Allocation]:
        """Return a reservation's allocations by host.

        An amount of 0 is left out of them. O(their number).
        """
        found: dict[str, allocation.Allocation] = {}
        all_amounts: dict[str, dict[str, int]] = defaultdict(dict)
        for index in (self.index, *tuple(self.extra.values())):
            for id_, on, start, end, amounts, whole in index.held(
                reservation_id
            ):
                own = all_amounts[on]
                own.update(
                    (c, amount)
                    for c, amount in zip(
                        index.resource_classes, amounts, strict=True
                    )
                    if amount
                )
                if on not in found:
                    found[on] = allocation.Allocation(
                        id_, reservation_id, on, start, end, own, whole
                    )
        return found

    def counted(
        self, noun: instance.Instance
    ) -> Iterator[tuple[ext.TimelineIndex, list[int]]]:
        """Yield each index that an instance counts in, and its amounts there.

        What its host has none of it has from a provider below the host's own,
        which nobody can reserve.

        :raises KeyError: if its host is not known
        """
        has = self.hosts[noun.host].inventory
        others = (c for c in inventory.others(noun.amounts) if c in has)
        for index in (self.index, *map(self.extra.__getitem__, others)):
            yield index, [
                noun.amounts.get(c, 0) for c in index.resource_classes
            ]

    def entries(
        self, many: Iterable[allocation.Allocation]
    ) -> Iterator[tuple[ext.TimelineIndex, list[Change]]]:
        """Yield what adds allocations to which index."""
        batch = extra.Batch()
        yield self.index, [
            change for noun in many for change in _add_allocation(noun, batch)
        ]
        by_class: dict[str, list[Change]] = defaultdict(list)
        for name, change in batch.adds:
            by_class[name].append(change)
        for name, changes in by_class.items():
            yield self.extra[name], changes

    def items(self) -> Iterator[packing.Item]:
        """Yield what makes this replica anew: see replica.packing."""
        for nouns in self._nouns.values():
            for noun in nouns.values():
                yield record.encode(noun)
        wide = set(filter(self.extra.owns, self.reservations))
        for reservation_id in wide:
            yield from map(record.encode, self.held(reservation_id).values())
        yield from packing.texts(
            (held[0], reservation_id, *held[1:])
            for reservation_id in self.reservations
            if reservation_id not in wide
            for held in self.index.held(reservation_id)
        )

    def _decode(self, records: Iterable[record.Record]) -> Image:
        image: Image = {}
        for kind, key, data in records:
            if kind not in record.KINDS:
                raise ValueError(f'unknown kind of record {kind!r}')
            if data is None:
                image[kind, key] = None
                continue
            noun = record.decode(kind, data)
            own_key = record.key_of(noun)
            if own_key != key:
                raise ValueError(f'the {kind} {key!r} has another key')
            image[kind, own_key] = noun
        return image

    def _changes(self, image: Image, batch: extra.Batch) -> list[Change]:
        """The index's changes, in an order that never lacks a host.

        :param batch: takes those of the other indexes
        """
        # Known first: they say which of an instance's amounts count.
        batch.hosts = {
            key: cast(host.Host | None, noun)
            for (kind, key), noun in image.items()
            if kind == record.HOST
        }
        capacities: list[Change] = [
            ('capacity', uuid, self.accounting.capacity(new))
            for uuid, new in batch.hosts.items()
            if new is not None
        ]
        drops: list[Change] = [
            ('drop', uuid)
            for uuid, new in batch.hosts.items()
            if new is None and uuid in self.hosts
        ]
        removes: list[Change] = []
        adds: list[Change] = []
        for (kind, key), noun in image.items():
            if kind == record.ALLOCATION:
                removes += self._remove(key, batch)
                if noun is not None:
                    adds += _add_allocation(
                        cast(allocation.Allocation, noun), batch
                    )
            elif kind == record.INSTANCE:
                removes += self._remove(key, batch)
                if noun is not None:
                    adds += self._add_instance(
                        cast(instance.Instance, noun), batch
                    )
        for uuid in self._counted_anew(batch):
            if (record.INSTANCE, uuid) not in image:
                batch.removes.append(uuid)
                self._add_others(self.instances[uuid], batch)
        return capacities + removes + adds + drops

    def _keep_all(self, revision: int, image: Image) -> None:
        for (kind, key), noun in image.items():
            self._keep(kind, key, noun)
        self.extra.prune()
        self.revision = revision

    def _keep(self, kind: str, key: str, noun: record.Noun | None) -> None:
        if kind == record.ALLOCATION:
            return
        # In place: a reader must not find what only changes gone meanwhile.
        old = self._nouns[kind].get(key)
        if noun is not None:
            self._nouns[kind][key] = noun
        else:
            self._nouns[kind].pop(key, None)
        if kind == record.HOST:
            self._keep_host(key, cast(host.Host, noun))
        elif kind == record.INSTANCE:
            self._keep_instance(key, old, cast(instance.Instance, noun))
        elif kind == record.RESERVATION:
            self._keep_magnetic(key, old, cast(record.Reservation, noun))

    def _keep_host(self, uuid: str, new: host.Host | None) -> None:
        self.catalog.forget()
        if new is not None and new.hold == host.DEDICATED:
            self.dedicated.add(uuid)
        else:
            self.dedicated.discard(uuid)
        if new is not None and new.unbounded is not None:
            self.with_policy.add(uuid)
        else:
            self.with_policy.discard(uuid)

    def _keep_magnetic(
        self,
        id_: str,
        old: record.Reservation | None,
        new: record.Reservation | None,
    ) -> None:
        before, after = _drawn_projects(old), _drawn_projects(new)
        for project_id in after - before:
            self.magnetic[project_id].add(id_)
        for project_id in before - after:
            self.magnetic[project_id].discard(id_)

    def _keep_instance(
        self,
        uuid: str,
        old: instance.Instance | None,
        new: instance.Instance | None,
    ) -> None:
        self._overdue.discard(uuid)
        for noun, sign in ((old, -1), (new, 1)):
            if noun is not None and noun.preemptible:
                self.preemptible_mb[noun.host] += (
                    sign * noun.amounts.get(inventory.MEMORY_MB, 0)
                )
        _move(
            self.bound,
            uuid,
            None if old is None else old.reservation_id,
            None if new is None else new.reservation_id,
        )
        _move(
            self._with_others,
            uuid,
            _host_of_others(old),
            _host_of_others(new),
        )
        if new is None:
            return
        if new.end <= self._now:
            self._overdue.add(uuid)
        elif new.end != window.FOREVER:
            heapq.heappush(self._ends, (new.end, uuid))

    def _add_instance(
        self, noun: instance.Instance, batch: extra.Batch
    ) -> list[Change]:
        overdue = noun.end <= self._now
        self._add_others(noun, batch)
        if not any(packing.amounts_of(noun.amounts)):
            return []
        step = self.accounting.step(noun, overdue)
        if step is None:
            return []
        start, end, sign = step
        return [
            ('add', noun.uuid, noun.uuid, noun.host, start, end,
             packing.amounts_of(noun.amounts, sign), False)
        ]

    def _add_others(
        self, noun: instance.Instance, batch: extra.Batch
    ) -> None:
        """What HostState does not know of is added up for everybody.

        But for what its host has none of: that it has from a provider below
        the host's own, which nobody can reserve.
        """
        others = inventory.others(noun.amounts)
        overdue = noun.end <= self._now
        step = others and accounting.LedgerAccounting.step(noun, overdue)
        if not step:
            return
        on = batch.hosts.get(noun.host, self.hosts.get(noun.host))
        if on is not None:
            others = {c: n for c, n in others.items() if c in on.inventory}
        start, end, _ = step
        batch.add(noun.uuid, noun.uuid, noun.host, start, end, others)

    def _counted_anew(self, batch: extra.Batch) -> Iterator[str]:
        """Yield the instances on hosts that get or lose resource classes."""
        for uuid, new in batch.hosts.items():
            if new is None or uuid not in self._with_others:
                continue
            old = self.hosts.get(uuid)
            if old is None or (
                inventory.others(old.inventory).keys()
                != inventory.others(new.inventory).keys()
            ):
                yield from self._with_others[uuid]

    def _remove(self, id_: str, batch: extra.Batch) -> list[Change]:
        """Take an allocation or an instance out of the index, if it is in."""
        batch.removes.append(id_)
        return [('remove', id_)] if id_ in self.index else []


def _move(
    groups: dict[str, set[str]], uuid: str, was: str | None, now: str | None
) -> None:
    """Have a group hold what was in another; None is no group."""
    if now is not None:
        groups[now].add(uuid)
    if was is not None and was != now:
        groups[was].discard(uuid)
        if not groups[was]:
            del groups[was]


def _host_of_others(noun: instance.Instance | None) -> str | None:
    """Return an instance's host if it has amounts of other classes."""
    if noun is None or not inventory.others(noun.amounts):
        return None
    return noun.host


def _drawn_projects(noun: record.Reservation | None) -> set[str]:
    """Return the projects whose servers a reservation draws."""
    if noun is None or not noun.magnetic:
        return set()
    return {noun.project_id, *noun.projects}


def add_allocation(noun: allocation.Allocation) -> Change:
    return (
        'add', noun.id, noun.reservation_id, noun.host, noun.start, noun.end,
        packing.amounts_of(noun.amounts), noun.whole,
    )


def _add_allocation(
    noun: allocation.Allocation, batch: extra.Batch
) -> list[Change]:
    """Add an allocation to the index, and to those that `batch` is for."""
    before = len(batch.adds)
    batch.add(
        noun.id, noun.reservation_id, noun.host, noun.start, noun.end,
        noun.amounts,
    )
    change = add_allocation(noun)
    only_others = len(batch.adds) > before and not any(change[6])
    return [] if only_others else [change]
