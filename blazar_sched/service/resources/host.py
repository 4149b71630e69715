# SPDX-License-Identifier: Apache-2.0
"""``physical:host``: whole hosts.

The filters in nova-scheduler decide who may use a host in its window. The
driver clears the host of servers that have to yield, and at the end of the
reservation's servers; and it shows the hosts in an aggregate.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import plural
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import BEFORE_END
from blazar_sched.domain.demand import decode
from blazar_sched.domain.demand import DEFAULT_BEFORE_END
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import ON_START
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.host import DEDICATED
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.clients.nova import Aggregate
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.resources import aggregate as aggregates
from blazar_sched.service.resources import base
from blazar_sched.service.resources import on_hosts
from blazar_sched.service.resources import servers
from blazar_sched.service.resources.base import Part
from blazar_sched.service.resources.parameters import check_integer
from blazar_sched.service.resources.parameters import check_names
from blazar_sched.service.resources.parameters import check_requirement

_DEFAULTS = {
    'min': None,
    'max': None,
    'hypervisor_properties': '',
    'resource_properties': '',
    BEFORE_END: DEFAULT_BEFORE_END,
    ON_START: '',
}


class HostResource(on_hosts.OnHostsResource):
    """The driver of ``physical:host``."""

    def _read(self, parameters: Mapping[str, Any], project_id: str) -> Demand:
        complete = check_names(parameters, _DEFAULTS)
        check_integer(complete, 'min', 1)
        check_integer(complete, 'max', complete['min'])
        for name in ('hypervisor_properties', 'resource_properties'):
            check_requirement(complete, name)
        return decode(PHYSICAL_HOST, complete)

    def give_up(self, part: Part) -> list[Allocation]:
        """Choose the hosts to keep: those with servers of the reservation.

        The start, which is done again, removes the other hosts from the
        aggregate.

        :raises CantUpdateParameter: if more hosts than the maximum are in use
        """
        own = self._servers.find(part.lease, part.reservation, part.held)
        nodes = {server.node for server in own}
        return _kept(part, {
            host.uuid for host in part.held
            if host.hypervisor_hostname in nodes
        })

    def dry_run_give_up(
        self, part: Part, bound: Collection[Instance]
    ) -> list[Allocation]:
        """Return the hosts that `give_up` would keep.

        :raises CantUpdateParameter: if more hosts than the maximum are in use
        """
        return _kept(part, {instance.host for instance in bound})

    def start(self, part: Part, now: int) -> base.Opened:
        """Clear the hosts of yielding servers; see `preemption.yields`.

        :returns: degraded if servers of others are to stay on the hosts; their
            uuids are kept as `in_the_way`
        """
        lease, reservation = part.lease, part.reservation
        held = part.held
        aggregate = self._gather(lease, reservation, held)
        evicted = self._evict(lease, reservation, held, now)
        made = {
            'aggregate_id': aggregate.id,
            'aggregate_uuid': aggregate.uuid,
            'projects': servers.projects(lease, reservation),
            'cleared': sorted(host.uuid for host in held),
            **evicted,
        }
        return base.Opened(bool(evicted['in_the_way']), made)

    def _in_the_way(
        self, lease: Lease, reservation: Reservation, held: Sequence[Host],
        now: int,
    ) -> list[Server]:
        """Return the servers in the way: all servers of others."""
        return self._vacater.all_others(lease, reservation, held, now)

    def _gather(
        self, lease: Lease, reservation: Reservation, hosts: Sequence[Host]
    ) -> Aggregate:
        """Make the aggregate contain exactly the hosts of the reservation."""
        names = [host.service_name for host in hosts]
        # At any moment a dedicated host is in this aggregate or in the pool,
        # or in both: a reader of the aggregates never finds the host free for
        # all.
        aggregate = aggregates.make(self._nova, lease, reservation, names)
        self._freepool.leave(names)
        left = aggregates.others(self._ledger, aggregate, hosts)
        self._freepool.join(_dedicated(left))
        for host in left:
            self._nova.remove_from_aggregate(aggregate, host.service_name)
        return aggregate

    def end(self, part: Part) -> bool:
        """End the reservation's servers, and give the hosts back.

        :returns: True if no server is left
        """
        lease, reservation = part.lease, part.reservation
        held = part.held
        own = self._servers.find(lease, reservation, held)
        if not servers.end_servers(self._nova, own, reservation.on_end):
            return False
        aggregate = self._nova.aggregate(reservation.id)
        left = aggregates.others(self._ledger, aggregate, held)
        self._freepool.join(_dedicated([*held, *left]))
        self._nova.delete_aggregate(reservation.id)
        return True


def _kept(part: Part, used: Collection[str]) -> list[Allocation]:
    """Return the allocations to keep, no more than the maximum.

    Of the hosts that are not in use, the failing hosts are given up first.

    :param used: the uuids of the hosts that are in use
    :raises CantUpdateParameter: if more hosts than the maximum are in use
    """
    most = part.reservation.demand.most
    in_use = [a for a in part.allocations if a.host in used]
    if len(in_use) > most:
        raise exception.CantUpdateParameter(
            f'{plural.are(len(in_use), "host")} in use by the reservation',
            field='max',
        )
    unused = sorted(
        (a for a in part.allocations if a.host not in used),
        key=lambda a: a.host in part.failing,
    )
    return in_use + unused[:most - len(in_use)]


def _dedicated(hosts: Iterable[Host]) -> list[str]:
    """Return the service names of the dedicated hosts."""
    return [h.service_name for h in hosts if h.hold == DEDICATED]
