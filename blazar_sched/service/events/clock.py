# SPDX-License-Identifier: Apache-2.0
"""The clock that all managers decide by: the clock of the database."""

from collections.abc import Callable
from typing import TypeVar

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.service.metrics import CLOCK_DIFFERENCE
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

T = TypeVar('T')


class Clock:
    """The time of the database, in epoch seconds.

    Between two reads of the database's clock the time advances with the
    monotonic clock, so a step of this process's own wall clock changes
    nothing. Until the first read, and where the database has no clock of its
    own (SQLite), the time is the time of this process's wall clock.

    :param own: this process's wall clock, in epoch seconds
    :param monotonic: returns monotonic seconds
    :param tolerance: by how many seconds the own clock may differ
    """

    def __init__(
        self, own: Callable[[], float], monotonic: Callable[[], float],
        tolerance: Callable[[], float], metrics: Metrics,
    ) -> None:
        self._own = own
        self._monotonic = monotonic
        self._tolerance = tolerance
        self._metrics = metrics
        # The time of the database, and the monotonic time at which it was
        # read.
        self._seen: tuple[float, float] | None = None
        # Seconds that the own clock is ahead of the database's clock.
        self._ahead = 0.0
        self.differs = False

    def __call__(self) -> float:
        """Return the time."""
        if self._seen is None:
            return self._own()
        at, since = self._seen
        return at + self._monotonic() - since

    def ask(self, query: Callable[[], tuple[T, float | None]]) -> T:
        """Read the database's clock, and return the other answer of a query.

        :param query: returns the other answer, and the database's time at some
            moment of the query; None if the database has no clock of its own
        """
        before = self._own()
        answer, now = query()
        if now is not None:
            # However long the query took: a late time is better than an early
            # time.
            self._seen = now, self._monotonic()
            # The difference that the duration of the query does not explain.
            self._judge(max(before - now, 0) or min(self._own() - now, 0))
        return answer

    def check(self) -> None:
        """Return if the own clock is within tolerance of the database's clock.

        :raises Unavailable: saying by how much the clocks differ
        """
        if self.differs:
            raise exception.Unavailable(self._difference())

    def _judge(self, ahead: float) -> None:
        self._ahead = ahead
        self._metrics.of(CLOCK_DIFFERENCE).set(ahead)
        differed, self.differs = self.differs, abs(ahead) > self._tolerance()
        if self.differs and not differed:
            LOG.error('%s: this manager runs no events', self._difference())
        elif differed and not self.differs:
            LOG.info("This manager's clock agrees with the database's again")

    def _difference(self) -> str:
        side = 'ahead of' if self._ahead > 0 else 'behind'
        return (
            f"this manager's clock is {abs(self._ahead):.1f} s {side} the "
            "database's"
        )
