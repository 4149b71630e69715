# SPDX-License-Identifier: Apache-2.0
"""The worker of this process.

nova-scheduler creates its filters in the master process and then forks its
workers, in which no thread of the master lives. So nothing is opened or
started before the fork, and all state is at module level and belongs to one
pid.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import os
import threading
import time

from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.conf import scheduler
from blazar_sched.replica import limited_log
from blazar_sched.replica import puller
from blazar_sched.replica import state
from blazar_sched.worker.decision import Decision
from blazar_sched.worker.threads import Worker

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

note_failure = limited_log.LimitedLog(LOG)

_clock: Callable[[], float] = time.time
_lock = threading.Lock()
_worker: Worker | None = None
_pid: int | None = None
# Whether the children of this process are workers of nova-scheduler.
_prepared = False


def now() -> int:
    """Return the time for which decisions are made, in epoch seconds."""
    worker = _started()
    return int(_clock()) if worker is None else worker.now()


def prepare() -> None:
    """Prepare for a fork: each child process starts its own worker at once.

    Called where an invalid option should stop nova-scheduler from starting.

    :raises InvalidInput: if a policy or a duration cannot be read
    :raises ValueError: if another option has no usable value
    """
    global _prepared
    scheduler.check(CONF)
    _prepared = True


def ensure_started() -> Worker:
    """Return the worker of this process; start the worker if necessary."""
    global _worker, _pid
    with _lock:
        if _worker is None or _pid != os.getpid():
            _worker = Worker(lambda: _clock())
            _worker.start()
            _pid = os.getpid()
        return _worker


def stop() -> None:
    """Stop the worker of this process, and start none in its children."""
    global _worker, _prepared
    with _lock:
        if _worker is not None and _pid == os.getpid():
            _worker.stop()
        _worker = None
        _prepared = False


def current() -> tuple[state.Replica | None, bool]:
    """Return the replica to decide by, and whether the replica is stale.

    Without any replica, return None and True. The call waits for the first
    replica for ``start_timeout`` seconds at most, counted from the start of
    the worker.
    """
    worker = ensure_started()
    worker.wait_for_copy()
    worker.puller.advance(worker.now())
    copy = worker.puller.copy
    if copy is None:
        return None, True
    return copy.replica, not worker.puller.is_fresh(copy)


def last_known() -> state.Replica | None:
    """Return the present replica, stale or not; start nothing."""
    worker = _started()
    copy = None if worker is None else worker.puller.copy
    return None if copy is None else copy.replica


def reservable_hosts() -> Collection[str] | None:
    """Return the uuids of the hosts known as reservable; None: unknown."""
    worker = _started()
    return None if worker is None else worker.reservable_hosts()


def _started() -> Worker | None:
    """Return the worker of this process, or None if no worker was started."""
    return _worker if _pid == os.getpid() else None


def note(decision: Decision, seconds: float) -> None:
    """Count and keep a decision that took `seconds`; never raise.

    If no worker was started, the decision is dropped.
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
    """Make this process decide by `replica`, at the time that `clock` returns.

    The owner of the replica feeds the replica, so the worker is not started,
    and the replica is never stale.
    """
    global _worker, _pid
    before = _worker, _pid
    _worker = Worker(clock, puller.Copy('', replica, float('inf')))
    _pid = os.getpid()
    try:
        yield
    finally:
        _worker, _pid = before


def _after_fork() -> None:
    global _lock
    # Another thread of the parent process may have held the lock.
    _lock = threading.Lock()
    if _prepared:
        ensure_started()


os.register_at_fork(after_in_child=_after_fork)
