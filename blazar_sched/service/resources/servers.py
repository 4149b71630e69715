# SPDX-License-Identifier: Apache-2.0
"""The servers of a reservation, and their end with the reservation."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import contextvars

from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import KEEP
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import SHELVE
from blazar_sched.replica import server_reservation
from blazar_sched.replica import state
from blazar_sched.service.clients.nova import ERROR
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger.ledger import Ledger

# The servers that Nova has listed already, by filter name and value.
_Listed = dict[tuple[str, str], list[Server]]
_listed: contextvars.ContextVar[_Listed | None] = contextvars.ContextVar(
    'listed', default=None
)


@contextlib.contextmanager
def listing_once() -> Iterator[None]:
    """Query Nova only once for each list of servers in this context."""
    token = _listed.set({})
    try:
        yield
    finally:
        _listed.reset(token)


def projects(lease: Lease, reservation: Reservation) -> list[str]:
    """Return the projects that may have servers of a reservation.

    The projects that the reservation was shared with before are included.
    """
    before = reservation.made.get('projects', ())
    return sorted({lease.project_id, *reservation.projects, *before})


class Finder:
    """A finder of the servers of reservations in Nova."""

    def __init__(self, ledger: Ledger, nova: Nova) -> None:
        self._ledger = ledger
        self._nova = nova

    def find(
        self, lease: Lease, reservation: Reservation, hosts: Collection[Host]
    ) -> list[Server]:
        """Return the servers that draw on a reservation.

        Nova lists all servers of the lease's project. Of other projects Nova
        lists the servers on the hosts, and all servers of the projects that
        are known to have a server that draws on the lease.

        A server of which no record says that the server draws on the
        reservation may have come to the host after the end of the lease,
        before any look at Nova recorded the move. Nova is queried about such a
        server.

        :param hosts: the hosts of the reservation
        :raises Unavailable: if Nova does not answer
        """
        claiming = self._ledger.claiming([reservation.id])
        having = {instance.project_id for instance in claiming}
        found = {
            server.uuid: server
            for name, value in _lists(lease, reservation, hosts, having)
            for server in self._list(name, value)
        }
        uuid_of = {host.hypervisor_hostname: host.uuid for host in hosts}
        own = self.drawing(
            reservation.id,
            [(s, uuid_of.get(s.node or '')) for s in found.values()],
        )
        recorded = {instance.uuid for instance in claiming}
        return [
            server
            for server in own
            if server.reservation_id is not None
            or server.uuid in recorded
            or not self._nova.has_moved(server, lease.end)
        ]

    def drawing(
        self, reservation_id: str,
        servers: Collection[tuple[Server, str | None]],
    ) -> list[Server]:
        """Return the servers that draw on a reservation.

        :param servers: each server with the uuid of its host if the
            reservation has the host, else None
        """

        def look(replica: state.Replica) -> list[Server]:
            reservation = replica.reservations.get(reservation_id)
            if reservation is None:
                return []
            known = replica.instances
            return [
                server
                for server, host in servers
                if server_reservation.draws_on(
                    reservation, server, known.get(server.uuid), host
                ) or server_reservation.will_draw_on(
                    replica, reservation, server
                )
            ]

        return self._ledger.read_replica(look)

    def _list(self, name: str, value: str) -> list[Server]:
        listed = _listed.get()
        if listed is None:
            return list(self._nova.servers(**{name: value}))
        if (name, value) not in listed:
            listed[name, value] = list(self._nova.servers(**{name: value}))
        return listed[name, value]


def _lists(
    lease: Lease, reservation: Reservation, hosts: Iterable[Host],
    having: set[str],
) -> Iterator[tuple[str, str]]:
    """Yield the filters for Nova's server lists: filter name, value.

    :param having: the projects that have servers according to the records
    """
    may = projects(lease, reservation)
    if len(may) > 1:
        for host in hosts:
            yield 'host', host.service_name
    for project_id in sorted(having.intersection(may) | {lease.project_id}):
        yield 'project_id', project_id


def end_servers(nova: Nova, servers: Iterable[Server], on_end: str) -> bool:
    """Delete servers, shelve them off their hosts, or leave them alone.

    A server in status ERROR, which Nova does not shelve, is left alone instead
    of being shelved. A server of which Nova is making an image is not deleted
    yet: the image would be lost. The function may be called again, with the
    servers that still exist then.

    :param on_end: the end action of the reservation
    :returns: True if nothing more is to be waited for
    :raises Unavailable: if the call is to be tried again
    """
    if on_end == KEEP:
        return True
    if on_end == SHELVE:
        return nova.shelve_servers(s for s in servers if s.status != ERROR)
    servers = list(servers)
    copied = [server for server in servers if server.is_copied]
    return nova.delete_servers(s for s in servers if not s.is_copied) and (
        not copied
    )
