# SPDX-License-Identifier: Apache-2.0
"""Long polls: requests that wait until a lease has a status.

A request that waits keeps a thread of the process, but no thread of a manager
and no transaction. Few requests may wait at once, so that other requests
always find a thread. A request for which there is no place does not wait.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
import contextlib
import dataclasses
import threading
import time
from typing import Any

import falcon

from blazar_sched.domain import exception
from blazar_sched.service.api import listing

# Of so many threads one may wait, and of so many waiting requests one may be
# of the same project, the first one always.
_THREADS = 4
_OF_PROJECT = 2
MAX_TIMEOUT = 60
# Seconds between two looks at a lease.
_PAUSE = 0.5
# Seconds after which a request for which there was no place may be repeated,
# and seconds between such repetitions.
_LATER = 5
_APART = 0.05


@dataclasses.dataclass(frozen=True, slots=True)
class Early:
    """A body that may be asked for again after some seconds."""

    body: dict[str, Any]
    retry_after: int


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """What a request waits for: a status, for `timeout` seconds at most.

    A request that is `alone` has the only thread of the process.
    """

    statuses: Collection[str]
    timeout: int
    alone: bool


def asked(req: falcon.Request, known: Collection[str]) -> Wait | None:
    """Return the wait of ``wait_for=ACTIVE,ERROR&timeout=60``, None if none.

    :raises InvalidInput: naming the parameter that is wrong
    """
    timeout = listing.number(req, 'timeout', MAX_TIMEOUT)
    text = req.get_param('wait_for')
    if text is None:
        if timeout is not None:
            raise exception.InvalidInput(
                'timeout needs wait_for', field='timeout'
            )
        return None
    statuses = text.split(',')
    if not set(statuses) <= set(known):
        raise exception.InvalidInput(
            f'wait_for must be some of {", ".join(known)}', field='wait_for'
        )
    return Wait(
        statuses, timeout or MAX_TIMEOUT, not req.env['wsgi.multithread']
    )


class Waiting:
    """The requests of a process that wait.

    :param threads: the number of threads of the process
    """

    def __init__(self, threads: int) -> None:
        self._most = threads // _THREADS
        self._lock = threading.Lock()
        self._by_project: Counter[str] = Counter()
        # When the last request of a project without a place is to be repeated.
        self._last: dict[str, float] = {}

    def until(
        self, wait: Wait, project_id: str, status: Callable[[], str]
    ) -> int:
        """Wait for a status, if there is a place.

        :param project_id: the project of the caller
        :param status: returns the present status
        :returns: the seconds after which the request may be repeated, unless
            the status is there
        """
        end = time.monotonic() + wait.timeout
        with self._place(project_id) as has_place:
            if wait.alone or not has_place:
                return self._later(project_id)
            while status() not in wait.statuses:
                left = end - time.monotonic()
                if left <= 0:
                    break
                time.sleep(min(_PAUSE, left))
        return 0

    def _later(self, project_id: str) -> int:
        """Return the seconds after which the caller's repetition is due.

        The more requests a project has, the later each of them is repeated.
        """
        with self._lock:
            now = time.monotonic()
            last = self._last.get(project_id, 0.0)
            due = min(max(now + _LATER, last + _APART), now + MAX_TIMEOUT)
            self._last = {k: v for k, v in self._last.items() if v > now}
            self._last[project_id] = due
            return round(due - now)

    @contextlib.contextmanager
    def _place(self, project_id: str) -> Iterator[bool]:
        with self._lock:
            waiting = self._by_project.total(), self._by_project[project_id]
            has_place = waiting[0] < self._most and (
                waiting[1] < max(1, self._most // _OF_PROJECT)
            )
            self._by_project[project_id] += has_place
        try:
            yield has_place
        finally:
            with self._lock:
                self._by_project[project_id] -= has_place
                # Projects whose requests do not wait leave memory.
                self._by_project += Counter()
