# SPDX-License-Identifier: Apache-2.0
"""A thread that works in steps and can be woken up."""

from collections.abc import Callable
import threading
import time
from typing import Protocol

from oslo_log import log

from blazar_sched.domain import exception

LOG = log.getLogger(__name__)

# The default number of seconds until the next step.
PAUSE = 1.0
# The seconds between two steps of a loop that only waits to be woken up: each
# step shows in the metrics that the loop has not failed.
IDLE = 60.0
# The maximum number of seconds until the next step while steps fail, unless
# the pace of the loop is slower anyway.
LONGEST_PAUSE = 8.0
# The seconds for which a stop waits for the current step.
STOP_TIMEOUT = 3.0


class Part(Protocol):
    """A part of the manager that runs in threads of its own."""

    @property
    def loops(self) -> 'tuple[Loop, ...]': ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Loop:
    """A loop that takes a step, waits for a time or for `wake`, and repeats.

    While steps fail, the pause doubles, and the log has two lines: when the
    failures begin and when they end. An error of another type begins a new
    series of failures.

    :param step: may return the seconds until the next step
    :param pace: returns these seconds where the step does not
    :ivar succeeded_at: epoch seconds of the last step that did not fail, or
        of the start
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        pace: Callable[[], float] = lambda: PAUSE,
    ) -> None:
        self._step = step
        self._pace = pace
        self.name = name
        self.succeeded_at = 0.0
        self._failures = 0
        self._trouble: type[Exception] | None = None
        self._poked = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(
            target=self._run, name=name, daemon=True
        )

    @property
    def loops(self) -> tuple['Loop', ...]:
        return (self,)

    def start(self) -> None:
        self.succeeded_at = time.time()
        self._thread.start()

    def wake(self) -> None:
        """Take the next step now."""
        self._poked.set()

    def stop(self) -> None:
        """Take no further step; wait for the current step for some seconds."""
        self._stopping = True
        self._poked.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT)

    def _run(self) -> None:
        while not self._stopping:
            self._poked.clear()
            wait = self._take()
            if not self._stopping:
                self._poked.wait(wait)

    def _take(self) -> float:
        """Take a step; return the seconds until the next step."""
        trouble: Exception
        try:
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
        return self._pause()

    def _recover(self) -> None:
        """Reset the failures, and log that they are over."""
        self.succeeded_at = time.time()
        if self._failures:
            LOG.warning(
                '%s has recovered (failures: %d)',
                self.name, self._failures,
            )
        self._failures = 0
        self._trouble = None

    def _report(self, error: Exception) -> None:
        """Count a failure, and log the first failure of its type."""
        self._failures += 1
        if type(error) is self._trouble:
            return
        self._trouble = type(error)
        if isinstance(error, exception.Unavailable):
            LOG.warning(
                '%s failed, retrying: %s',
                self.name, exception.reason(error),
            )
        else:
            LOG.error(
                '%s failed, retrying', self.name,
                exc_info=error,
            )

    def _pause(self) -> float:
        """Return the pause after a failure, which doubles each time."""
        try:
            pace = self._pace()
        except Exception:
            # This error is logged too: it is what failed, or what will fail.
            pace = PAUSE
        doubled = pace * 2.0 ** min(self._failures - 1, 10)
        return max(pace, min(doubled, LONGEST_PAUSE))


class Looped:
    """A part of the manager with one loop, which a subclass creates."""

    _loop: Loop

    @property
    def loops(self) -> tuple[Loop, ...]:
        return (self._loop,)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()
