# SPDX-License-Identifier: Apache-2.0
"""Synchronization of the ledger's instance records with Nova's servers.

Instance records exist for the servers on reservable hosts; leases of their own
lifetime, see manager.lifetime, exist for servers anywhere. Nova is queried for
the servers that were noticed, and regularly for all servers. While Nova does
not answer the records stay as they are. The filters of nova-scheduler are
stricter then: see replica.present. A lease may be placed on a host that
servers without a record have filled in the meantime; these servers are vacated
before the lease starts.

Several queries of Nova, in this manager or in other managers, may be in
progress at the same time. Each write is therefore conditional on what the
ledger held before Nova was queried: where the record differs by now, another
synchronization has written a newer record.
"""

import bisect
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import threading
from typing import Any

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.relocation import Rules
from blazar_sched.replica import instance_record
from blazar_sched.replica import limited_log
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service import slices
from blazar_sched.service.booking import placing_options
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.upkeep import misplaced
from blazar_sched.service.upkeep import relocation
from blazar_sched.service.upkeep.lifetime import Lifetimes

LOG = log.getLogger(__name__)

# The most servers that are queried one by one in a step, and the number of
# noticed servers above which all servers are listed instead.
MAX_SERVERS = 300
FLOOD = 1500
# The most servers that are written in one commit.
PAGE = 50
# How often a moving server is looked at, a second apart, if it is not noticed
# again; after that the server is left to the next look at all servers.
LOOKS = 60
# The Nova status of a server whose task may not be known yet.
_BUILD = 'BUILD'
# The seconds for which a start waits until all servers were looked at.
FIRST_SYNC = 60.0
# The most seconds for which an announcement of a placed server may wait for a
# manager: Nova shows the host of an older server, or that there is none.
MAX_ANNOUNCEMENT_DELAY = 60


@dataclasses.dataclass(frozen=True, slots=True)
class _View:
    """The state of the ledger before Nova was queried.

    `nodes` maps hypervisor hostnames to the uuids of the hosts.
    """

    nodes: Mapping[str, str]
    instances: Mapping[str, Instance]


class Instances:
    """The instance records.

    :param lifetimes: is given all servers that are seen, or gone
    :param clock: returns the time in epoch seconds
    :param metrics_: the metrics that count what the manager does
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, nova: Nova,
        lifetimes: Lifetimes, notifier: Notifier, clock: Callable[[], float],
        metrics_: Metrics,
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._nova = nova
        self._lifetimes = lifetimes
        self._notifier = notifier
        self._clock = clock
        self._metrics = metrics_
        self._late = limited_log.LimitedLog(LOG)
        self._lock = threading.Lock()
        # By server uuid: the most looks until the server stops moving; the
        # server noticed first comes first.
        self._noticed: dict[str, int] = {}
        # The preemptible servers that were placed, and are not booked yet.
        self._placed: dict[str, Instance] = {}
        # The servers that Nova could not report, and that were already logged.
        self._unknown: frozenset[str] = frozenset()
        # The last server queried of the servers missing from lists.
        self._last = ''
        self._syncer = loop.Loop(
            'instance sync', self.sync, lambda: conf.manager.sync_interval
        )
        self._looker = loop.Loop('instance poll', self.poll)

    @property
    def loops(self) -> tuple[loop.Loop, ...]:
        return self._syncer, self._looker

    def start(self) -> None:
        self._syncer.start()
        self._looker.start()

    def stop(self) -> None:
        self._looker.stop()
        self._syncer.stop()

    def await_sync(self) -> None:
        """Wait until every server was looked at once, or Nova has failed."""
        if not self._syncer.await_step(FIRST_SYNC):
            LOG.warning(
                'Nova has not shown all servers in %d s: leases may be placed '
                'on capacity that servers use', FIRST_SYNC
            )

    def wake(self) -> None:
        """Look at every server now."""
        self._syncer.wake()

    def notice(self, uuid: str) -> None:
        """Look soon at a server that may have come, changed or gone."""
        with self._lock:
            self._noticed[uuid] = LOOKS

    def book(self, placed: Instance, placed_at: int) -> None:
        """Write the record of a server that nova-scheduler has placed.

        The server counts from now on, in its reservation or with a relocation
        path if it needs one, so that new leases and other servers find the
        room taken. A server that has a record moves: the record stays until
        Nova names the new host.

        A preemptible server takes no room of these: preemptible servers, of
        which very many may come at once, are booked by the next `poll` in one
        commit, for the leases on whose hosts these servers may not be.

        :param placed: the record as nova-scheduler knows it
        :param placed_at: epoch seconds
        """
        now = int(self._clock())
        if abs(now - placed_at) > MAX_ANNOUNCEMENT_DELAY:
            self._metrics.of(metrics.LATE_PLACEMENTS).inc()
            self._late.report(
                f'A server was placed {now - placed_at} s before the manager '
                'has been told: the clock of nova-scheduler is wrong, or the '
                'message bus was away'
            )
        if now - placed_at > MAX_ANNOUNCEMENT_DELAY:
            self.notice(placed.uuid)
            return
        if placed.preemptible:
            with self._lock:
                if len(self._placed) < FLOOD:
                    self._placed[placed.uuid] = placed
        else:
            self._book([placed], now)
        self.notice(placed.uuid)

    def _book(self, placed: Iterable[Instance], now: int) -> None:
        """Write the records of servers that have none, in one commit."""
        rules = placing_options.rules(self._conf)

        def work(tx: PlacingTx) -> None:
            replica = tx.replica
            replica.advance(now)
            booked = []
            for each in placed:
                if each.uuid in replica.instances or (
                    each.host not in replica.hosts
                ):
                    continue
                new = instance_record.make(
                    replica, each.host, _as_placed(each, now), now
                )
                new = dataclasses.replace(
                    new, building=True,
                    movable='' if new.claim else each.movable,
                )
                booked.append(
                    relocation.with_path(replica, None, new, now, rules)
                )
                tx.expect(booked[-1:])
            tx.put_instances(booked)

        self._ledger.commit(work)

    def poll(self) -> None:
        """Look at the noticed servers, at most MAX_SERVERS of them.

        Servers that are moving, or whose state is not known now, stay noticed.
        """
        with self._lock:
            placed, self._placed = self._placed, {}
        if placed:
            for some in slices.of(placed.values(), PAGE):
                self._book(some, int(self._clock()))
        looks = self._take()
        if not looks:
            return
        again = looks
        try:
            moving, unknown = self._poll(looks)
            again = {uuid: looks[uuid] for uuid in unknown}
            again |= {uuid: looks[uuid] - 1 for uuid in moving}
        finally:
            self._put_back(again)

    def sync(self) -> None:
        """Look at every server, and write the differences.

        A list may lack a server that exists. Missing servers are therefore
        queried by id, at most MAX_SERVERS of them, and the remaining servers
        at the next call.

        :raises Unavailable: if Nova does not answer
        """
        view = self._view()
        listed: set[str] = set()
        for page in slices.of(self._nova.servers(), PAGE):
            self._write(view, page)
            listed.update(server.uuid for server in page)
        missing = self._missing(listed)
        # In turns: a soft-deleted server stays missing from lists, but exists.
        at = bisect.bisect(missing, self._last)
        turn = (missing[at:] + missing[:at])[:MAX_SERVERS]
        if turn:
            self._last = turn[-1]
            self._poll(turn)

    def _take(self) -> dict[str, int]:
        """Take the servers to look at now; replace a flood by a full look."""
        with self._lock:
            if len(self._noticed) > FLOOD:
                self._noticed.clear()
                self.wake()
            first = list(itertools.islice(self._noticed, MAX_SERVERS))
            return {uuid: self._noticed.pop(uuid) for uuid in first}

    def _put_back(self, looks: Mapping[str, int]) -> None:
        with self._lock:
            for uuid, left in looks.items():
                if left:
                    self._noticed.setdefault(uuid, left)

    def _view(self) -> _View:
        def work(tx: PlacingTx) -> tuple[list[Any], dict[str, Any]]:
            return list(tx.replica.hosts.values()), dict(tx.replica.instances)

        hosts, instances = self._ledger.commit(work)
        return _View(
            {host.hypervisor_hostname: host.uuid for host in hosts}, instances
        )

    def _missing(self, listed: Collection[str]) -> list[str]:
        """Return the uuids of the known servers that were not listed."""

        def work(tx: PlacingTx) -> set[str]:
            assert tx.replica is not None
            return set(tx.replica.instances)

        known = self._ledger.commit(work)
        # A shelved server has no instance record.
        leased = self._lifetimes.missing(
            known.union(listed), int(self._clock())
        )
        return sorted(known.difference(listed).union(leased))

    def _poll(self, uuids: Iterable[str]) -> tuple[list[str], list[str]]:
        """Write the state of servers, queried one by one from Nova.

        :returns: the uuids of the moving servers, and the uuids of the servers
            that are to be queried again
        :raises Unavailable: if Nova does not answer for any of the servers
        """
        view = self._view()
        found: list[Server] = []
        gone: list[str] = []
        unknown: list[str] = []
        trouble: Exception | None = None
        for uuid in uuids:
            try:
                server = self._nova.server(uuid)
            except exception.Unavailable as e:
                trouble = e
                unknown.append(uuid)
                continue
            if server is None:
                gone.append(uuid)
            else:
                found.append(server)
        if trouble is not None:
            self._report(unknown, trouble, are_all=not found and not gone)
        self._unknown = self._unknown.union(unknown).difference(
            gone, (server.uuid for server in found)
        )
        for some in slices.of(gone, PAGE):
            unknown += self._write(view, (), some)
        for page in slices.of(found, PAGE):
            unknown += self._write(view, page)
        return [s.uuid for s in found if _is_moving(s)], unknown

    def _report(
        self, unknown: Collection[str], trouble: Exception, are_all: bool
    ) -> None:
        """Log the servers that Nova cannot report, each server once.

        :raises Unavailable: if Nova could report none of the queried servers
        """
        if are_all:
            raise exception.Unavailable(
                f'Nova cannot report {len(unknown)} servers',
                detail=str(trouble),
            )
        if not self._unknown.issuperset(unknown):
            LOG.warning(
                'Nova cannot report %d servers: %s', len(unknown), trouble
            )

    def _write(
        self, view: _View, servers: Sequence[Server], gone: Sequence[str] = ()
    ) -> list[str]:
        """Write the differences, in one commit.

        :param gone: the uuids of servers that are known not to exist any more
        :returns: the uuids of servers whose records others have written since
            the view
        """
        now = int(self._clock())
        rules = placing_options.rules(self._conf)

        def work(tx: PlacingTx) -> Any:
            known = tx.replica.instances
            current = [
                s for s in servers
                if known.get(s.uuid) == view.instances.get(s.uuid)
            ]
            of_servers = self._lifetimes.write(tx, current, now)
            written = of_servers, self._lifetimes.forget(tx, gone)
            tx.delete_instances([uuid for uuid in gone if uuid in known])
            changed = _put(
                tx, view.nodes, current, now, rules, of_servers.over
            )
            return written, current, changed

        written, current, changed = self._ledger.commit(work)
        misplaced.report(self._ledger, self._notifier, changed, now)
        for new in changed:
            relocation.report_end(
                self._notifier, view.nodes, view.instances.get(new.uuid), new
            )
        for each in written:
            try:
                self._lifetimes.follow(each)
            except exception.Unavailable as e:
                # The next look repeats the action; the other servers do not
                # wait.
                LOG.warning(
                    'Could not act on the lifetime leases of servers: %s', e
                )
        done = {server.uuid for server in current}
        return [s.uuid for s in servers if s.uuid not in done]


def _as_placed(placed: Instance, now: int) -> Server:
    """Return a server that nova-scheduler has placed, as Nova will show it.
    """
    return Server(
        uuid=placed.uuid, node=None, project_id=placed.project_id,
        amounts=placed.amounts, used=placed.used, end=placed.end,
        reservation_id=placed.claim, preemptible=placed.preemptible,
        created=now,
    )


def _is_moving(server: Server) -> bool:
    """Tell whether Nova is about to change a server by itself."""
    return server.task is not None or server.status == _BUILD


def _put(
    tx: PlacingTx, nodes: Mapping[str, str], servers: Collection[Server],
    now: int, rules: Rules | None, over: Collection[str],
) -> list[Instance]:
    """Write the records of servers that differ; return those records.

    A server that is on no reservable host, or on a host that is deleted, has
    no record. A server that was placed keeps its record until Nova names its
    host.

    :param over: the servers that have outlived their leases
    """
    tx.delete_instances([
        server.uuid for server in servers
        if _has_left(tx.replica, nodes, server)
    ])
    replica = tx.replica
    replica.advance(now)
    changed = []
    for server in servers:
        host = nodes.get(server.node or '', '')
        if host not in replica.hosts:
            continue
        old = replica.instances.get(server.uuid)
        new = relocation.with_path(
            replica, old,
            instance_record.make(
                replica, host, server, now, rules, server.uuid in over
            ),
            now, rules,
        )
        if new != old:
            changed.append(new)
            if rules is not None:
                # The paths of one commit are planned one beside the other.
                tx.expect([new])
    tx.put_instances(changed)
    return changed


def _has_left(
    replica: state.Replica, nodes: Mapping[str, str], server: Server
) -> bool:
    """Tell whether a server with a record is on no reservable host."""
    old = replica.instances.get(server.uuid)
    return old is not None and (
        nodes.get(server.node or '') not in replica.hosts
    ) and not (old.building and server.node is None and _is_moving(server))
