# SPDX-License-Identifier: Apache-2.0
"""Unshelving of the servers that the service shelved to vacate hosts.

The ledger records these servers, so any manager may unshelve them, and several
managers may do so at once. The metadata of a server only informs the owner:
owners write metadata as they like, so no server is unshelved because of its
metadata.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import itertools

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import reservation
from blazar_sched.domain.event import VACATE_HOSTS
from blazar_sched.replica import record
from blazar_sched.service import loop
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.clients.nova import SHELVED
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.resources import preemption
from blazar_sched.service.resources import vacating
from blazar_sched.service.upkeep.closing import closing

LOG = log.getLogger(__name__)

# The most servers that are requested to be unshelved in one step.
MAX_SERVERS = 10
# The longest pause between two tries, in seconds, however often a server has
# found no room.
RAREST = 3600
# The metadata keys that inform the owner of a server.
_MARKS = {vacating.VACATE_AT, preemption.RESTORE}


@dataclasses.dataclass(slots=True)
class _Attempts:
    """The number of tries for a server, and the earliest next try."""

    count: int = 0
    not_before: float = float('-inf')


class Restorer(loop.Looped):
    """The loop that unshelves servers where nova-scheduler finds room.

    :param clock: returns the time in epoch seconds
    :param monotonic: the clock that measures how long a server waits
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, nova: Nova,
        clock: Callable[[], float], monotonic: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._nova = nova
        self._clock = clock
        self._monotonic = monotonic
        self._attempts: dict[str, _Attempts] = {}
        self._marked = loop.Objects[Server]('restorer metadata', metrics)
        self._due = loop.Objects[Server]('restorer', metrics)
        self._loop = loop.Loop(
            'restorer', self.step, lambda: self._conf.restore_interval
        )

    def step(self) -> None:
        """Look at all servers once.

        :raises Unavailable: if Nova does not answer
        """
        known = self._ledger.shelved_servers()
        # Other managers unshelve servers as well.
        self._attempts = {
            u: a for u, a in self._attempts.items() if u in known
        }
        # The servers are listed before the ledger is asked which hosts are
        # being vacated: the notice in the metadata of a listed server then
        # belongs to vacating that is in progress, or is over.
        servers = [
            server
            for server in self._nova.servers()
            if server.uuid in known or _MARKS & server.metadata.keys()
        ]
        # The time is read after the listing: a long list takes some time.
        now = int(self._clock())
        vacated = self._vacated(now)
        resting = [
            server
            for server in servers
            if server.task is None and server.node not in vacated
        ]
        running = [s for s in resting if s.status not in SHELVED]
        self._forget(
            known.intersection(s.uuid for s in running)
            | self._gone(known.difference(s.uuid for s in servers))
        )
        self._marked.each(
            ((s.uuid, s) for s in running if _MARKS & s.metadata.keys()),
            self._take_back, now,
        )
        self._unshelve(
            [
                s
                for s in resting
                if s.status in SHELVED
                and s.uuid in known
                # An administrator keeps the server shelved.
                and not s.locked
            ],
            now,
        )

    def _gone(self, uuids: Iterable[str]) -> set[str]:
        """Return the servers that no longer exist, which lists do not show.

        At most MAX_SERVERS servers are queried; the others are left to the
        next steps.
        """
        asked = itertools.islice(sorted(uuids), MAX_SERVERS)
        return {uuid for uuid in asked if self._nova.server(uuid) is None}

    def _forget(self, uuids: Collection[str]) -> None:
        """Delete the records of servers that are back, or no longer exist."""
        if uuids:
            self._ledger.write(lambda tx: tx.drop_shelved_servers(uuids))

    def _take_back(self, server: Server) -> None:
        """Remove the metadata of a server that nothing is planned for."""
        self._nova.set_server_metadata(
            server,
            {
                name: None
                for name in (vacating.VACATE_AT, preemption.RESTORE)
                if name in server.metadata
            },
        )

    def _vacated(self, now: int) -> set[str]:
        """Return the hostnames of the hosts that are being vacated."""
        lead_time = self._conf.vacate_lead_time
        uuids = set(self._ledger.read_replica(
            lambda replica: [
                host.uuid
                for host, _ in closing(replica, now, lead_time)
            ]
        ))
        uuids |= {
            allocation.host
            for event, _ in self._ledger.due_events(now)
            if event.event_type == VACATE_HOSTS
            for allocation, _ in self._ledger.allocations(
                lease_id=event.lease_id
            )
        }
        return {h.hypervisor_hostname for h in self._ledger.hosts(uuids)}

    def _unshelve(self, servers: Sequence[Server], now: int) -> None:
        """Unshelve the due servers, the least tried first, then the oldest.

        A server that finds no room stays shelved, and its waiting time doubles
        with each try.
        """
        at = self._monotonic()
        for server in servers:
            self._attempts.setdefault(server.uuid, _Attempts())
        due = self._alive(
            [s for s in servers if self._attempts[s.uuid].not_before <= at],
            now,
        )
        due.sort(
            key=lambda s: (self._attempts[s.uuid].count, s.created, s.uuid)
        )

        def unshelve(server: Server) -> None:
            attempts = self._attempts[server.uuid]
            wait = self._conf.restore_interval * 2**attempts.count
            attempts.count += wait < RAREST
            attempts.not_before = at + min(wait, RAREST)
            LOG.info('Unshelving server %s', server.uuid)
            self._nova.unshelve_server(server)

        self._due.each(((s.uuid, s) for s in due[:MAX_SERVERS]), unshelve, now)

    def _alive(self, servers: Sequence[Server], now: int) -> list[Server]:
        """Return the servers whose own time has come and is not over."""
        if not servers:
            return []
        ids = [reservation.lifetime_id(s.uuid) for s in servers]
        known = self._ledger.reservation_records(ids, over=True)
        # The reservation of the server's lifetime has the times, otherwise the
        # server itself.
        times: list[Server | record.Reservation] = [
            known.get(id_) or server
            for id_, server in zip(ids, servers, strict=True)
        ]
        return [
            server
            for server, time in zip(servers, times, strict=True)
            if (time.start or 0) <= now < time.end
        ]
