# SPDX-License-Identifier: Apache-2.0
"""The worker of a process: its replica, and the threads that maintain it.

One thread pulls from the ledger. That thread may wait for the message bus as
long as the bus is away, so the chores are done by another thread, which never
calls the bus.
"""

from collections.abc import Callable
from collections.abc import Collection
import os
import socket
import threading
import time
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging

from blazar_sched.conf import scheduler
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import limited_log
from blazar_sched.replica import metrics
from blazar_sched.replica import pace
from blazar_sched.replica import puller
from blazar_sched.replica import state
from blazar_sched.replica import wire
from blazar_sched.replica.metrics import Metrics
from blazar_sched.worker import announcer
from blazar_sched.worker import decision_log
from blazar_sched.worker import listener
from blazar_sched.worker.decision import Decision
from blazar_sched.worker.decision import Explanation
from blazar_sched.worker.kept_snapshot import KeptSnapshot
from blazar_sched.worker.kept_snapshot import listed_hosts
from blazar_sched.worker.pending import Pending

LOG = logging.getLogger(__name__)
CONF = cfg.CONF
scheduler.register(CONF)

# Seconds to wait for one RPC response.
RPC_TIMEOUT = 10
STOP_TIMEOUT = 2.0
# Seconds for which requests wait for the changes since the snapshot file.
CATCH_UP = 2.0
# The most seconds by which the clock of the node may differ from the clock of
# the managers before this is logged.
MAX_CLOCK_DIFFERENCE = 5
# Seconds between two rounds of chores, unless there are many decisions.
CHORES_PAUSE = 1.0


class Worker:
    """The state of one process, and the threads that maintain this state.

    :param clock: returns the time by the clock of this node, epoch seconds
    :param copy: the copy of the ledger, if there is one already
    """

    def __init__(
        self, clock: Callable[[], float] = time.time,
        copy: puller.Copy | None = None,
    ) -> None:
        self.name = f'{socket.gethostname()}-{os.getpid()}'
        self._clock = clock
        self.pending = Pending()
        self.puller = puller.Puller(
            self.call, time.monotonic, lambda: CONF.blazar_sched.max_age, copy,
            clock=clock, removed=self.pending.forget,
        )
        self._snapshot = KeptSnapshot(self.puller, clock)
        self.metrics = Metrics(metrics.ALL, self.name)
        self.decisions = decision_log.Decisions(
            lambda: CONF.blazar_sched.decisions_kept, self.wake
        )
        self._transport: oslo_messaging.Transport | None = None
        self._client: oslo_messaging.RPCClient | None = None
        self._listener = listener.Listener(
            self.name, self._hear, self._hear_placed, self._explain,
            self._report,
        )
        self._announcer = announcer.Announcer(self.name)
        self._failures = 0
        self._failure_log = limited_log.LimitedLog(LOG)
        self._chore_failure_log = limited_log.LimitedLog(LOG)
        self._silence = limited_log.LimitedLog(LOG)
        self._wrong_clock = limited_log.LimitedLog(LOG)
        self._is_silent = False
        self._measured_at = float('-inf')
        # The hosts to take as reservable without a copy; None: unknown.
        self._listed_hosts: frozenset[str] | None = None
        self._started_at = float('-inf')
        # Set once the snapshot file has been read, and once the manager has
        # been asked.
        self._read, self._tried = threading.Event(), threading.Event()
        if copy is not None:
            self._read.set()
            self._tried.set()
        self._stopping = threading.Event()
        # Set when the ledger may have changes to pull.
        self._news = threading.Event()
        # Set when there are many decisions to settle.
        self._unsettled = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='blazar-sched-puller', daemon=True
        )
        self._chores = threading.Thread(
            target=self._run_chores, name='blazar-sched-chores', daemon=True
        )

    def start(self) -> None:
        self._started_at = time.monotonic()
        self._listed_hosts = listed_hosts()
        self._thread.start()
        self._chores.start()

    def stop(self) -> None:
        """Stop the threads; a puller that waits for a response ends later."""
        self._stopping.set()
        self._read.set()
        self._tried.set()
        self._news.set()
        self._unsettled.set()
        for thread in self._chores, self._thread:
            if thread.is_alive():
                thread.join(STOP_TIMEOUT)

    def now(self) -> int:
        """Return the time for which decisions are made, in epoch seconds.

        This is the manager's time, whatever the clock of this node shows.
        """
        return int(self._clock() - self.puller.ahead)

    def note(self, decision: Decision, seconds: float) -> None:
        """Count a decision, and keep the decision for later questions."""
        name, of = decision.filter, self.metrics.of
        of(metrics.DECISIONS, name, decision.outcome).inc()
        of(metrics.SEEN, name).inc(decision.seen)
        of(metrics.PASSED, name).inc(decision.passed)
        of(metrics.FIXED, name).inc(decision.fixed)
        of(metrics.DECISION_SECONDS, name).observe(seconds)
        self.decisions.add(decision)

    def add_placed(self, instance: Instance, now: int, ttl: float) -> None:
        """Count an instance that this worker has placed, and announce it.

        :param now: epoch seconds
        :param ttl: the most seconds for which the instance counts
        """
        self.pending.add(instance, ttl)
        self._announcer.announce(instance, now)

    def wait_for_copy(self) -> None:
        """Wait until the snapshot file and the manager have been tried.

        The wait is at most start_timeout seconds, counted from the start of
        the worker, for all requests together. With a copy from the snapshot
        file, which may lack the newest leases, the wait is shorter.
        """
        if self._tried.is_set():
            return
        longest = CONF.blazar_sched.start_timeout
        self._read.wait(self._left_of(longest))
        copy = self.puller.copy
        if copy is not None and self.puller.is_fresh(copy):
            longest = min(longest, CATCH_UP)
        self._tried.wait(self._left_of(longest))

    def _left_of(self, seconds: float) -> float:
        """Return what is left of some seconds since the start."""
        return max(0, self._started_at + seconds - time.monotonic())

    def reservable_hosts(self) -> Collection[str] | None:
        """Return the uuids of the hosts known as reservable.

        Without a copy of the ledger, these are the hosts that the previous
        worker has listed; None if there is no such list.
        """
        replica = self._replica()
        return self._listed_hosts if replica is None else replica.hosts

    def _run(self) -> None:
        self._snapshot.load(self.now())
        self._read.set()
        while not self._stopping.is_set():
            self._news.clear()
            pause = self._turn()
            self._tried.set()
            self._rest(pause)
        self._announcer.stop()
        self._listener.stop()
        if self._transport is not None:
            self._transport.cleanup()

    def _rest(self, seconds: float) -> None:
        """Wait for the next pull; after an error, news are ignored."""
        if self._failures:
            self._stopping.wait(seconds)
        elif self._news.wait(seconds):
            self._stopping.wait(pace.news())

    def _run_chores(self) -> None:
        while not self._stopping.is_set():
            self._unsettled.wait(CHORES_PAUSE)
            self._unsettled.clear()
            self._do_chores()
        if CONF.blazar_sched.metrics_path:
            metrics.remove(CONF.blazar_sched.metrics_path, self.name)

    def wake(self) -> None:
        """Request that the noted decisions are settled soon."""
        self._unsettled.set()

    def _explain(
        self, instance_uuid: str, host: str | None
    ) -> list[Explanation]:
        return self.decisions.explain(self._replica(), instance_uuid, host)

    def _report(self) -> dict[str, Any]:
        """Return the state of the replica, in JSON primitives."""
        copy = self.puller.copy
        if copy is None:
            return {
                'ledger': None, 'revision': None, 'hosts': 0, 'age': None,
                'stale': True, **wire.versions(),
            }
        since = copy.fresh_at
        return {
            'ledger': copy.ledger,
            'revision': copy.replica.revision,
            'hosts': len(copy.replica.hosts),
            'age': None if since is None else time.monotonic() - since,
            'stale': not self.puller.is_fresh(copy),
            **wire.versions(),
        }

    def _replica(self) -> state.Replica | None:
        copy = self.puller.copy
        return None if copy is None else copy.replica

    def _hear(self, ledger: str, revision: int) -> None:
        copy = self.puller.copy
        if copy is None or (ledger, revision) != (
            copy.ledger, copy.replica.revision
        ):
            self._news.set()

    def _hear_placed(self, instance: Instance) -> None:
        """Count an instance that another worker has placed."""
        ttl = CONF.blazar_sched.pending_ttl
        if ttl:
            self.pending.add(instance, ttl)

    def _turn(self) -> float:
        """Pull once; return the seconds to wait before the next pull."""
        at = self.now()
        interval: float = CONF.blazar_sched.poll_interval
        before = self._replica()
        try:
            self.puller.pull(at)
        except Exception as e:
            # Whatever the error is, the thread must live and try again.
            self._failures += 1
            self.metrics.of(metrics.PULLS, 'failed').inc()
            self._failure_log.report(
                'The ledger cannot be pulled from, trying on. '
                f'{type(e).__name__}: {e}'
            )
            return pace.pause(self._failures, interval)
        self.pending.refresh()
        self._tell_of_clock()
        copy = self.puller.copy
        assert copy is not None
        self.metrics.of(metrics.PULLS, 'done').inc()
        if copy.replica is not before:
            self.metrics.of(metrics.SNAPSHOTS).inc()
        if self._failures:
            LOG.info('Pulling from the ledger works again.')
        self._failures = 0
        self._snapshot.keep(at)
        return pace.poll(interval)

    def _do_chores(self) -> None:
        """Do the work that requests have left, and report the state."""
        for chore in self._settle, self._tell_of_silence, self._write_metrics:
            try:
                chore()
            except Exception as e:
                # Whatever the error is, no decision depends on a chore.
                self._chore_failure_log.report(f'{type(e).__name__}: {e}')

    def _settle(self) -> None:
        replica = self._replica()
        self.decisions.settle(replica)
        if replica is not None:
            # This also drops the placed instances that came and expired
            # between two scheduling requests.
            self.pending.by_host(replica)

    def _tell_of_silence(self) -> None:
        """Log that no pull succeeds for `max_age`, and when pulls resume.

        A pull that waits for the message bus has no error to log.
        """
        copy = self.puller.copy
        fresh_at = None if copy is None else copy.fresh_at
        heard_at = max(self._started_at, fresh_at or self._started_at)
        silent_for = time.monotonic() - heard_at
        if silent_for > CONF.blazar_sched.max_age:
            self._is_silent = True
            self._silence.report(
                f'No response from the ledger for {silent_for:.0f} s: '
                f'on_stale = {CONF.blazar_sched.on_stale} decides. Check '
                'that the message bus and a manager are running.'
            )
        elif self._is_silent:
            self._is_silent = False
            LOG.info('The ledger responds again.')

    def _tell_of_clock(self) -> None:
        ahead = self.puller.ahead
        if abs(ahead) > MAX_CLOCK_DIFFERENCE:
            self._wrong_clock.report(
                f'The clock of this node is {abs(ahead):.0f} s '
                f'{"ahead of" if ahead > 0 else "behind"} the clock of the '
                "managers, whose time is used: check the node's NTP"
            )

    def _write_metrics(self) -> None:
        folder = CONF.blazar_sched.metrics_path
        at = time.monotonic()
        if folder and at - self._measured_at >= CHORES_PAUSE:
            self._measured_at = at
            self._measure()
            metrics.write(self.metrics, folder, self.name)

    def _measure(self) -> None:
        now, of = self._report(), self.metrics.of
        age = now['age']
        of(metrics.REVISION).set(now['revision'] or 0)
        of(metrics.AGE).set(float('inf') if age is None else age)
        of(metrics.STALE).set(now['stale'])
        of(metrics.CLOCK_DIFFERENCE).set(self.puller.ahead)
        replica = self._replica()
        of(metrics.LEFT_OUT).set(
            0 if replica is None else len(replica.left_out)
        )

    def call(self, method: str, **kwargs: Any) -> Any:
        if self._client is None:
            self._transport = oslo_messaging.get_rpc_transport(
                CONF, url=CONF.blazar_sched.transport_url
            )
            self._client = oslo_messaging.get_rpc_client(
                self._transport,
                oslo_messaging.Target(
                    exchange=wire.EXCHANGE, topic=wire.TOPIC,
                    version=wire.RPC_VERSION,
                ),
                timeout=RPC_TIMEOUT, retry=wire.RETRIES,
            )
            self._listener.start(self._transport)
            self._announcer.start(self._transport)
        return self._client.call({}, method, **kwargs)
