# SPDX-License-Identifier: Apache-2.0
"""Assignment of servers to the reservations that they draw on.

`draws_on` is the single definition, used for the records of the servers and
for what is done to the servers at the start, before the end and at the end of
a reservation.
"""

from collections.abc import Mapping
import dataclasses
from typing import Protocol

from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.label import hinted
from blazar_sched.domain.relocation import Features
from blazar_sched.replica import record
from blazar_sched.replica import state


class Server(Protocol):
    """The attributes of a Nova server that its instance record needs.

    `amounts` and `used` are as in domain.instance, `start` and `end` as in
    domain.hints; `reservation_id` is the reservation that the server's hint or
    flavor names; `created` is in epoch seconds, 0 if it is not known; without
    `features` the server is not relocated.
    """

    @property
    def uuid(self) -> str: ...

    @property
    def project_id(self) -> str: ...

    @property
    def reservation_id(self) -> str | None: ...

    @property
    def created(self) -> int: ...

    @property
    def amounts(self) -> Mapping[str, int]: ...

    @property
    def used(self) -> Mapping[str, int] | None: ...

    @property
    def start(self) -> int | None: ...

    @property
    def end(self) -> int: ...

    @property
    def preemptible(self) -> bool: ...

    @property
    def features(self) -> Features | None: ...


def draws_on(
    reserved: record.Reservation, server: Server, known: Instance | None,
    host: str | None,
) -> bool:
    """Tell whether a server draws on a reservation.

    A server that names a reservation draws on that reservation alone, and one
    that names a label on the reservation that its record says. Another
    server that is not preemptible draws on a reservation of whole hosts of its
    own project, on a host of the reservation, in any of three cases: the
    server's record says so; the server was created inside the window; or the
    server has come to the host since the start of the reservation cleared the
    host. The record of a server may be late, so a server without a record, or
    with a record of another host, may have been on the host before: the start
    of the reservation notes which servers were.

    :param known: the server's record, None if there is none
    :param host: the uuid of the server's host if the reservation has the
        host, else None
    """
    if hinted(server.reservation_id):
        return known is not None and known.claim == reserved.id
    if server.reservation_id is not None:
        return server.reservation_id == reserved.id and reserved.was_open_to(
            server.project_id
        )
    if (
        host is None
        or reserved.resource_type != PHYSICAL_HOST
        or server.project_id != reserved.project_id
        or server.preemptible
        or reserved.end <= server.created
    ):
        return False
    if known is not None and known.claim is not None:
        return known.claim == reserved.id
    if reserved.start <= server.created:
        return True
    return (
        host in reserved.cleared
        and server.uuid not in reserved.in_the_way
        and (known is None or known.host != host)
    )


def will_draw_on(
    replica: state.Replica, reserved: record.Reservation, server: Server
) -> bool:
    """Tell whether a server names a reservation by a label, not recorded yet.

    The reservation may end before the server's record is there.
    """
    return (
        server.uuid not in replica.instances
        and hinted(server.reservation_id) is not None
        and claim(replica, server, None, server.created) == reserved
    )


def claim(
    replica: state.Replica, server: Server, host: str | None, now: int
) -> record.Reservation | None:
    """Return the reservation that a server draws on, None if there is none.

    A server no longer draws on a reservation that keeps its servers once the
    window of the reservation is over.

    :param host: the uuid of the server's host, None if that is not known
    """
    known = replica.instances.get(server.uuid)
    if known is not None and known.host != host and not (
        known.claim and host in replica.indexes.allocations(known.claim)
    ):
        # The record names the reservation drawn on at the previous host.
        known = dataclasses.replace(known, claim=None)
    for reserved in _candidates(replica, server, known, host, now):
        if reserved.keeps and reserved.end <= now:
            continue
        on = host if host and has(replica, reserved.id, host) else None
        if hinted(server.reservation_id) or draws_on(
            reserved, server, known, on
        ):
            return reserved
    return None


def has(replica: state.Replica, reservation_id: str, host: str) -> bool:
    """Tell whether a reservation has a host.

    A failed host that the reservation has lost still counts: the reservation
    may get the host back with the servers on it, and then the start of the
    reservation must not treat these servers as being in the way.
    """
    known = replica.hosts.get(host)
    if known is not None and not known.reservable:
        return True
    return host in replica.indexes.allocations(reservation_id)


def _candidates(
    replica: state.Replica, server: Server, known: Instance | None,
    host: str | None, now: int,
) -> list[record.Reservation]:
    """Return the reservations that a server may draw on.

    Of the reservations with the label that a server names, and that were open
    when the server was created, the one that ends last is first.
    """
    label = hinted(server.reservation_id)
    named = None if label else server.reservation_id
    if named is None and known is not None:
        named = known.claim
    if named is not None:
        reservation = replica.reservations.get(named)
        return [] if reservation is None else [reservation]
    if label:
        labelled = replica.labelled.get((server.project_id, *label), ())
        return sorted(
            (
                reservation
                for reservation in map(
                    replica.reservations.get, tuple(labelled)
                )
                if reservation is not None
                and reservation.start <= server.created < reservation.end
            ),
            key=lambda each: (-each.end, each.id),
        )
    whole = sorted(replica.whole.get(server.project_id, ()))
    return [
        reservation
        for reservation in map(replica.reservations.get, whole)
        # Another thread may remove a reservation.
        if reservation is not None
        and reservation.start <= now < reservation.end
        and host in replica.indexes.allocations(reservation.id)
    ]
