# SPDX-License-Identifier: Apache-2.0
"""A lease request: a project waits until a lease finds room.

The waiting requests have one order: by priority, then by age, or by turns of
the projects, as the number of each new request says.
"""

from collections.abc import Iterable
import dataclasses
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain.window import Window
from blazar_sched.placing.window_search import Starts

# The priorities from the lowest to the highest.
PRIORITIES = LOW, NORMAL, HIGH = ('low', 'normal', 'high')

STATUSES = WAITING, BOOKED, LAPSED, CANCELLED = (
    'WAITING', 'BOOKED', 'LAPSED', 'CANCELLED',
)


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A request for a lease that begins in a range of starts.

    `reservations` are as they were requested. `priority` is a position in
    PRIORITIES. `number` is the place within the priority, see `next_number`.
    `digest` identifies what was requested, so that a request
    that is sent again makes no second lease request. The lease of a `flexible`
    request may be moved in the range of starts, for the sake of a request of
    a higher priority, until it starts.
    """

    id: str
    name: str
    project_id: str
    user_id: str
    reservations: list[dict[str, Any]]
    start: int
    latest_start: int
    duration: int
    wait_until: int
    priority: int
    digest: str
    flexible: bool = False
    number: int = 0
    status: str = WAITING
    lease_id: str | None = None
    created_at: int | None = None
    updated_at: int | None = None

    @property
    def is_waiting(self) -> bool:
        return self.status == WAITING

    @property
    def turn(self) -> tuple[int, int, int, str]:
        """The sort key of the request among the waiting requests."""
        return -self.priority, self.number, self.created_at or 0, self.id

    @property
    def span(self) -> Window:
        """The window around all windows that the lease may have.

        :raises InvalidInput: if the window is out of range
        """
        return Window(self.start, self.latest_start + self.duration)

    def may_have(self, window: Window) -> bool:
        """Tell whether the lease may have a window."""
        return (
            self.start <= window.start <= self.latest_start
            and window.duration == self.duration
        )

    def check(self, now: int) -> None:
        """Refuse dates that leave nothing to wait for.

        :raises InvalidInput: naming the field that is wrong
        """
        if self.latest_start < self.start:
            raise exception.InvalidInput(
                'latest_start_date must not be before start_date',
                field='latest_start_date',
            )
        if not now < self.wait_until <= self.latest_start:
            raise exception.InvalidInput(
                'wait_until must be after now, and not after '
                'latest_start_date',
                field='wait_until',
            )
        _ = self.span


def next_number(
    new: LeaseRequest, waiting: Iterable[LeaseRequest], last: int,
    by_turns: bool,
) -> int:
    """Return the number of a new request.

    By turns, the first requests of all projects are ahead of the second ones:
    start-time fair queuing with requests of equal cost (Goyal, Vin and Cheng,
    SIGCOMM 1996), whose virtual time is the number of the first request that
    waits.

    :param waiting: the requests that wait
    :param last: the greatest number of all requests
    :param by_turns: whether the projects take turns, or the oldest request is
        first
    """
    same = [each for each in waiting if each.priority == new.priority]
    if not (by_turns and same):
        return last + 1
    own = [
        each.number + 1 for each in same if each.project_id == new.project_id
    ]
    return max([min(each.number for each in same), *own])


def starts_outside(
    starts: Starts, duration: int, windows: Iterable[Window]
) -> list[Starts]:
    """Return the starts at which a lease overlaps none of the windows.

    :param starts: the range of the starts
    :param duration: the length of the lease in seconds
    """
    first, last = starts
    found = []
    for window in sorted(windows, key=lambda window: window.start):
        before = min(window.start - duration, last)
        if first <= before:
            found.append((first, before))
        first = max(first, window.end)
    if first <= last:
        found.append((first, last))
    return found
