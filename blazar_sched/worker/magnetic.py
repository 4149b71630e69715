# SPDX-License-Identifier: Apache-2.0
"""Magnetic reservations, used by their project without a hint."""

from collections.abc import Iterable

from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import server_reservation
from blazar_sched.replica import state
from blazar_sched.worker.request import Request


def hosts_of_project(
    replica: state.Replica, request: Request, host_states: Iterable[HostState],
    now: int,
) -> list[HostState]:
    """Return the hosts of the magnetic reservations of the request's project.

    Only allocations that are open at `now` are considered, on hosts that are
    not closed, and on which the instance will draw on its reservation: an
    instance that was in the way of the reservation does not. The allocations
    are of whole hosts: Nova and Placement count the instances on them.
    """
    if request.bound or request.project_id is None:
        return []
    hosts = {
        host
        for id_ in tuple(replica.magnetic.get(request.project_id, ()))
        if id_ in replica.reservations
        for _, host, start, end, *_ in replica.indexes.main.held(id_)
        if start <= now < end and not replica.is_closed(host, now)
        and server_reservation.claim(replica, request.server, host, now)
    }
    return [h for h in host_states if h.uuid in hosts] if hosts else []
