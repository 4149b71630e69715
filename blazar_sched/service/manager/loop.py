# SPDX-License-Identifier: Apache-2.0
"""A thread that works in steps and can be poked."""

from collections.abc import Callable
import threading

from oslo_log import log

LOG = log.getLogger(__name__)

# Seconds until the next step after one that failed.
PAUSE = 1.0
# Seconds that a stop gives the step being taken.
STOP_TIMEOUT = 3.0


class Loop:
    """Takes a step, waits as long as it said or until poked, and again.

    :param step: returns the seconds until the next one
    """

    def __init__(self, name: str, step: Callable[[], float]) -> None:
        self._step = step
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
            try:
                wait = self._step()
            except Exception:
                LOG.exception('%s failed', self._thread.name)
                wait = PAUSE
            if not self._stopping:
                self._poked.wait(wait)
