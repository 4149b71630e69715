# SPDX-License-Identifier: Apache-2.0
"""A thread that works in steps and can be poked."""

from collections.abc import Callable
import threading

from oslo_log import log

from blazar_sched.domain import exception

LOG = log.getLogger(__name__)

# Seconds until the next step, where nobody says so.
PAUSE = 1.0
# Seconds that a stop gives the step being taken.
STOP_TIMEOUT = 3.0


class Loop:
    """Takes a step, waits for its time or until poked, and again.

    A step that failed is logged, and taken again in its time.

    :param step: may return the seconds until the next one
    :param pace: returns them where the step does not
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        pace: Callable[[], float] = lambda: PAUSE,
    ) -> None:
        self._step = step
        self._pace = pace
        self._poked = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(
            target=self._run, name=name, daemon=True
        )

    def start(self) -> None:
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
            wait = None
            try:
                wait = self._step()
            except exception.Unavailable as e:
                LOG.warning('%s failed: %s', self._thread.name, e)
            except Exception:
                LOG.exception('%s failed', self._thread.name)
            if not self._stopping:
                self._poked.wait(self._pace() if wait is None else wait)
