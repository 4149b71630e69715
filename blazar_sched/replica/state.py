# SPDX-License-Identifier: Apache-2.0
"""A replica: the ledger's nouns and their timeline index at one revision.

One writer; readers see each change whole, because the index takes a batch in
one call. No I/O: see replica.puller for how records come.
"""

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import heapq
from typing import Any
from typing import cast

from blazar_sched import ext
from blazar_sched.domain import allocation
from blazar_sched.domain import host
from blazar_sched.domain import instance
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.replica import accounting
from blazar_sched.replica import packing
from blazar_sched.replica import record

Change = tuple[Any, ...]
# Nouns by (kind, key), None for what is gone.
Image = dict[tuple[str, str], record.Noun | None]


def _amounts(amounts: Mapping[str, int], sign: int = 1) -> tuple[int, ...]:
    return tuple(
        sign * amounts.get(c, 0) for c in inventory.RESOURCE_CLASSES
    )


class Replica:
    """The nouns by key, and the index made of them.

    :param accounting_: what instances count for; see replica.accounting
    """

    def __init__(
        self, accounting_: accounting.Accounting, revision: int = 0
    ) -> None:
        self.accounting = accounting_
        self.revision = revision
        self.hosts: dict[str, host.Host] = {}
        self.reservations: dict[str, record.Reservation] = {}
        self.allocations: dict[str, allocation.Allocation] = {}
        self.instances: dict[str, instance.Instance] = {}
        # The hosts that are held so, and those with a policy of their own.
        self.dedicated: set[str] = set()
        self.with_policy: set[str] = set()
        # Where a reservation's allocations and bound instances are.
        self.by_reservation: dict[str, dict[str, allocation.Allocation]] = (
            defaultdict(dict)
        )
        self.bound: dict[str, set[str]] = defaultdict(set)
        self.index = ext.TimelineIndex(inventory.RESOURCE_CLASSES)
        self._nouns: dict[str, dict[str, Any]] = {
            record.HOST: self.hosts,
            record.RESERVATION: self.reservations,
            record.ALLOCATION: self.allocations,
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
        self.index.apply(self._changes(image), force=True)
        self._keep_all(revision, image)

    def load(self, revision: int, records: Iterable[record.Record]) -> None:
        """Fill a new replica with a full copy, in bulk.

        Nothing is changed if a record cannot be used.

        :raises ValueError: if a record is malformed or names what is unknown
        """
        image = self._decode(records)
        changes = self._changes(image)
        self.index.load(
            *packing.columns(
                {c[1]: c[2] for c in changes if c[0] == 'capacity'},
                (c[1:] for c in changes if c[0] == 'add'),
            )
        )
        self._keep_all(revision, image)

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
            changes = self._remove_instance(uuid) + self._add_instance(noun)
            self.index.apply(changes, force=True)
            self._overdue.add(uuid)
        self.index.advance(now)

    def records(self) -> Iterator[record.Record]:
        """Yield the records that make this replica anew, hosts first."""
        for nouns in self._nouns.values():
            for noun in nouns.values():
                yield record.encode(noun)

    def _decode(self, records: Iterable[record.Record]) -> Image:
        image: Image = {}
        for kind, key, data in records:
            if kind not in self._nouns:
                raise ValueError(f'unknown kind of record {kind!r}')
            noun = None if data is None else record.decode(kind, data)
            if noun is not None and record.key_of(noun) != key:
                raise ValueError(f'the {kind} {key!r} has another key')
            image[kind, key] = noun
        return image

    def _changes(self, image: Image) -> list[Change]:
        """The index's changes, in an order that never lacks a host."""
        capacities: list[Change] = []
        removes: list[Change] = []
        adds: list[Change] = []
        drops: list[Change] = []
        for (kind, key), noun in image.items():
            if kind == record.HOST:
                if noun is not None:
                    new = cast(host.Host, noun)
                    capacities.append(
                        ('capacity', key, self.accounting.capacity(new))
                    )
                elif key in self.hosts:
                    drops.append(('drop', key))
            elif kind == record.ALLOCATION:
                if key in self.allocations:
                    removes.append(('remove', key))
                if noun is not None:
                    adds.append(
                        add_allocation(cast(allocation.Allocation, noun))
                    )
            elif kind == record.INSTANCE:
                removes += self._remove_instance(key)
                if noun is not None:
                    adds += self._add_instance(
                        cast(instance.Instance, noun)
                    )
        return capacities + removes + adds + drops

    def _keep_all(self, revision: int, image: Image) -> None:
        for (kind, key), noun in image.items():
            self._keep(kind, key, noun)
        self.revision = revision

    def _keep(self, kind: str, key: str, noun: record.Noun | None) -> None:
        # In place: a reader must not find what only changes gone meanwhile.
        old = self._nouns[kind].get(key)
        if noun is not None:
            self._nouns[kind][key] = noun
        else:
            self._nouns[kind].pop(key, None)
        if kind == record.HOST:
            self._keep_host(key, cast(host.Host, noun))
        elif kind == record.ALLOCATION:
            self._keep_allocation(old, cast(allocation.Allocation, noun))
        elif kind == record.INSTANCE:
            self._keep_instance(key, old, cast(instance.Instance, noun))

    def _keep_host(self, uuid: str, new: host.Host | None) -> None:
        if new is not None and new.hold == host.DEDICATED:
            self.dedicated.add(uuid)
        else:
            self.dedicated.discard(uuid)
        if new is not None and new.unbounded is not None:
            self.with_policy.add(uuid)
        else:
            self.with_policy.discard(uuid)

    def _keep_allocation(
        self,
        old: allocation.Allocation | None,
        new: allocation.Allocation | None,
    ) -> None:
        if new is not None:
            self.by_reservation[new.reservation_id][new.host] = new
        if old is not None:
            held = self.by_reservation[old.reservation_id]
            # This or the same batch may have put another one in its place.
            if held.get(old.host) is old:
                del held[old.host]
            if not held:
                del self.by_reservation[old.reservation_id]

    def _keep_instance(
        self,
        uuid: str,
        old: instance.Instance | None,
        new: instance.Instance | None,
    ) -> None:
        self._overdue.discard(uuid)
        was = None if old is None else old.reservation_id
        now = None if new is None else new.reservation_id
        if now is not None:
            self.bound[now].add(uuid)
        if was is not None and was != now:
            self.bound[was].discard(uuid)
            if not self.bound[was]:
                del self.bound[was]
        if new is None:
            return
        if new.end <= self._now:
            self._overdue.add(uuid)
        elif new.end != window.FOREVER:
            heapq.heappush(self._ends, (new.end, uuid))

    def _add_instance(self, noun: instance.Instance) -> list[Change]:
        step = self._step(noun, overdue=noun.end <= self._now)
        if step is None:
            return []
        start, end, sign = step
        return [
            ('add', noun.uuid, noun.uuid, noun.host, start, end,
             _amounts(noun.amounts, sign), False)
        ]

    def _remove_instance(self, uuid: str) -> list[Change]:
        old = self.instances.get(uuid)
        if old is None or not self._step(old, uuid in self._overdue):
            return []
        return [('remove', uuid)]

    def _step(
        self, noun: instance.Instance, overdue: bool
    ) -> accounting.Step | None:
        """What the instance counts for; None for nothing."""
        if not any(_amounts(noun.amounts)):
            return None
        return self.accounting.step(noun, overdue)


def add_allocation(noun: allocation.Allocation) -> Change:
    return (
        'add', noun.id, noun.reservation_id, noun.host, noun.start, noun.end,
        _amounts(noun.amounts), noun.whole,
    )
