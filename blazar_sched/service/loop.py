# SPDX-License-Identifier: Apache-2.0
"""A thread that works in steps and can be poked."""

from collections.abc import Callable
import threading
import time
from typing import Protocol

from oslo_log import log

from blazar_sched.domain import exception

LOG = log.getLogger(__name__)

# Seconds until the next step, where nobody says so.
PAUSE = 1.0
# Seconds until the next step at most while steps fail, unless the pace of the
# loop is slower anyway.
LONGEST_PAUSE = 8.0
# Seconds that a stop gives the step being taken.
STOP_TIMEOUT = 3.0


class Part(Protocol):
    """A part of the manager that runs in threads of its own."""

    @property
    def loops(self) -> 'tuple[Loop, ...]': ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Loop:
    """Takes a step, waits for its time or until poked, and again.

    While steps fail the pause doubles, and the log has two lines: when the
    trouble begins and when it is over. Another kind of error is another
    trouble.

    :param step: may return the seconds until the next one
    :param pace: returns them where the step does not
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

    def poke(self) -> None:
        """Take the next step now."""
        self._poked.set()

    def stop(self) -> None:
        """Take no other step; return when the last is over, or hangs."""
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
        """Take a step; return the seconds until the next one."""
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
        # Not while it is handled: oslo.log would say it twice.
        self._report(trouble)
        return self._pause()

    def _recover(self) -> None:
        """Forget the failures, and log that they are over."""
        self.succeeded_at = time.time()
        if self._failures:
            LOG.warning(
                '%s works again (failures: %d)',
                self.name, self._failures,
            )
        self._failures = 0
        self._trouble = None

    def _report(self, error: Exception) -> None:
        """Count a failure, and log the first one of its kind."""
        self._failures += 1
        if type(error) is self._trouble:
            return
        self._trouble = type(error)
        if isinstance(error, exception.Unavailable):
            LOG.warning(
                '%s fails, and is tried on: %s',
                self.name, exception.reason(error),
            )
        else:
            LOG.error(
                '%s fails, and is tried on', self.name,
                exc_info=error,
            )

    def _pause(self) -> float:
        """Return the seconds after a failure: twice those of the last."""
        try:
            pace = self._pace()
        except Exception:
            # Of that, too, the log tells: it is what failed, or will.
            pace = PAUSE
        doubled = pace * 2.0 ** min(self._failures - 1, 10)
        return max(pace, min(doubled, LONGEST_PAUSE))


class Looped:
    """A part of the manager that has one loop: a subclass makes it."""

    _loop: Loop

    @property
    def loops(self) -> tuple[Loop, ...]:
        return (self._loop,)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()
