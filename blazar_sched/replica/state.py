# SPDX-License-Identifier: Apache-2.0
"""A replica: the ledger's nouns and their timeline index at one revision.

One writer; readers see each change whole, because the index takes a batch in
one call. No I/O: see replica.puller for how records come.
"""

from collections import defaultdict
from collections.abc import Iterable
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
from blazar_sched.replica import record

Change = tuple[Any, ...]


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
        # (end, uuid) of bounded instances, the next to end first.
        self._ends: list[tuple[int, str]] = []
        self._overdue: set[str] = set()

    def apply(self, revision: int, records: Iterable[record.Record]) -> None:
        """Bring the replica to `revision` by the records since its own.

        Nothing is changed if a record cannot be used.

        :raises ValueError: if a record is malformed or names what is unknown
        """
        image: dict[tuple[str, str], record.Noun | None] = {}
        for kind, key, data in records:
            if kind not in self._nouns:
                raise ValueError(f'unknown kind of record {kind!r}')
            image[kind, key] = data and record.decode(kind, data)
        self.index.apply(self._changes(image), force=True)
        for (kind, key), noun in image.items():
            self._keep(kind, key, noun)
        self.revision = revision

    def advance(self, now: int) -> None:
        """Count instances that are past their end as unbounded."""
        while self._ends and self._ends[0][0] <= now:
            end, uuid = heapq.heappop(self._ends)
            noun = self.instances.get(uuid)
            if noun is None or noun.end != end or uuid in self._overdue:
                continue
            changes = self._remove_instance(uuid)
            self._overdue.add(uuid)
            self.index.apply(changes + self._add_instance(noun), force=True)

    def _changes(
        self, image: Mapping[tuple[str, str], record.Noun | None]
    ) -> list[Change]:
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
                        _add_allocation(cast(allocation.Allocation, noun))
                    )
            elif kind == record.INSTANCE:
                removes += self._remove_instance(key)
                if noun is not None:
                    adds += self._add_instance(
                        cast(instance.Instance, noun), known=False
                    )
        return capacities + removes + adds + drops

    def _keep(self, kind: str, key: str, noun: record.Noun | None) -> None:
        old = self._nouns[kind].pop(key, None)
        if noun is not None:
            self._nouns[kind][key] = noun
        if kind == record.ALLOCATION:
            self._keep_allocation(old, cast(allocation.Allocation, noun))
        elif kind == record.INSTANCE:
            self._keep_instance(key, old, cast(instance.Instance, noun))

    def _keep_allocation(
        self,
        old: allocation.Allocation | None,
        new: allocation.Allocation | None,
    ) -> None:
        if old is not None:
            held = self.by_reservation[old.reservation_id]
            held.pop(old.host, None)
            if not held:
                del self.by_reservation[old.reservation_id]
        if new is not None:
            self.by_reservation[new.reservation_id][new.host] = new

    def _keep_instance(
        self,
        uuid: str,
        old: instance.Instance | None,
        new: instance.Instance | None,
    ) -> None:
        self._overdue.discard(uuid)
        if old is not None and old.reservation_id is not None:
            self.bound[old.reservation_id].discard(uuid)
            if not self.bound[old.reservation_id]:
                del self.bound[old.reservation_id]
        if new is None:
            return
        if new.reservation_id is not None:
            self.bound[new.reservation_id].add(uuid)
        if new.end != window.FOREVER:
            heapq.heappush(self._ends, (new.end, uuid))

    def _add_instance(
        self, noun: instance.Instance, known: bool = True
    ) -> list[Change]:
        overdue = known and noun.uuid in self._overdue
        step = self.accounting.step(noun, overdue)
        amounts = _amounts(noun.amounts)
        if step is None or not any(amounts):
            return []
        start, end, sign = step
        amounts = _amounts(noun.amounts, sign)
        return [
            ('add', noun.uuid, noun.uuid, noun.host, start, end, amounts,
             False)
        ]

    def _remove_instance(self, uuid: str) -> list[Change]:
        old = self.instances.get(uuid)
        if old is None or not self._add_instance(old):
            return []
        return [('remove', uuid)]


def _add_allocation(noun: allocation.Allocation) -> Change:
    return (
        'add', noun.id, noun.reservation_id, noun.host, noun.start, noun.end,
        _amounts(noun.amounts), noun.whole,
    )
