# SPDX-License-Identifier: Apache-2.0
"""Limits of the windows in which a lease finds room.

Each reservation needs at least some number of hosts, each with room for some
amounts. The index tells when so many hosts have this room at once. A window
beyond that has no room for the lease; a window within may have none, because
reservations compete for hosts, need other resource classes, or need more of
each host. For a lease that reserves hosts alone, the limits are exact.
"""

import array
import bisect
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import functools
import heapq
import operator

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import TIME_LIMIT
from blazar_sched.placing import group_limit
from blazar_sched.placing.options import Options
from blazar_sched.replica import state
from blazar_sched.replica.catalog import rows

Times = Sequence[int]


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """Hosts with one cleaning time, in an index."""

    index: ext.TimelineIndex
    rows: 'array.array[int]'
    seconds: int


@dataclasses.dataclass(frozen=True, slots=True)
class _Demand:
    """What a reservation needs at once, and where.

    :param least: the number of hosts that the reservation needs
    :param most: the number of hosts that the reservation takes at most
    :param amounts: what each host must have room for, by RESOURCE_CLASSES;
        None for the whole host
    :param indexes: the hosts that the reservation may use, once for each
        index
    """

    least: int
    most: int
    amounts: Sequence[int] | None
    indexes: Sequence[Sequence[_Part]]


def first_start(
    replica: state.Replica, lease: Lease, at: int, length: int,
    options: Options,
) -> int | None:
    """Return a start before which a lease finds no room, at or after a time.

    :param length: the length of the window in seconds, or FOREVER
    :returns: None if there is no such start
    """
    first = at
    for demand in _demands(replica, lease, options):
        for parts in demand.indexes:
            found = _first_start(demand, parts, at, length)
            if found is None:
                return None
            first = max(first, found)
    return _first_in_groups(replica, lease, first, length, options)


def _first_in_groups(
    replica: state.Replica, lease: Lease, at: int, length: int,
    options: Options,
) -> int | None:
    *_, last = options.alternatives()
    first = at
    for group in replica.indexes.groups:
        for reservation in lease.reservations:
            if not reservation.demand.is_on_hosts(active=False):
                continue
            hosts = replica.catalog.candidates(
                reservation, lease.project_id, last.default
            ).hosts
            least = group_limit.least(group, hosts, reservation.demand)
            found = group.first_start(least, first, length)
            if found is None:
                return None
            first = found
    return first


def _first_start(
    demand: _Demand, parts: Sequence[_Part], at: int, length: int
) -> int | None:
    # The shortest cleaning time is a limit for all hosts.
    seconds = min(at, *(part.seconds for part in parts))
    if length != FOREVER:
        length = min(length + 2 * seconds, TIME_LIMIT - 1)
    found = parts[0].index.earliest(
        demand.least, length, at - seconds, demand.amounts, _all_rows(parts),
        whole=demand.amounts is None,
    )
    return None if found is None else found[0] + seconds


def last_end(
    replica: state.Replica, lease: Lease, start: int, options: Options
) -> int:
    """Return an end after which a lease finds no room from a start.

    :returns: FOREVER if there is no such end; the start or an earlier time if
        there is no room at all
    """
    return min(
        (
            _last_end(demand, parts, start)
            for demand in _demands(replica, lease, options)
            for parts in demand.indexes
        ),
        default=FOREVER,
    )


def _last_end(demand: _Demand, parts: Sequence[_Part], start: int) -> int:
    ends = []
    for part in parts:
        begin = max(0, start - part.seconds)
        seconds = part.index.horizon(
            part.rows, begin, demand.amounts, whole=demand.amounts is None
        )
        ends += [
            _before_cleaning(
                FOREVER if each == FOREVER else begin + each, part.seconds
            )
            for each in sorted(filter(None, seconds))[-demand.least:]
        ]
    if len(ends) < demand.least:
        return 0
    return sorted(ends)[-demand.least]


@dataclasses.dataclass(frozen=True)
class _Runs:
    """When each of some hosts has room.

    :param least: the number of hosts that are needed at once
    :param parts: the begins and the ends of free runs, in order of the begins
    """

    least: int
    parts: Sequence[tuple[Times, Times]]

    @functools.cached_property
    def _all(self) -> tuple[Times, Times]:
        if len(self.parts) == 1:
            return self.parts[0]
        both = sorted(
            run for part in self.parts for run in zip(*part, strict=True)
        )
        return [begin for begin, _ in both], [end for _, end in both]

    def last_ends(self, starts: Times) -> list[int]:
        """Return the last end with room from each start, 0 for none.

        :param starts: in order
        """
        begins, ends = self._all
        # The last ends of as many runs as are needed. A run that is over has
        # an earlier end than every run that is not.
        last: list[int] = []
        found, n = [], 0
        for start in starts:
            while n < len(begins) and begins[n] <= start:
                if len(last) < self.least:
                    heapq.heappush(last, ends[n])
                elif ends[n] > last[0]:
                    heapq.heapreplace(last, ends[n])
                n += 1
            enough = len(last) == self.least and last[0] > start
            found.append(last[0] if enough else 0)
        return found

    def counts(self, starts: Times, length: int) -> list[int]:
        """Return the number of hosts with room for a length from each start.
        """
        runs = [
            (begin, end) for begin, end in zip(*self._all, strict=True)
            if end - begin >= length
        ]
        begins = [begin for begin, _ in runs]
        ends = sorted(end for _, end in runs)
        return [
            bisect.bisect_right(begins, start)
            - bisect.bisect_left(ends, start + length)
            for start in starts
        ]


class Limits:
    """The limits of all windows of a search.

    :param runs: the runs of each reservation, once for each index, and the
        most hosts that the reservation takes
    """

    def __init__(
        self, runs: Sequence[tuple[int, Sequence[_Runs]]] = ()
    ) -> None:
        self._runs = runs

    def last_ends(self, starts: Times) -> list[int]:
        """Return for each start an end after which there is no room.

        FOREVER if there is no such end, 0 if there is no room at all.

        O(runs + starts · log hosts).

        :param starts: in order
        """
        found = [FOREVER] * len(starts)
        for _, indexes in self._runs:
            for each in indexes:
                found = list(map(min, found, each.last_ends(starts)))
        return found

    def counts(self, starts: Times, length: int) -> list[int]:
        """Return for each start the most allocations, 0 for no room at all.

        O((runs + starts) · log runs).
        """
        if not self._runs:
            return [FOREVER] * len(starts)
        found = [0] * len(starts)
        room = [True] * len(starts)
        for most, indexes in self._runs:
            counts = [most] * len(starts)
            for each in indexes:
                hosts = each.counts(starts, length)
                counts = list(map(min, counts, hosts))
                room = [
                    fits and count >= each.least
                    for fits, count in zip(room, hosts, strict=True)
                ]
            found = list(map(operator.add, found, counts))
        return list(map(operator.mul, found, room))


def read(
    replica: state.Replica, lease: Lease, first: int, last: int, length: int,
    options: Options,
) -> Limits:
    """Return the limits of the windows that begin in a range of starts.

    O(hosts + entries).

    :param length: the least length of a window
    """
    return Limits([
        (
            demand.most,
            [
                _Runs(demand.least, [
                    _free_runs(demand, part, first, last, length)
                    for part in parts
                ])
                for parts in demand.indexes
            ],
        )
        for demand in _demands(replica, lease, options)
    ])


def _free_runs(
    demand: _Demand, part: _Part, first: int, last: int, length: int
) -> tuple[Times, Times]:
    """Return the runs of windows from `first` on, cleaning time left out."""
    seconds = part.seconds
    after = max(0, first - seconds)
    begins, ends = part.index.runs(
        length, after, demand.amounts, part.rows, max(after, last - seconds),
        demand.amounts is None,
    )
    if not seconds:
        return begins, ends
    return (
        [first if begin == after else begin + seconds for begin in begins],
        [_before_cleaning(end, seconds) for end in ends],
    )


def _demands(
    replica: state.Replica, lease: Lease, options: Options
) -> Iterator[_Demand]:
    """Yield what the reservations of a lease on hosts need at least.

    A reservation of other resource classes alone needs nothing of an index.
    """
    *_, last = options.alternatives()
    for reservation in lease.reservations:
        if not reservation.demand.is_on_hosts(active=False):
            continue
        least, most, amounts = _hosts(reservation.demand)
        indexes: list[list[_Part]] = []
        if amounts is not None:
            amounts = [min(each, ext.AMOUNT_LIMIT) for each in amounts]
        if amounts is None or any(amounts):
            indexes = _by_index(replica, lease, reservation, last)
        yield _Demand(least, most, amounts, indexes)


def _by_index(
    replica: state.Replica, lease: Lease, reservation: Reservation,
    options: Options,
) -> list[list[_Part]]:
    indexes = replica.indexes
    parts = replica.catalog.candidates(
        reservation, lease.project_id, options.default
    ).parts(indexes.main, options.cleaning_time_of(reservation.resource_type))
    found = [[_Part(indexes.main, part.rows, s) for s, part in parts]]
    reserved = indexes.reserved
    if reserved is not None:
        found.append([
            _Part(reserved, rows(reserved, part.hosts), s)
            for s, part in parts
        ])
    return found


def _hosts(demand: Demand) -> tuple[int, int, list[int] | None]:
    """Return the least and the most hosts, and the amounts needed of each.

    :returns: amounts by RESOURCE_CLASSES; None for the whole host
    """
    if demand.whole:
        return demand.least, demand.most, None
    amounts = [demand.slot.get(c, 0) for c in inventory.RESOURCE_CLASSES]
    if demand.affinity:
        return 1, 1, [demand.least * amount for amount in amounts]
    least = 1 if demand.affinity is None else demand.least
    return least, demand.most, amounts


def _all_rows(parts: Sequence[_Part]) -> 'array.array[int]':
    if len(parts) == 1:
        return parts[0].rows
    return functools.reduce(operator.add, (part.rows for part in parts))


def _before_cleaning(end: int, seconds: int) -> int:
    # A window is not widened beyond the range of times.
    return FOREVER if end >= TIME_LIMIT - 1 else end - seconds
