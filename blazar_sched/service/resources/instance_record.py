# SPDX-License-Identifier: Apache-2.0
"""The instance record that the ledger keeps of a Nova server."""

import dataclasses

from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.relocation import is_movable
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.reservation import lifetime_id
from blazar_sched.replica import server_reservation
from blazar_sched.replica import state
from blazar_sched.service.clients.nova import Server


def make(
    replica: state.Replica,
    host: str,
    server: Server,
    now: int,
    rules: Rules | None = None,
    over: bool = False,
) -> Instance:
    """Return the instance record of a server, without a relocation path.

    A server that draws on a reservation lives as long as the reservation, or
    for itself if the reservation keeps its servers. The server is bound where
    the reservation has the host, and counts for itself on a host that the
    reservation has left.

    :param host: the uuid of the host, which the replica may lack only where
        no server is relocated
    :param rules: the rules of relocation; None if no server is relocated
    :param over: whether the server has outlived its own lease, so that nothing
        ends the server
    """
    new = Instance(
        uuid=server.uuid,
        host=host,
        project_id=server.project_id,
        amounts=server.amounts,
        used=server.used,
        end=window.FOREVER if over else _end(replica, server, now),
        preemptible=server.preemptible,
    )
    reservation = server_reservation.claim(replica, server, host, now)
    if reservation is None:
        movable = (
            _is_movable(new, server, rules) and replica.hosts[host].relocates
        )
        return dataclasses.replace(new, movable=movable)
    bound = server_reservation.has(replica, reservation.id, host)
    end = reservation.end
    if reservation.keeps:
        # An end inside the window is overruled: no server would be kept.
        end = new.end if new.end > end else window.FOREVER
    return dataclasses.replace(
        new,
        end=end,
        reservation_id=reservation.id if bound else None,
        claim=reservation.id,
    )


def _is_movable(
    instance: Instance, server: Server, rules: Rules | None
) -> bool:
    """Tell whether a server that counts for itself is relocated.

    A server that soon ends is not.
    """
    return (
        rules is not None
        and server.features is not None
        and not instance.preemptible
        and instance.end - server.created > rules.notice
        and is_movable(rules, server.features)
    )


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
