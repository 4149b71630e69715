# SPDX-License-Identifier: Apache-2.0
"""Trouble that may come with every request, logged once a minute."""

from collections.abc import Callable
import time

from oslo_log import log as logging

PERIOD = 60.0


class LimitedLog:
    """A counter of reports that logs the first report of each minute.

    Two threads at once may log twice: that is not worth a lock.
    """

    def __init__(
        self,
        log: logging.BaseLoggerAdapter,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.count = 0
        self._log = log
        self._monotonic = monotonic
        self._logged_at = float('-inf')

    def report(self, message: str, trace: bool = False) -> None:
        """Count a report, and log `message` at most once a minute.

        :param trace: whether the exception that is being handled is added
        """
        self.count += 1
        at = self._monotonic()
        if at - self._logged_at < PERIOD:
            return
        self._logged_at = at
        self._log.warning(
            '%s (time %d in this process)', message, self.count,
            exc_info=trace,
        )
