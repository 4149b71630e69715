# SPDX-License-Identifier: Apache-2.0
"""One replica for each process, with the thread that feeds it.

nova-scheduler makes its filters in the master and then forks its workers,
where no thread of the master lives: so nothing is opened or started before
the fork, all state is here at module level, and it belongs to one pid.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import os
import socket
import threading
import time
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging

from blazar_sched.conf import scheduler
from blazar_sched.replica import decisions
from blazar_sched.replica import listener
from blazar_sched.replica import metrics as metrics_
from blazar_sched.replica import pending as pending_
from blazar_sched.replica import puller
from blazar_sched.replica import snapshot
from blazar_sched.replica import state
from blazar_sched.replica import trouble
from blazar_sched.replica import wire

LOG = logging.getLogger(__name__)
CONF = cfg.CONF
scheduler.register(CONF)

# Seconds to wait for one answer, and at most between two tries after errors;
# the pause doubles so many times at most.
RPC_TIMEOUT = 10
MAX_PAUSE = 10.0
MAX_DOUBLINGS = 10
# Seconds between two pulls at least, however many commits there are.
MIN_PAUSE = 0.05
STOP_TIMEOUT = 2.0
# Seconds between two files of metrics at least.
MEASURE_PAUSE = 1.0

note_failure = trouble.Trouble(LOG)

_clock: Callable[[], float] = time.time


def now() -> int:
    """Return the time that decisions are made at, epoch seconds."""
    return int(_clock())


class Worker:
    """What a process has of its own, and the thread that pulls for it.

    :param copy: of the ledger, if there is one already
    """

    def __init__(self, copy: puller.Copy | None = None) -> None:
        self.name = f'{socket.gethostname()}-{os.getpid()}'
        self.puller = puller.Puller(
            self.call, time.monotonic, lambda: CONF.blazar_sched.max_age, copy
        )
        self.pending = pending_.Pending()
        self.metrics = metrics_.Metrics(metrics_.ALL, self.name)
        self.decisions = decisions.Decisions(
            lambda: CONF.blazar_sched.decisions_kept, self.wake
        )
        self._transport: Any = None
        self._client: Any = None
        self._listener = listener.Listener(
            self.name, self._hear, self._explain, self._report
        )
        self._failures = 0
        self._trouble = trouble.Trouble(LOG)
        self._side_trouble = trouble.Trouble(LOG)
        self._kept_at = self._measured_at = float('-inf')
        self._stopping = threading.Event()
        # Set when there may be something to pull.
        self._news = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='blazar-sched-puller', daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that waits for an answer ends after it."""
        self._stopping.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT)

    def note(self, decision: decisions.Decision, seconds: float) -> None:
        """Count a decision, and keep it for who asks why."""
        name, of = decision.filter, self.metrics.of
        of(metrics_.DECISIONS, name, decision.outcome).inc()
        of(metrics_.SEEN, name).inc(decision.seen)
        of(metrics_.PASSED, name).inc(decision.passed)
        of(metrics_.DECISION_SECONDS, name).observe(seconds)
        self.decisions.add(decision)

    def _run(self) -> None:
        self._load()
        while not self._stopping.is_set():
            self._news.clear()
            pause = self._turn()
            self._tidy()
            self._stopping.wait(MIN_PAUSE)
            self._news.wait(pause)
        self._listener.stop()
        if self._transport is not None:
            self._transport.cleanup()
        if CONF.blazar_sched.metrics_path:
            metrics_.remove(CONF.blazar_sched.metrics_path, self.name)

    def wake(self) -> None:
        """Have what was decided settled soon."""
        self._news.set()

    def _explain(
        self, instance_uuid: str, host: str | None
    ) -> list[dict[str, Any]]:
        return self.decisions.explain(self._replica(), instance_uuid, host)

    def _report(self) -> dict[str, Any]:
        """Return the replica's state, in JSON primitives."""
        copy = self.puller.copy
        if copy is None:
            return {
                'ledger': None, 'revision': None, 'hosts': 0, 'age': None,
                'stale': True,
            }
        since = copy.fresh_at
        return {
            'ledger': copy.ledger,
            'revision': copy.replica.revision,
            'hosts': len(copy.replica.hosts),
            'age': None if since is None else time.monotonic() - since,
            'stale': not self.puller.is_fresh(copy),
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

    def _turn(self) -> float:
        """Pull once; return the seconds to wait before the next turn."""
        at = now()
        interval: float = CONF.blazar_sched.poll_interval
        before = self._replica()
        try:
            self.puller.pull(at)
        except Exception as e:
            # Whatever it is, the thread must live and try again.
            self._failures += 1
            self.metrics.of(metrics_.PULLS, 'failed').inc()
            self._trouble.report(
                'The ledger cannot be pulled from, trying on. '
                f'{type(e).__name__}: {e}'
            )
            pause = 2.0**min(self._failures, MAX_DOUBLINGS)
            return max(interval, min(MAX_PAUSE, pause))
        copy = self.puller.copy
        assert copy is not None
        self.metrics.of(metrics_.PULLS, 'done').inc()
        if copy.replica is not before:
            self.metrics.of(metrics_.SNAPSHOTS).inc()
        # What comes and goes between two requests is forgotten, too.
        self.pending.by_host(copy.replica)
        if self._failures:
            LOG.info('The ledger can be pulled from again.')
        self._failures = 0
        self._keep(at)
        return interval

    def _tidy(self) -> None:
        """Do what requests have left to be done, and tell the metrics."""
        try:
            self.decisions.settle(self._replica())
            folder = CONF.blazar_sched.metrics_path
            at = time.monotonic()
            if folder and at - self._measured_at >= MEASURE_PAUSE:
                self._measured_at = at
                self._measure()
                metrics_.write(self.metrics, folder, self.name)
        except Exception as e:
            # Whatever it is, nothing that decides depends on it.
            self._side_trouble.report(f'{type(e).__name__}: {e}')

    def _measure(self) -> None:
        now, of = self._report(), self.metrics.of
        age = now['age']
        of(metrics_.REVISION).set(now['revision'] or 0)
        of(metrics_.AGE).set(float('inf') if age is None else age)
        of(metrics_.STALE).set(now['stale'])

    def call(self, method: str, **kwargs: Any) -> Any:
        if self._client is None:
            self._transport = oslo_messaging.get_rpc_transport(
                CONF, url=CONF.blazar_sched.transport_url
            )
            self._client = oslo_messaging.get_rpc_client(
                self._transport,
                oslo_messaging.Target(
                    exchange=wire.EXCHANGE,
                    topic=wire.TOPIC,
                    version=wire.RPC_VERSION,
                ),
                timeout=RPC_TIMEOUT,
            )
            self._listener.start(self._transport)
        return self._client.call({}, method, **kwargs)

    def _load(self) -> None:
        """Start from the snapshot file, if there is a good one."""
        path = CONF.blazar_sched.snapshot_path
        if not path:
            return
        try:
            with snapshot.reading(path) as kept:
                self._start_from(kept)
        except FileNotFoundError:
            return
        except (ValueError, OSError) as e:
            LOG.warning('The snapshot file %s is ignored: %s', path, e)

    def _start_from(self, kept: snapshot.Snapshot) -> None:
        at = now()
        if kept.written_at > at:
            LOG.warning(
                'The snapshot file was written %d s from now: a clock was '
                'changed.', kept.written_at - at,
            )
        # A file from the future is as far from the truth as an old one.
        fresh_at = time.monotonic() - abs(at - kept.written_at)
        self.puller.load(
            kept.ledger, kept.revision, kept.items, fresh_at, at
        )

    def _keep(self, at: int) -> None:
        """Write the snapshot file if it is due.

        Twice in `max_age`, so that a new worker may always go on from it; by
        one of the workers that share it, whichever comes first.
        """
        path = CONF.blazar_sched.snapshot_path
        due = CONF.blazar_sched.max_age / 2
        if not path or time.monotonic() - self._kept_at < due:
            return
        self._kept_at = time.monotonic()
        copy = self.puller.copy
        assert copy is not None
        try:
            if not _younger(path, at, due):
                snapshot.write(
                    path, copy.ledger, copy.replica.revision, at,
                    copy.replica.items(),
                )
        except BlockingIOError:
            LOG.debug('Another worker keeps the snapshot file.')
        except Exception as e:
            # Whatever it is, the thread must live.
            LOG.warning('The snapshot file %s cannot be kept: %s', path, e)


def _younger(path: str, at: int, seconds: float) -> bool:
    try:
        return abs(at - os.stat(path).st_mtime) < seconds
    except FileNotFoundError:
        return False


_lock = threading.Lock()
_worker: Worker | None = None
_pid: int | None = None
# Whether children of this process are nova-scheduler's workers.
_prepared = False


def prepare() -> None:
    """Make ready for a fork: each child starts its own worker at once.

    Called where a bad option should stop nova-scheduler from starting.

    :raises InvalidInput: if a policy or a duration cannot be read
    :raises ValueError: if another option has no usable value
    """
    global _prepared
    scheduler.check(CONF)
    _prepared = True


def ensure_started() -> Worker:
    """Return this process's worker, started now if it is not yet."""
    global _worker, _pid
    with _lock:
        if _worker is None or _pid != os.getpid():
            _worker = Worker()
            _worker.start()
            _pid = os.getpid()
        return _worker


def stop() -> None:
    """End this process's worker, and start none in its children."""
    global _worker, _prepared
    with _lock:
        if _worker is not None and _pid == os.getpid():
            _worker.stop()
        _worker = None
        _prepared = False


def current() -> tuple[state.Replica | None, bool]:
    """Return the replica to decide by, and whether it is stale.

    Without any replica yet, None and True.
    """
    worker = ensure_started()
    worker.puller.advance(now())
    copy = worker.puller.copy
    if copy is None:
        return None, True
    return copy.replica, not worker.puller.is_fresh(copy)


def last_known() -> state.Replica | None:
    """Return the replica that there is, however it is; start nothing."""
    worker = _started()
    copy = None if worker is None else worker.puller.copy
    return None if copy is None else copy.replica


def _started() -> Worker | None:
    """Return this process's worker, if it has one."""
    return _worker if _pid == os.getpid() else None


def pending() -> pending_.Pending:
    """Return what this process has placed of late."""
    return ensure_started().pending


def note(decision: decisions.Decision, seconds: float) -> None:
    """Count a decision that took so long, and keep it; never raise.

    Where nothing was started, there is nobody to tell of it.
    """
    try:
        worker = _started()
        if worker is not None:
            worker.note(decision, seconds)
    except Exception as e:
        note_failure.report(
            f'A decision is not counted: {type(e).__name__}: {e}', trace=True
        )


@contextlib.contextmanager
def following(
    replica: state.Replica, clock: Callable[[], float]
) -> Iterator[None]:
    """Have this process decide by `replica`, at the time that `clock` says.

    Its owner feeds it, so the worker is not started, and it is never stale.
    """
    global _worker, _pid, _clock
    before = _worker, _pid, _clock
    fed = Worker(puller.Copy('', replica, float('inf')))
    _worker, _pid, _clock = fed, os.getpid(), clock
    try:
        yield
    finally:
        _worker, _pid, _clock = before


def _after_fork() -> None:
    global _lock
    # Another thread of the parent may have held it.
    _lock = threading.Lock()
    if _prepared:
        ensure_started()


os.register_at_fork(after_in_child=_after_fork)
