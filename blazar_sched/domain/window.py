# SPDX-License-Identifier: Apache-2.0
"""A window of time: half-open ``[start, end)``, UTC, whole seconds."""

import dataclasses

from blazar_sched import ext
from blazar_sched.domain import exception

FOREVER = ext.FOREVER
TIME_LIMIT = ext.TIME_LIMIT


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """A half-open window ``[start, end)``; `end` is FOREVER if unbounded.

    :raises InvalidInput: if the window is empty or out of range
    """

    start: int
    end: int = FOREVER

    def __post_init__(self) -> None:
        if not 0 <= self.start < TIME_LIMIT:
            raise exception.InvalidInput(
                f'start {self.start} is out of range', field='start_date'
            )
        if self.end != FOREVER and self.end >= TIME_LIMIT:
            raise exception.InvalidInput(
                f'end {self.end} is out of range', field='end_date'
            )
        if self.end <= self.start:
            raise exception.InvalidInput(
                'End date must be later than start date.', field='end_date'
            )

    @property
    def duration(self) -> int:
        return FOREVER if self.end == FOREVER else self.end - self.start

    def widened(self, seconds: int) -> 'Window':
        """Return the window, widened on both sides within the range of times.

        :param seconds: seconds added before the start and after the end
        """
        if not seconds:
            return self
        end = self.end
        if end != FOREVER:
            end = min(end + seconds, TIME_LIMIT - 1)
        return Window(max(0, self.start - seconds), end)

    def contains(self, at: int) -> bool:
        return self.start <= at < self.end

    def includes(self, other: 'Window') -> bool:
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: 'Window') -> bool:
        return self.start < other.end and other.start < self.end
