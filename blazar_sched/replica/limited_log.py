# SPDX-License-Identifier: Apache-2.0
"""Trouble that may come with every request, logged once a minute."""

from collections.abc import Callable
import math
import time

from oslo_log import log as logging

from blazar_sched.domain import exception

PERIOD = 60.0


class LimitedLog:
    """A counter of reports that logs the first report of each minute.

    What is reported about one service does not silence the other services.
    Two threads at once may log twice: that is not worth a lock.
    """

    def __init__(
        self, log: logging.BaseLoggerAdapter,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.count = 0
        self._log = log
        self._monotonic = monotonic
        # By the name of the service, '' for none.
        self._logged_at: dict[str, float] = {}

    def report(
        self, message: str, trace: bool = False, service: str = ''
    ) -> bool:
        """Count a report, and log `message` at most once a minute.

        :param trace: whether the exception that is being handled is added
        :param service: the name of the service that the report is about
        :returns: whether there is a line
        """
        self.count += 1
        at = self._monotonic()
        if at - self._logged_at.get(service, -math.inf) < PERIOD:
            return False
        self._logged_at[service] = at
        self._log.warning(
            '%s (time %d in this process)', message, self.count, exc_info=trace
        )
        return True

    def report_away(self, part: str, error: exception.Unavailable) -> bool:
        """Report that a part has failed for the sake of another service."""
        return self.report(
            f'{part} failed, retrying: {exception.reason(error)}',
            service=error.service,
        )
