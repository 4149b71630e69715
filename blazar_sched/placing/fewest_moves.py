# SPDX-License-Identifier: Apache-2.0
"""Choice of the allocations that leave a host that cannot hold all of them.

A host gets too much if it shrinks, or if an instance is on it that was not let
in. This module only makes the choice: placing decides where the allocations
go.
"""

from collections import Counter
from collections import deque
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import heapq
import itertools

from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation

# The number of allocations up to which all choices are tried.
EXACT = 12

# Counted like a resource class: an allocation of the whole host takes all of
# the capacity, and every other allocation takes the least part.
_WHOLE = 'whole'


@dataclasses.dataclass(frozen=True, slots=True)
class _Excess:
    """The excess of one resource class on the host at one time.

    :param amounts: the amount of each allocation that may leave, by its id
    :param amount: the amount that has to leave
    """

    amounts: Mapping[str, int]
    amount: int

    def too_large(self) -> Iterator[str]:
        """Yield the ids of the allocations that do not fit even alone."""
        room = sum(self.amounts.values()) - self.amount
        return (id_ for id_, taken in self.amounts.items() if taken > room)

    def missing(self, gone: Iterable[str]) -> int:
        """Return the excess that is left once some allocations are gone."""
        return self.amount - sum(self.amounts.get(id_, 0) for id_ in gone)

    def without(self, gone: Collection[str]) -> '_Excess':
        left = {i: n for i, n in self.amounts.items() if i not in gone}
        going = sum(self.amounts.values()) - sum(left.values())
        return _Excess(left, self.amount - going)


def choose(
    capacity: Mapping[str, int], fixed: Sequence[Allocation],
    movable: Sequence[Allocation], now: int,
) -> list[Allocation]:
    """Return the movable allocations that leave, so that the others fit.

    The fewest allocations leave; among equally many, those with the fewest
    whole hosts, then the least VCPUs, then memory, then disk; among equals
    the first ones.

    O(n²), and as many tries as there are choices. Where more than EXACT
    allocations compete for the same capacity, the choice is greedy: each step
    takes the allocation that gives back the most of what is missing, and the
    result has at most 1 + ln(g) times the fewest allocations, if one
    allocation gives back g at most (Wolsey, 1982).

    :param capacity: capacity of the host, by resource class
    :param fixed: the allocations that stay, whether they fit or not
    """
    excesses = list(_excesses(capacity, fixed, movable, now))
    gone = {id_ for excess in excesses for id_ in excess.too_large()}
    left = [excess.without(gone) for excess in excesses]
    for group in _groups(excess for excess in left if excess.amount > 0):
        ids = {id_ for excess in group for id_ in excess.amounts}
        rivals = [a for a in movable if a.id in ids]
        choose = _choose_exactly if len(rivals) <= EXACT else _choose_greedily
        gone.update(a.id for a in choose(group, rivals))
    return [a for a in movable if a.id in gone]


def _excesses(
    capacity: Mapping[str, int], fixed: Sequence[Allocation],
    movable: Sequence[Allocation], now: int,
) -> Iterator[_Excess]:
    """Yield each excess, at each time at which an allocation starts.

    O(n log n), and the allocations at each of these times.
    """
    count = len(fixed) + len(movable)
    limits = {**capacity, _WHOLE: count}
    taken = {a.id: _amounts(a, count) for a in (*fixed, *movable)}
    staying = {a.id for a in fixed}
    waiting = deque(sorted((*fixed, *movable), key=lambda a: a.start))
    present: list[Allocation] = []
    for at in sorted({max(a.start, now) for a in waiting}):
        while waiting and waiting[0].start <= at:
            present.append(waiting.popleft())
        present = [a for a in present if at < a.end]
        kept: Counter[str] = Counter()
        for a in present:
            if a.id in staying:
                kept.update(taken[a.id])
        here = [a.id for a in present if a.id not in staying]
        for name in {name for id_ in here for name in taken[id_]}:
            amounts = {i: taken[i][name] for i in here if taken[i].get(name)}
            room = max(0, limits.get(name, 0) - kept[name])
            excess = sum(amounts.values()) - room
            if excess > 0:
                yield _Excess(amounts, excess)


def _amounts(allocation: Allocation, count: int) -> dict[str, int]:
    """Return the amounts of an allocation, by resource class and _WHOLE.

    :param count: the number of allocations
    """
    return {**allocation.amounts, _WHOLE: count if allocation.whole else 1}


def _groups(excesses: Iterable[_Excess]) -> list[list[_Excess]]:
    """Return the excesses in groups that have no allocation in common."""
    groups: list[tuple[set[str], list[_Excess]]] = []
    for excess in excesses:
        ids, group = set(excess.amounts), [excess]
        alone = []
        for other in groups:
            if ids.isdisjoint(other[0]):
                alone.append(other)
            else:
                ids |= other[0]
                group += other[1]
        groups = [*alone, (ids, group)]
    return [group for _, group in groups]


def _choose_exactly(
    excesses: Sequence[_Excess], rivals: Sequence[Allocation]
) -> Sequence[Allocation]:
    for count in range(1, len(rivals)):
        enough = [
            chosen
            for chosen in itertools.combinations(rivals, count)
            if all(e.missing(a.id for a in chosen) <= 0 for e in excesses)
        ]
        if enough:
            return min(enough, key=_size)
    return rivals


def _choose_greedily(
    excesses: Sequence[_Excess], rivals: Sequence[Allocation]
) -> Iterable[Allocation]:
    missing = [excess.amount for excess in excesses]
    amounts = [
        [
            (n, e.amounts[a.id])
            for n, e in enumerate(excesses)
            if a.id in e.amounts
        ]
        for a in rivals
    ]

    def order(rival: int) -> tuple[int, tuple[int, ...], int]:
        given = (
            min(amount, max(0, missing[n])) for n, amount in amounts[rival]
        )
        return -sum(given), _size([rivals[rival]]), rival

    queue = sorted(map(order, range(len(rivals))))
    chosen = []
    while any(each > 0 for each in missing):
        # The amounts given back only decrease: an allocation that is still the
        # first with its present amount is the best.
        now = order(heapq.heappop(queue)[-1])
        if queue and now > queue[0]:
            heapq.heappush(queue, now)
            continue
        chosen.append(now[-1])
        for n, amount in amounts[now[-1]]:
            missing[n] -= amount
    for rival in tuple(chosen):
        # Allocations that were chosen later may have made this one needless.
        if all(missing[n] + amount <= 0 for n, amount in amounts[rival]):
            chosen.remove(rival)
            for n, amount in amounts[rival]:
                missing[n] += amount
    return (rivals[rival] for rival in chosen)


def _size(allocations: Iterable[Allocation]) -> tuple[int, ...]:
    sizes = (
        (a.whole, *(a.amounts.get(c, 0) for c in inventory.RESOURCE_CLASSES))
        for a in allocations
    )
    return tuple(map(sum, zip(*sizes, strict=True)))
