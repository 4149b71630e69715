# SPDX-License-Identifier: Apache-2.0
"""A thread that works in steps and can be woken up."""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import math
import threading
import time
from typing import Generic
from typing import Protocol
from typing import TypeVar

from oslo_context import context
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.replica import limited_log
from blazar_sched.service import cause
from blazar_sched.service import metrics as service_metrics

T = TypeVar('T')

LOG = log.getLogger(__name__)

# The default number of seconds until the next step.
PAUSE = 1.0
# The seconds between two steps of a loop that only waits to be woken up: each
# step shows in the metrics that the loop has not failed.
IDLE = 60.0
# The maximum number of seconds until the next step while steps fail, unless
# the pace of the loop is slower anyway.
MAX_PAUSE = 8.0
# The seconds after which a step hangs. A step may wait for the time-out of a
# client of another service once for each of many objects.
HANGS_AFTER = 3600.0
# The seconds for which a stop waits for the current step.
STOP_TIMEOUT = 3.0
# The first and the longest seconds until the next try of an object that has
# failed.
FIRST_REST = 60.0
MAX_REST = 3600.0
# The longest pause, in seconds, that another service may ask for.
MAX_WAIT = 60.0


def wait_of(error: Exception) -> float:
    """Return the seconds that a service wants to be left alone after an error.
    """
    if isinstance(error, exception.Unavailable):
        return min(error.wait, MAX_WAIT)
    return 0.0


class Threads(Protocol):
    """What runs in threads of its own, from start to stop of the manager."""

    @property
    def loops(self) -> 'tuple[Loop, ...]': ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Failure:
    """The failure of an object, which is not tried again before a time."""

    pause: float = 0.0
    not_before: float = 0.0


class Objects(Generic[T]):
    """The objects that a loop works on, each apart from the others.

    An error of one object, of any type, does not stop the others: the log
    names the object, the metric FAILING counts the object, and the object is
    tried again after a pause that doubles each time.

    :param name: the loop, or the part of a loop
    :param failed: called with an object that fails for the first time
    """

    def __init__(
        self, name: str, metrics: service_metrics.Metrics,
        failed: Callable[[T], object] = lambda failing: None,
    ) -> None:
        self._name = name
        self._metrics = metrics
        self._failed = failed
        self._failures: dict[object, _Failure] = {}

    def each(
        self, objects: Iterable[tuple[object, T]], work: Callable[[T], object],
        now: float,
    ) -> None:
        """Do the work of each object, unless the object waits for a retry.

        :param objects: all of the objects, each with its id
        :param now: the time in seconds
        :raises Unavailable: the first such error, once the work of the other
            objects is done: another service is away, so the next step of the
            loop tries the object again
        """
        before, self._failures = self._failures, {}
        unavailable = None
        for id_, each in objects:
            failure = before.get(id_, _Failure())
            if now < failure.not_before:
                self._failures[id_] = failure
                continue
            try:
                work(each)
            except exception.Unavailable as e:
                unavailable = unavailable or e
                if e.refused and id_ not in before:
                    LOG.warning(
                        '%s: %s failed, retrying: %s', self._name, id_,
                        exception.reason(e),
                    )
                self._failures[id_] = _Failure()
            except Exception as e:
                self._fail(id_, each, failure, now, e)
        self._metrics.of(service_metrics.FAILING, self._name).set(
            len(self._failures)
        )
        if unavailable is not None:
            raise unavailable

    def _fail(
        self, id_: object, failing: T, failure: _Failure, now: float,
        error: Exception,
    ) -> None:
        pause = min(max(2 * failure.pause, FIRST_REST), MAX_REST)
        self._failures[id_] = _Failure(pause, now + pause)
        LOG.error(
            '%s: %s failed, retrying in %d s', self._name, id_, pause,
            exc_info=error,
        )
        if not failure.pause:
            self._failed(failing)


class Loop:
    """A loop that takes a step, waits for a time or for `wake`, and repeats.

    While steps fail, the pause doubles, and the log has two lines: when the
    failures begin and when they end. An error of another type begins a new
    series of failures.

    :param step: may return the seconds until the next step
    :param pace: returns these seconds where the step does not
    :param hangs_after: seconds
    :ivar succeeded_at: epoch seconds of the last step that did not fail, or
        of the start
    """

    def __init__(
        self, name: str, step: Callable[[], float | None],
        pace: Callable[[], float] = lambda: PAUSE,
        hangs_after: float = HANGS_AFTER,
    ) -> None:
        self._step = step
        self._pace = pace
        self._hangs_after = hangs_after
        # Monotonic seconds; infinite between two steps.
        self._begun = math.inf
        self.name = name
        self.succeeded_at = 0.0
        self._failures = 0
        self._trouble: type[Exception] | None = None
        self._away = limited_log.LimitedLog(LOG)
        # Whether the log has a line about the present failures.
        self._logged = False
        self._poked = threading.Event()
        self._taken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(
            target=self._run, name=name, daemon=True
        )

    @property
    def loops(self) -> tuple['Loop', ...]:
        return (self,)

    @property
    def hangs(self) -> bool:
        """Whether the current step takes longer than a step can take."""
        return time.monotonic() - self._begun > self._hangs_after

    def start(self) -> None:
        self.succeeded_at = time.time()
        self._thread.start()

    def wake(self) -> None:
        """Take the next step now."""
        self._poked.set()

    def await_step(self, timeout: float) -> bool:
        """Wait for the end of the first step; tell whether the step ended.

        A step that fails ends, too.

        :param timeout: seconds
        """
        return self._taken.wait(timeout)

    def stop(self) -> None:
        """Take no further step; wait for the current step for some seconds."""
        self._stopping = True
        self._poked.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT)

    def _run(self) -> None:
        while not self._stopping:
            self._poked.clear()
            self._begun = time.monotonic()
            # The log lines and the requests of a step have an id of their own.
            context.RequestContext()
            wait = self._take()
            self._begun = math.inf
            self._taken.set()
            if not self._stopping:
                self._poked.wait(wait)

    def _take(self) -> float:
        """Take a step; return the seconds until the next step."""
        trouble: Exception
        try:
            with cause.named(self.name):
                wait = self._step()
            if wait is None:
                wait = self._pace()
        except Exception as e:
            trouble = e
        else:
            self._recover()
            return wait
        # Reported outside of the except block, in which oslo.log would log
        # the error twice.
        self._report(trouble)
        return max(self._pause(), wait_of(trouble))

    def _recover(self) -> None:
        """Reset the failures, and log that they are over."""
        self.succeeded_at = time.time()
        if self._logged:
            LOG.warning(
                '%s has recovered (failures: %d)', self.name, self._failures
            )
        self._failures = 0
        self._trouble = None
        self._logged = False

    def _report(self, error: Exception) -> None:
        """Count a failure, and log the first failure of its type."""
        self._failures += 1
        if type(error) is self._trouble:
            return
        self._trouble = type(error)
        if isinstance(error, exception.Unavailable):
            self._logged |= self._away.report_away(self.name, error)
        else:
            self._logged = True
            LOG.error('%s failed, retrying', self.name, exc_info=error)

    def _pause(self) -> float:
        """Return the pause after a failure, which doubles each time."""
        try:
            pace = self._pace()
        except Exception:
            # This error is logged too: it is what failed, or what will fail.
            pace = PAUSE
        doubled = pace * 2.0 ** min(self._failures - 1, 10)
        return max(pace, min(doubled, MAX_PAUSE))


class Looped:
    """A part of the manager with one loop, which a subclass creates.

    A part with several loops overrides `loops`.
    """

    _loop: Loop

    @property
    def loops(self) -> tuple[Loop, ...]:
        return (self._loop,)

    def start(self) -> None:
        for each in self.loops:
            each.start()

    def stop(self) -> None:
        for each in self.loops:
            each.stop()
