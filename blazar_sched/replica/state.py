# SPDX-License-Identifier: Apache-2.0
"""A replica: the ledger's nouns and their timeline index at one revision.

One writer; readers see each change whole, because the index takes a batch in
one call. No I/O: see replica.puller for how records come.
"""

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
import heapq
import itertools
from typing import Any
from typing import cast

from blazar_sched import ext
from blazar_sched.domain import allocation
from blazar_sched.domain import host
from blazar_sched.domain import instance
from blazar_sched.domain import inventory
from blazar_sched.domain import placing
from blazar_sched.domain import window
from blazar_sched.ext import packed
from blazar_sched.replica import accounting
from blazar_sched.replica import packing
from blazar_sched.replica import record

Change = tuple[Any, ...]
# Nouns by (kind, key), None for what is gone.
Image = dict[tuple[str, str], record.Noun | None]


class Replica:
    """The nouns by key, and the index made of them.

    Allocations, of which there are very many, are in the index alone.

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
        # A reservation's bound instances.
        self.bound: dict[str, set[str]] = defaultdict(set)
        self.index = ext.TimelineIndex(inventory.RESOURCE_CLASSES)
        self.catalog = placing.Catalog(self.index, self.hosts)
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
        self.index.apply(self._changes(image), force=True)
        self._keep_all(revision, image)

    def load(
        self,
        revision: int,
        records: Iterable[record.Record],
        allocations: Iterable[packed.Columns] = (),
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
        changes = self._changes(image)
        capacity = {c[1]: c[2] for c in changes if c[0] == 'capacity'}
        row_of = {host: row for row, host in enumerate(capacity)}
        left_out: set[str] = set()

        def parts() -> Iterator[packing.Part]:
            own = packing.columns(
                *packing.transposed(c[1:] for c in changes if c[0] == 'add')
            )
            for columns in itertools.chain([own], allocations):
                part, without_host = packing.placed(columns, row_of)
                left_out.update(without_host)
                yield part

        self.index.load_parts(
            list(capacity),
            list(itertools.chain.from_iterable(capacity.values())),
            parts(),
        )
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
            changes = self._remove(uuid) + self._add_instance(noun)
            self.index.apply(changes, force=True)
            self._overdue.add(uuid)
        self.index.advance(now)

    def held(self, reservation_id: str) -> dict[str, allocation.Allocation]:
        """Return a reservation's allocations by host.

        An amount of 0 is left out of them. O(their number).
        """
        return {
            host: allocation.Allocation(
                id_, reservation_id, host, start, end,
                {
                    c: amount
                    for c, amount in zip(
                        inventory.RESOURCE_CLASSES, amounts, strict=True
                    )
                    if amount
                },
                whole,
            )
            for id_, host, start, end, amounts, whole in self.index.held(
                reservation_id
            )
        }

    def items(self) -> Iterator[packing.Item]:
        """Yield what makes this replica anew: see replica.packing."""
        for nouns in self._nouns.values():
            for noun in nouns.values():
                yield record.encode(noun)
        yield from packing.texts(
            (held[0], reservation_id, *held[1:])
            for reservation_id in self.reservations
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
                removes += self._remove(key)
                if noun is not None:
                    adds.append(
                        add_allocation(cast(allocation.Allocation, noun))
                    )
            elif kind == record.INSTANCE:
                removes += self._remove(key)
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
        if not any(packing.amounts_of(noun.amounts)):
            return []
        step = self.accounting.step(noun, overdue=noun.end <= self._now)
        if step is None:
            return []
        start, end, sign = step
        return [
            ('add', noun.uuid, noun.uuid, noun.host, start, end,
             packing.amounts_of(noun.amounts, sign), False)
        ]

    def _remove(self, id_: str) -> list[Change]:
        """Take an allocation or an instance out of the index, if it is in."""
        return [('remove', id_)] if id_ in self.index else []


def add_allocation(noun: allocation.Allocation) -> Change:
    return (
        'add', noun.id, noun.reservation_id, noun.host, noun.start, noun.end,
        packing.amounts_of(noun.amounts), noun.whole,
    )
