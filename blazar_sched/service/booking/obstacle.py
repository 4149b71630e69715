# SPDX-License-Identifier: Apache-2.0
"""Obstacles: what is in the way of a lease that was refused for lack of room.

Obstacles are looked for after a refusal only, outside of the commit, with two
queries of the ledger.
"""

from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import itertools
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.host import Host
from blazar_sched.domain.host import MAINTENANCE
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing import bar as bar_rules
from blazar_sched.placing.bar import Bar
from blazar_sched.placing.bar import CLOSED
from blazar_sched.placing.bar import LEASE
from blazar_sched.placing.bar import OFFER
from blazar_sched.placing.bar import PREEMPTIBLE
from blazar_sched.placing.bar import RELOCATION
from blazar_sched.placing.bar import SERVER
from blazar_sched.placing.lease_placing import Placer
from blazar_sched.replica import state
from blazar_sched.service.booking.booking import Bookings

# The obstacles that a refusal names, the hosts that are looked at beside those
# of the project's own leases, and the allocations that a query reads.
MAX_SHOWN = 10
MAX_HOSTS = 1000
MAX_USES = 1000
_CLOSINGS = (MAINTENANCE, CLOSED)

_Shown = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Obstacle:
    """What a caller may see of what is in the way, on any of the hosts.

    :ivar mine: whether the project that is refused has it
    :ivar host: the name of the only host, None if the caller may not see it
    """

    kind: str
    mine: bool
    name: str | None
    lease_id: str | None
    server_id: str | None
    host: str | None


def with_obstacles(
    bookings: Bookings, refusal: exception.NotEnoughHostsAvailable,
    lease: Lease, window: Window, now: int, names: bool,
    leaving: Collection[str] = (),
) -> exception.NotEnoughHostsAvailable:
    """Return the refusal of a lease with what is in its way.

    A refusal that does not depend on the window is returned as it is.

    :param window: the remaining window of the lease
    :param names: whether the caller sees the names of hosts, and the leases of
        all projects
    :param leaving: the ids of other leases that the request would delete
    """
    offer = refusal.offer or {}
    if 'reservation' not in offer:
        return refusal
    *_, options = bookings.writer.options.alternatives()
    ledger = bookings.ledger
    reservation = lease.reservations[offer['reservation']]

    def look(
        replica: state.Replica
    ) -> tuple[Mapping[str, Host], tuple[Instance, ...]]:
        placer = Placer(replica, lease.project_id, window, options)
        return (
            _wanted_hosts(placer, lease, reservation),
            tuple(replica.instances.values()),
        )

    hosts, instances = ledger.read_replica(look)
    if not hosts:
        return refusal
    wide = bar_rules.widened(window, hosts.values(), options)
    own = [
        use for use in ledger.uses(wide, MAX_USES, project_id=lease.project_id)
        if use.allocation.host in hosts
    ]
    some = [
        *(use.allocation.host for use in own),
        *itertools.islice(hosts, MAX_HOSTS),
    ]
    hosts = {uuid: hosts[uuid] for uuid in some}
    uses = {
        use.allocation.id: use
        for use in own + ledger.uses(wide, MAX_USES, hosts=list(hosts))
        if use.lease_id not in (lease.id, *leaving)
    }
    bars = bar_rules.bars_by_host(
        hosts, uses.values(),
        (each for each in instances if _is_on(each, hosts)), window, now,
        options,
    )
    found = _merged(
        (
            (bar, hosts[uuid].hypervisor_hostname)
            for uuid, those in bars.items() for bar in those
        ),
        lease.project_id, names,
    )
    return exception.NotEnoughHostsAvailable(
        refusal.args[0], refusal.field,
        {
            **offer,
            'in_the_way': found[:MAX_SHOWN],
            'in_the_way_left_out': len(found[MAX_SHOWN:]),
        },
    )


def _wanted_hosts(
    placer: Placer, lease: Lease, reservation: Reservation
) -> Mapping[str, Host]:
    """Return the hosts of which some are taken, none if all are too few.

    An active reservation keeps its hosts: if it gets no more hosts, no other
    hosts would help.
    """
    held = placer.replica.indexes.allocations(reservation.id)
    if placer.lacking(reservation, held.values()) is not None:
        return {}
    if (
        held and lease.status == states.LEASE_ACTIVE
        and reservation.demand.least
        <= reservation.demand.count(held.values())
    ):
        return {uuid: placer.replica.hosts[uuid] for uuid in held}
    return placer.candidates(reservation, held).hosts


def _is_on(instance: Instance, hosts: Mapping[str, Host]) -> bool:
    return instance.host in hosts or any(
        stay.host in hosts for stay in instance.relocations
    )


def _merged(
    bars: Iterable[tuple[Bar, str]], project_id: str, names: bool
) -> list[_Shown]:
    """Return the obstacles of some bars, those that the caller can name first.

    :param bars: with the names of their hosts
    """
    hosts: dict[Obstacle, set[str]] = defaultdict(set)
    ends: dict[Obstacle, int] = defaultdict(int)
    for bar, host in bars:
        if bar.kind != PREEMPTIBLE and bar.share:
            obstacle = _obstacle(bar, project_id, host if names else None)
            hosts[obstacle].add(host)
            ends[obstacle] = max(ends[obstacle], bar.end)
    return [
        {
            **dataclasses.asdict(each), 'hosts': len(hosts[each]),
            'end': ends[each],
        }
        for each in sorted(
            hosts, key=lambda each: (
                not each.mine, each.kind not in _CLOSINGS, each.host or '',
                ends[each], str(each),
            )
        )
    ]


def _obstacle(bar: Bar, project_id: str, host: str | None) -> Obstacle:
    """Return a bar as the caller may see it.

    :param host: the name of the host, None if the caller sees no names
    """
    mine = bar.project_id == project_id
    kind = bar.kind
    if kind == RELOCATION:
        kind = SERVER
    elif bar.lease_id:
        held = bar.status == states.LEASE_CREATING
        kind = OFFER if held and (mine or host) else LEASE
    if not (mine or host or kind in _CLOSINGS):
        # Of another project, only the number of hosts is shown.
        return Obstacle(kind, False, None, None, None, None)
    return Obstacle(kind, mine, bar.name, bar.lease_id, bar.server_id, host)
