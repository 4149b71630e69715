# SPDX-License-Identifier: Apache-2.0
"""Limits of the windows in which a lease finds room.

Each reservation needs at least some number of hosts, each with room for some
amounts. The index tells when so many hosts have this room at once. A window
beyond that has no room for the lease; a window within may have none, because
reservations compete for hosts, need other resource classes, or need more of
each host. For a lease that reserves hosts alone, the limits are exact.
"""

import array
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import functools
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


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """Hosts with one cleaning time, in an index."""

    index: ext.TimelineIndex
    rows: 'array.array[int]'
    seconds: int


@dataclasses.dataclass(frozen=True, slots=True)
class LeastDemand:
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
    indexes: Sequence[Sequence[Part]]


def first_start(
    replica: state.Replica, lease: Lease, at: int, length: int,
    options: Options,
) -> int | None:
    """Return a start before which a lease finds no room, at or after a time.

    :param length: the length of the window in seconds, or FOREVER
    :returns: None if there is no such start
    """
    first = at
    for demand in demands(replica, lease, options):
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
    demand: LeastDemand, parts: Sequence[Part], at: int, length: int
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
            for demand in demands(replica, lease, options)
            for parts in demand.indexes
        ),
        default=FOREVER,
    )


def _last_end(demand: LeastDemand, parts: Sequence[Part], start: int) -> int:
    ends = []
    for part in parts:
        begin = max(0, start - part.seconds)
        seconds = part.index.horizon(
            part.rows, begin, demand.amounts, whole=demand.amounts is None
        )
        ends += [
            before_cleaning(
                FOREVER if each == FOREVER else begin + each, part.seconds
            )
            for each in sorted(filter(None, seconds))[-demand.least:]
        ]
    if len(ends) < demand.least:
        return 0
    return sorted(ends)[-demand.least]


def demands(
    replica: state.Replica, lease: Lease, options: Options
) -> Iterator[LeastDemand]:
    """Yield what the reservations of a lease on hosts need at least.

    A reservation of other resource classes alone needs nothing of an index.
    """
    *_, last = options.alternatives()
    for reservation in lease.reservations:
        if not reservation.demand.is_on_hosts(active=False):
            continue
        least, most, amounts = _hosts(reservation.demand)
        indexes: list[list[Part]] = []
        if amounts is not None:
            amounts = [min(each, ext.AMOUNT_LIMIT) for each in amounts]
        if amounts is None or any(amounts):
            indexes = _by_index(replica, lease, reservation, last)
        yield LeastDemand(least, most, amounts, indexes)


def _by_index(
    replica: state.Replica, lease: Lease, reservation: Reservation,
    options: Options,
) -> list[list[Part]]:
    indexes = replica.indexes
    parts = replica.catalog.candidates(
        reservation, lease.project_id, options.default
    ).parts(indexes.main, options.cleaning_time_of(reservation.resource_type))
    found = [[Part(indexes.main, part.rows, s) for s, part in parts]]
    reserved = indexes.reserved
    if reserved is not None:
        found.append([
            Part(reserved, rows(reserved, part.hosts), s)
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


def _all_rows(parts: Sequence[Part]) -> 'array.array[int]':
    if len(parts) == 1:
        return parts[0].rows
    return functools.reduce(operator.add, (part.rows for part in parts))


def before_cleaning(end: int, seconds: int) -> int:
    # A window is not widened beyond the range of times.
    return FOREVER if end >= TIME_LIMIT - 1 else end - seconds
