# SPDX-License-Identifier: Apache-2.0
"""No server is lost without need."""

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import reservation
from blazar_sched.service.resources import vacating
from tests.simulation import history
from tests.simulation import occupancy
from tests.simulation.promises import registry

_ENDS = {
    history.DELETED: (reservation.DELETE, reservation.SNAPSHOT),
    history.SHELVED: (reservation.SHELVE, reservation.SNAPSHOT),
}


@registry.promise
def a_server_goes_at_its_end_or_is_told(world):
    """A server is deleted at its end, or after a notice.

    The service ends a reservation's own servers at the end of the reservation,
    by its `on_end`; it deletes any other server only after a notice, unless
    the server yields.
    """
    for did in world.news:
        if did.what in _ENDS and not _may_go(world, did):
            yield (
                f'{did.server.uuid} of {did.server.project_id} on '
                f'{did.server.node} was {did.what}, and is of '
                f'{list(reservations_of(world, did.server))}'
            )


def reservations_of(world, server):
    """Yield the reservations to which a server belongs."""
    return world.book.of(server, world.cloud.came[server.uuid])


def _may_go(world, did):
    server, at = did.server, did.at
    if server.preemptible or occupancy.end_of_own(world, server) <= at:
        return True
    if _told(server) <= at:
        return True
    return any(
        r.is_over(at) and r.on_end in _ENDS[did.what]
        for r in reservations_of(world, server)
    )


def _told(server):
    """Return when a server got its notice, or a time that never comes."""
    try:
        return duration.parse_time(
            server.metadata.get(vacating.VACATE_AT), vacating.VACATE_AT
        )
    except exception.InvalidInput:
        return float('inf')
