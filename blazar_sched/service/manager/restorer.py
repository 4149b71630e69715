# SPDX-License-Identifier: Apache-2.0
"""Brings servers back that had to make room, and takes back what was said.

What it goes by is the servers' own metadata, see `resources.vacating`: so it
does not matter which manager vacated them, and several may do the same.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import event as event_
from blazar_sched.domain import reservation as reservation_
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.manager import loop
from blazar_sched.service.resources import vacating

LOG = log.getLogger(__name__)

# How many servers are asked for in one step.
MOST = 10
# Seconds between two tries, however often one has found no room.
RAREST = 3600


@dataclasses.dataclass(slots=True)
class _Tries:
    """How often a server was asked for, and when it may be again."""

    count: int = 0
    not_before: float = float('-inf')


class Restorer:
    """Unshelves servers where nova-scheduler finds room for them.

    :param clock: returns the time in epoch seconds
    :param monotonic: measures how long a server waits
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: ledger_.Ledger,
        nova: nova_.Nova,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._nova = nova
        self._clock = clock
        self._monotonic = monotonic
        self._tries: dict[str, _Tries] = {}
        self._loop = loop.Loop(
            'restorer', self.step, lambda: self._conf.restore_interval
        )

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def step(self) -> None:
        """Look at all servers once.

        :raises Unavailable: if Nova does not answer
        """
        # Before it is asked what is being vacated: whoever was told by then
        # was told of something that is under way, or over.
        marked = [
            server
            for server in self._nova.servers()
            if {vacating.VACATE_AT, vacating.RESTORE} & server.metadata.keys()
        ]
        self._tries = {
            s.uuid: self._tries.get(s.uuid) or _Tries() for s in marked
        }
        # Not earlier: a long list takes its time.
        now = int(self._clock())
        vacated = self._vacated(now)
        resting = [
            server
            for server in marked
            if server.task is None and server.node not in vacated
        ]
        self._take_back(s for s in resting if s.status not in nova_.SHELVED)
        self._bring_back(
            [
                s
                for s in resting
                if s.status in nova_.SHELVED
                and vacating.RESTORE in s.metadata
            ],
            now,
        )

    def _take_back(self, servers: Iterable[nova_.Server]) -> None:
        """Take the metadata off servers that have nothing ahead any more."""
        for server in servers:
            self._nova.set_server_metadata(
                server,
                {
                    name: None
                    for name in (vacating.VACATE_AT, vacating.RESTORE)
                    if name in server.metadata
                },
            )

    def _vacated(self, now: int) -> set[str]:
        """Return the hostnames of the hosts that are being vacated."""
        uuids = {
            allocation.host
            for event, _ in self._ledger.due_events(now)
            if event.event_type == event_.VACATE_HOSTS
            for allocation, _ in self._ledger.allocations(
                lease_id=event.lease_id
            )
        }
        return {h.hypervisor_hostname for h in self._ledger.hosts(uuids)}

    def _bring_back(
        self, servers: Sequence[nova_.Server], now: int
    ) -> None:
        """Unshelve some: who has found no room least often, then the oldest.

        One that finds none stays shelved, and waits twice as long for every
        time that it did.
        """
        at = self._monotonic()
        due = self._alive(
            [s for s in servers if self._tries[s.uuid].not_before <= at], now
        )
        due.sort(
            key=lambda s: (self._tries[s.uuid].count, s.created, s.uuid)
        )
        for server in due[:MOST]:
            tries = self._tries[server.uuid]
            wait = self._conf.restore_interval * 2**tries.count
            tries.count += wait < RAREST
            tries.not_before = at + min(wait, RAREST)
            LOG.info('Server %s is to come back', server.uuid)
            self._nova.unshelve_server(server)

    def _alive(
        self, servers: Sequence[nova_.Server], now: int
    ) -> list[nova_.Server]:
        """Return those servers whose own time has come and is not over."""
        if not servers:
            return []

        def times_of(
            replica: state.Replica,
        ) -> list[nova_.Server | record.Reservation]:
            known = replica.reservations
            return [
                known.get(reservation_.lifetime_id(s.uuid)) or s
                for s in servers
            ]

        # The reservation of its own lifetime says it, else the server.
        times = self._ledger.look(times_of)
        return [
            server
            for server, time in zip(servers, times, strict=True)
            if (time.start or 0) <= now < time.end
        ]
