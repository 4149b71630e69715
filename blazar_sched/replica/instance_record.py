# SPDX-License-Identifier: Apache-2.0
"""The instance record that the ledger keeps of a Nova server.

The manager makes the record from the server that Nova reports. nova-scheduler
decides about the server that a request would leave, and derives the record of
that server by the same functions: what is decided is what is recorded.
"""

from blazar_sched.domain import relocation
from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.reservation import lifetime_id
from blazar_sched.domain.way import NOT
from blazar_sched.domain.way import weakest
from blazar_sched.replica import record
from blazar_sched.replica import server_reservation
from blazar_sched.replica import state
from blazar_sched.replica.server_reservation import Server


def make(
    replica: state.Replica, host: str, server: Server, now: int,
    rules: Rules | None = None, over: bool = False,
) -> Instance:
    """Return the instance record of a server, without a relocation path.

    The server is bound where the reservation that the server draws on has the
    host, and counts for itself on a host that the reservation has left.

    :param host: the uuid of the host, which the replica may lack only where
        no server is relocated
    :param rules: the rules of relocation; None if no server is relocated
    :param over: whether the server has outlived its own lease, so that nothing
        ends the server
    """
    reservation, end = drawn(replica, server, host, now, over)
    bound = reservation is not None and server_reservation.has(
        replica, reservation.id, host
    )
    claim = None if reservation is None else reservation.id
    movable = NOT
    if rules is not None and claim is None and replica.hosts[host].relocates:
        movable = weakest((way_of(server, rules), replica.hosts[host].movable))
    return Instance(
        uuid=server.uuid, host=host, project_id=server.project_id,
        amounts=server.amounts, used=server.used, end=end,
        reservation_id=claim if bound else None,
        preemptible=server.preemptible, claim=claim, movable=movable,
    )


def drawn(
    replica: state.Replica, server: Server, host: str | None, now: int,
    over: bool = False,
) -> tuple[record.Reservation | None, int]:
    """Return the reservation that a server draws on, and the server's end.

    A server that draws on a reservation lives as long as the reservation, or
    for itself if the reservation keeps its servers.

    :param host: the uuid of the server's host, None if that is not known
    :param over: as of `make`
    """
    reservation = server_reservation.claim(replica, server, host, now)
    end = window.FOREVER if over else _end(replica, server, now)
    if reservation is None:
        return None, end
    if not reservation.keeps:
        return reservation, reservation.end
    # An end inside the window is overruled: no server would be kept.
    return reservation, end if end > reservation.end else window.FOREVER


def way_of(server: Server, rules: Rules | None) -> str:
    """Return how a server that counts for itself is relocated.

    A server with an end is moved like one without: else the server that says
    less would find room where the other does not.
    """
    if rules is None or server.features is None or server.preemptible:
        return NOT
    return relocation.way(rules, server.features)


def _end(replica: state.Replica, server: Server, now: int) -> int:
    """Return until when a server counts for itself.

    A server counts until the end of its own lease, which may differ from the
    declared end by now. A server that is to start later has left its host by
    its start.
    """
    own = replica.reservations.get(lifetime_id(server.uuid))
    if own is None:
        start, end = server.start or 0, server.end
        if server.reservation_id is not None and end <= now:
            # The server had no lease of its own to end it: the reservation had
            # the server.
            end = window.FOREVER
    else:
        start, end = own.start, own.end
    return start if start > now else end
