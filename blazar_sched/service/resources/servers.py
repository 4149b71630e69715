# SPDX-License-Identifier: Apache-2.0
"""A reservation's servers, and what becomes of them when it ends."""

from collections.abc import Iterable

from blazar_sched.domain import lease as lease_
from blazar_sched.domain import reservation as reservation_
from blazar_sched.service.clients import nova as nova_


def projects(
    lease: lease_.Lease, reservation: reservation_.Reservation
) -> list[str]:
    """Return the projects that may have servers of a reservation.

    Also those that it was shared with before.
    """
    before = reservation.made.get('projects', ())
    return sorted({lease.project_id, *reservation.projects, *before})


def of_projects(
    nova: nova_.Nova,
    lease: lease_.Lease,
    reservation: reservation_.Reservation,
) -> list[nova_.Server]:
    """Return all servers of these projects, also those not bound to it."""
    return [
        server
        for project_id in projects(lease, reservation)
        for server in nova.servers(project_id=project_id)
    ]


def bound(
    nova: nova_.Nova,
    lease: lease_.Lease,
    reservation: reservation_.Reservation,
) -> list[nova_.Server]:
    """Return the servers of these projects that draw on the reservation."""
    return [
        server
        for server in of_projects(nova, lease, reservation)
        if server.reservation_id == reservation.id
    ]


def end_servers(
    nova: nova_.Nova, servers: Iterable[nova_.Server], on_end: str
) -> bool:
    """Delete servers, shelve them off their hosts, or let them be.

    It may be called again, with those that are there then.

    :param on_end: the reservation's
    :returns: True if nothing more is to be waited for
    :raises Unavailable: if it is to be tried again
    """
    if on_end == reservation_.KEEP:
        return True
    if on_end == reservation_.SHELVE:
        return nova.shelve_servers(servers)
    return nova.delete_servers(servers)
