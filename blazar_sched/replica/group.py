# SPDX-License-Identifier: Apache-2.0
"""The timeline of what is reserved on the hosts of a group limit together."""

import array
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from blazar_sched import ext
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.group_limit import GroupLimit
from blazar_sched.domain.host import Host
from blazar_sched.domain.window import Window
from blazar_sched.replica.batch import Batch
from blazar_sched.replica.batch import Change


class Group:
    """A group of hosts, and a timeline index whose only row is the group.

    :param hosts: every host by UUID
    :param allocations: every allocation
    :ivar limit: the limit of the group
    :ivar index: the index
    :ivar members: what each host of the group counts, by UUID
    :ivar most: the most that may be reserved at the same time
    """

    def __init__(
        self, limit: GroupLimit, hosts: Mapping[str, Host],
        allocations: Iterable[Allocation] = (),
    ) -> None:
        self.limit = limit
        self.index = ext.TimelineIndex(('amount',))
        # All allocations, as any host may come into the group.
        self._allocations = {each.id: each for each in allocations}
        self.members = limit.members(hosts)
        self._count_members()
        # The limit is no capacity of the index: an allocation that is widened
        # by its cleaning time may exceed the limit outside of its window.
        self.index.apply(
            [
                ('capacity', limit.name, (ext.AMOUNT_LIMIT,)),
                *self.adding(self._allocations.values()),
            ],
            force=True,
        )

    def apply(self, batch: Batch) -> None:
        """Apply a batch that the main index has taken.

        O(changes), and O(allocations) if a host counts anew.
        """
        for id_ in batch.removes:
            self._allocations.pop(id_, None)
        gone: list[str] = [id_ for id_ in batch.removes if id_ in self.index]
        added = [*batch.allocated]
        anew = self._changed(batch.hosts) if batch.hosts else set()
        if anew:
            moved = [
                each for each in self._allocations.values()
                if each.host in anew
            ]
            gone += [each.id for each in moved if each.id in self.index]
            added += moved
            self._count_members()
        self._allocations |= {each.id: each for each in batch.allocated}
        self.index.apply(
            [*(('remove', id_) for id_ in gone), *self.adding(added)],
            force=True,
        )

    def room(self, window: Window, ignore: str | None = None) -> int:
        """Return how much more may be reserved throughout a window.

        The number is negative if more is reserved than the limit allows.

        :param ignore: the id of a reservation whose allocations do not count
        """
        taken, *_ = self.index.peak(
            self._row, window.start, window.end, ignore=ignore
        )
        return self.most - taken

    def first_start(self, amount: int, at: int, length: int) -> int | None:
        """Return the first start from which an amount may be reserved.

        :param length: for how many seconds, or FOREVER
        :returns: None if there is no such start
        """
        beyond = ext.AMOUNT_LIMIT - self.most + amount
        if amount == 0:
            return at
        if beyond > ext.AMOUNT_LIMIT:
            return None
        found = self.index.earliest(1, length, at, (beyond,), self._row)
        return None if found is None else found[0]

    def amount(
        self, host: str, slot: Mapping[str, int] | None, count: int
    ) -> int:
        """Return what a number of instances on a host counts.

        :param slot: the amounts of one instance, None for the whole host
        """
        # The capacity is counted while the replica goes on.
        counted = self.members.get(host)
        if counted is None:
            return 0
        return self.limit.amount(counted, slot, count)

    def edges(self, window: Window) -> 'tuple[array.array[int], ...]':
        """Return the starts and the ends of the entries, in order.

        Those outside of the window are left out.
        """
        return self.index.edges(self._row, window.start, window.end)

    def adding(self, allocations: Iterable[Allocation]) -> Iterator[Change]:
        """Yield the changes that add the allocations on hosts of the group."""
        for each in allocations:
            slot = None if each.whole else each.amounts
            amount = self.amount(each.host, slot, 1)
            if amount:
                yield (
                    'add', each.id, each.reservation_id, self.limit.name,
                    each.start, each.end, (amount,), False,
                )

    def _changed(self, hosts: Mapping[str, Host | None]) -> set[str]:
        """Return the hosts that count anew once some hosts have changed."""
        before = self.members
        now = self.limit.members({
            uuid: host for uuid, host in hosts.items() if host is not None
        })
        self.members = {
            uuid: amount for uuid, amount in before.items()
            if uuid not in hosts
        } | now
        return {u for u in hosts if before.get(u) != now.get(u)}

    def _count_members(self) -> None:
        # The index has no greater sums.
        self.most = min(
            self.limit.most(sum(self.members.values())), ext.AMOUNT_LIMIT
        )

    @property
    def _row(self) -> 'array.array[int]':
        return self.index.rows([self.limit.name])
