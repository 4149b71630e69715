# SPDX-License-Identifier: Apache-2.0
"""The tries of events, as remembered by one process.

Only the time of the next try depends on this memory: other managers, and the
next process, rely on the ledger alone.
"""

from collections.abc import Collection
import dataclasses
import threading

from blazar_sched.domain.event import END_LEASE
from blazar_sched.domain.event import Event

# Seconds until the next check whether deleted servers are gone, or whether a
# host has been left; the interval grows with the time waited.
LOOK_AGAIN = 1.0
RAREST_LOOK = 5.0
# Seconds until the retry after the first failure: together with the time until
# the runner looks, less than a second.
FIRST_RETRY = 0.25
# The longest pause, in seconds, of an event whose service can do nothing now.
LONGEST_AWAY = 30.0


@dataclasses.dataclass(slots=True)
class Attempted:
    """An event that was tried; all times are on the monotonic clock.

    :param since: when the operation that the event waits for was begun
    :param pause: seconds that the event waited after its last failure, 0 if
        the event never failed
    :param paused: seconds that the event waited after all its failures that
        count
    :param told: the last failure that the log has a line about
    """

    lease_id: str
    since: float
    pause: float = 0.0
    paused: float = 0.0
    not_before: float = float('-inf')
    blocked: bool = False
    told: str = ''

    def wait_longer(self, now: float) -> None:
        """Have the event wait, longer the longer the event has waited."""
        wait = min(max(LOOK_AGAIN, (now - self.since) / 2), RAREST_LOOK)
        self.not_before = now + wait

    def pause_longer(self, now: float, longest: float, in_all: float) -> bool:
        """Have the event wait after a failure, twice as long each time.

        :param longest: the longest pause, in seconds
        :param in_all: the sum of all pauses, in seconds, after which the event
            is not tried again
        :returns: False if the pauses have reached that sum already
        """
        if self.paused >= in_all:
            return False
        self.rest(now, longest)
        self.paused += self.pause
        return True

    def rest(self, now: float, longest: float, least: float = 0.0) -> None:
        """Have the event wait, twice as long each time; nothing is counted.

        :param least: the seconds that the event waits at least
        """
        self.pause = min(2 * self.pause or FIRST_RETRY, longest)
        self.since = now
        self.not_before = now + max(self.pause, least)

    def is_news(self, failure: str) -> bool:
        """Tell whether a failure is not the failure that was logged last."""
        before, self.told = self.told, failure
        return failure != before


class Attempts:
    """The running and earlier tries of events; safe to share by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The leases with an event that runs in this process, or waits for a
        # thread.
        self.running: set[str] = set()
        self._tried: dict[str, Attempted] = {}

    def take(self, event: Event, now: float) -> bool:
        """Begin a try, unless the event has to wait or its lease is busy."""
        with self._lock:
            tried = self._tried.get(event.id)
            if event.lease_id in self.running or (
                tried is not None and now < tried.not_before
            ):
                return False
            self.running.add(event.lease_id)
            return True

    def release(self, event: Event) -> None:
        """End a try, whatever the outcome."""
        with self._lock:
            self.running.discard(event.lease_id)

    def known(self, event: Event) -> Attempted | None:
        """Return the remembered tries of an event, None if there are none."""
        return self._tried.get(event.id)

    def remember(self, event: Event, now: float) -> Attempted:
        """Return the remembered tries of an event, adding them if missing."""
        with self._lock:
            return self._tried.setdefault(
                event.id, Attempted(event.lease_id, now)
            )

    def forget(self, event: Event) -> None:
        """Forget an event that is over, and release the events it blocked."""
        with self._lock:
            self._tried.pop(event.id, None)
            for tried in self._tried.values():
                if tried.blocked and event.event_type == END_LEASE:
                    tried.not_before = float('-inf')

    def forget_all_but(self, event_ids: Collection[str]) -> None:
        """Forget the events that other managers have done or moved."""
        with self._lock:
            self._tried = {
                id_: tried
                for id_, tried in self._tried.items()
                if id_ in event_ids or tried.lease_id in self.running
            }
