# SPDX-License-Identifier: Apache-2.0
"""Answers to requests without a token, which cost the service little."""

from collections.abc import Callable
import threading
import time

import cachetools

from blazar_sched.domain import exception
from blazar_sched.service.bus.calls import Page

# The key of the answers in the WSGI environ of a request without a token.
PUBLIC = 'blazar_sched.public'
# The paths that the operator may open.
PATHS = ('/v1/products',)
# Seconds for which an answer is kept, seconds between two new answers, and the
# most answers that are kept.
_KEPT = 5
_APART = 1
_MAX_ANSWERS = 64


class Public:
    """The last answers of a process: one request at a time gets a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.Semaphore()
        self._due = 0.0
        self._answers: cachetools.TTLCache[object, Page]
        self._answers = cachetools.TTLCache(_MAX_ANSWERS, _KEPT)

    def get(self, key: object, ask: Callable[[], Page]) -> Page:
        """Return the answer to a question.

        :param key: the question
        :param ask: asks the manager
        :raises TooManyRequests: if a new answer was made a moment ago
        """
        with self._lock:
            found = self._answers.get(key)
        if found is not None:
            return found
        busy = exception.TooManyRequests(
            'too many requests without a token; try again in a moment'
        )
        if not self._free.acquire(blocking=False):
            raise busy
        try:
            if time.monotonic() < self._due:
                raise busy
            try:
                answer = ask()
            finally:
                self._due = time.monotonic() + _APART
            with self._lock:
                self._answers[key] = answer
            return answer
        finally:
            self._free.release()
