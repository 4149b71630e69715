# SPDX-License-Identifier: Apache-2.0
"""The clock that managers decide by: the database's, which all have alike."""

from collections.abc import Callable
from typing import TypeVar

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.service.metrics import CLOCK_DIFFERENCE
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

T = TypeVar('T')


class Clock:
    """The database's time, in epoch seconds.

    From one look at the database to the next the time passes with the
    monotonic clock, so a step of this process's own wall clock changes
    nothing. Until the first look, and where the database has no clock of its
    own (SQLite), it is this process's own.

    :param own: this process's wall clock, in epoch seconds
    :param monotonic: returns seconds that only pass
    :param tolerance: by how many seconds the own clock may differ
    """

    def __init__(
        self,
        own: Callable[[], float],
        monotonic: Callable[[], float],
        tolerance: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._own = own
        self._monotonic = monotonic
        self._tolerance = tolerance
        self._metrics = metrics
        # The database's time, and when on the monotonic clock that was.
        self._seen: tuple[float, float] | None = None
        # Seconds that the own clock is ahead of the database's.
        self._ahead = 0.0
        self.differs = False

    def __call__(self) -> float:
        """Return the time."""
        if self._seen is None:
            return self._own()
        at, since = self._seen
        return at + self._monotonic() - since

    def ask(self, query: Callable[[], tuple[T, float | None]]) -> T:
        """Look at the database's clock, and return what else a query tells.

        :param query: returns that, and the database's time at some moment of
            the query; None if the database has none of its own
        """
        before = self._own()
        answer, now = query()
        if now is not None:
            # However long the query took: late rather than early.
            self._seen = now, self._monotonic()
            # What the length of the query does not explain.
            self._judge(max(before - now, 0) or min(self._own() - now, 0))
        return answer

    def check(self) -> None:
        """Pass if the own clock is about the database's.

        :raises Unavailable: saying by how much it differs
        """
        if self.differs:
            raise exception.Unavailable(self._difference())

    def _judge(self, ahead: float) -> None:
        self._ahead = ahead
        self._metrics.of(CLOCK_DIFFERENCE).set(ahead)
        differed, self.differs = self.differs, abs(ahead) > self._tolerance()
        if self.differs and not differed:
            LOG.error('%s: no event is done here', self._difference())
        elif differed and not self.differs:
            LOG.info("This manager's clock is about the database's again")

    def _difference(self) -> str:
        side = 'ahead of' if self._ahead > 0 else 'behind'
        return (
            f"this manager's clock is {abs(self._ahead):.1f} s {side} the "
            "database's"
        )
