# SPDX-License-Identifier: Apache-2.0
"""The starts of a lease request that delay no request ahead of it."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses

from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.parts.request.lease_request import LeaseRequest
from blazar_sched.parts.request.lease_request import starts_outside
from blazar_sched.placing import host_selection
from blazar_sched.placing.options import Options
from blazar_sched.placing.window_search import Starts
from blazar_sched.replica import state
from blazar_sched.replica.catalog import Candidates

# A reservation, with the hosts that suit the reservation.
Suitable = tuple[Reservation, Sequence[Host]]


@dataclasses.dataclass(frozen=True, slots=True)
class RequestedLease:
    """A lease request, with its lease at a start."""

    request: LeaseRequest
    lease: Lease


def starts(
    replica: state.Replica, requested: RequestedLease,
    ahead: Iterable[RequestedLease], within: Starts, options: Options,
) -> list[Starts]:
    """Return the starts at which a lease delays no request ahead of it.

    The lease overlaps no window that a request ahead keeps free, nor the
    cleaning time around such a window, if both may use the same host. The
    requests ahead are looked at until no start is left.

    :param ahead: the waiting requests ahead, each with its lease in the window
        that it keeps free
    :param within: the range of the starts
    """
    mine = list(_candidates(replica, requested.lease, options))
    taken: list[Window] = []
    left = [within]
    for each in ahead:
        if not left:
            break
        theirs = list(_candidates(replica, each.lease, options))
        if _compete(mine, theirs):
            seconds = max(
                _cleaning_time(replica, reservation, hosts, options)
                for reservation, hosts in (*mine, *theirs)
            )
            taken.append(each.lease.window.widened(seconds))
            left = starts_outside(within, requested.request.duration, taken)
    return left


def competing(
    replica: state.Replica, lease: Lease, others: Iterable[RequestedLease],
    options: Options,
) -> list[RequestedLease]:
    """Return the other requests whose leases may use a host of a lease."""
    mine = list(_candidates(replica, lease, options))
    return [
        each for each in others
        if _compete(mine, _candidates(replica, each.lease, options))
    ]


def suitable_hosts(replica: state.Replica, lease: Lease) -> list[Suitable]:
    """Return the hosts that suit each reservation, also if out of service.

    O(hosts).
    """
    return [
        (
            reservation,
            replica.catalog.visible(
                reservation.demand.requirement(), lease.project_id,
                reservation.demand.request_groups(),
            ),
        )
        for reservation in lease.reservations
    ]


def lacking(suitable: Sequence[Suitable], overcommit: bool) -> str | None:
    """Return why hosts cannot be enough for a lease if nothing is on them.

    Each reservation must find room by itself, the reservations of whole hosts
    must find enough hosts together, and the reservations of instances enough
    of each resource class together.

    O(hosts × resource classes).

    :param suitable: the result of `suitable_hosts`
    :param overcommit: whether reservations may overcommit hosts
    :returns: None if the hosts may be enough
    """
    for reservation, hosts in suitable:
        alone = host_selection.lacking(reservation.demand, hosts, overcommit)
        if alone is not None:
            return alone
    whole = [
        (reservation, hosts) for reservation, hosts in suitable
        if reservation.demand.whole
    ]
    needed = sum(r.demand.least for r, _ in whole)
    slots = [each for each in suitable if not each[0].demand.whole]
    if not _have_enough(slots, overcommit):
        return 'the hosts are too small for all instances together'
    return host_selection.too_few_hosts(needed, len(_together(whole)))


def _together(suitable: Iterable[Suitable]) -> dict[str, Host]:
    return {host.uuid: host for _, hosts in suitable for host in hosts}


def _have_enough(suitable: Sequence[Suitable], overcommit: bool) -> bool:
    """Tell whether hosts have the amounts of all instances together."""
    needed: Counter[str] = Counter()
    for reservation, _ in suitable:
        for name, amount in reservation.demand.slot.items():
            needed[name] += amount * reservation.demand.least
    hosts = _together(suitable).values()
    return all(
        sum(host.capacity(name, overcommit) for host in hosts) >= amount
        for name, amount in needed.items()
    )


_Hosts = tuple[Reservation, Candidates]


def _candidates(
    replica: state.Replica, lease: Lease, options: Options
) -> Iterator[_Hosts]:
    """Yield the hosts that each reservation may use at all."""
    *_, widest = options.alternatives()
    for reservation in lease.reservations:
        yield reservation, replica.catalog.candidates(
            reservation, lease.project_id, widest.default
        )


def _compete(mine: Sequence[_Hosts], theirs: Iterable[_Hosts]) -> bool:
    return any(
        not a.hosts.keys().isdisjoint(b.hosts)
        for _, b in theirs
        for _, a in mine
    )


def _cleaning_time(
    replica: state.Replica, reservation: Reservation, candidates: Candidates,
    options: Options,
) -> int:
    """Return the longest cleaning time of the hosts of a reservation."""
    otherwise = options.cleaning_time_of(reservation.resource_type)
    return candidates.parts(replica.indexes.main, otherwise)[-1][0]
