# SPDX-License-Identifier: Apache-2.0
"""Turns: of the requests that cost much, one is worked on at a time."""

from collections import Counter
from collections import deque
from collections.abc import Iterator
import contextlib
import threading

from blazar_sched.domain import exception

# The most requests that run or wait, of a project and of all, and the seconds
# that a request waits: its caller does not wait much longer.
MAX_OF_ONE = 4
MAX = 8
WAIT = 10.0


class FairLock:
    """A lock that the threads get in the order in which they ask for it.

    A thread that asks for a `threading.Lock` again right after releasing the
    lock gets it ahead of all threads that wait.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The turn of each thread that has or awaits the lock, in their order.
        self._turns: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        mine = threading.Lock()
        with self._lock:
            if self._turns:
                mine.acquire()
            self._turns.append(mine)
        mine.acquire()

    def __exit__(self, *unused: object) -> None:
        with self._lock:
            self._turns.popleft()
            if self._turns:
                self._turns[0].release()


class Turns:
    """The turns of the requests of one kind in a process.

    :param what: the requests, as an error message names them
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._owners: Counter[str] = Counter()

    @contextlib.contextmanager
    def take(
        self, owner: str, most_of_one: int = MAX_OF_ONE, most: int = MAX,
        wait: float = WAIT,
    ) -> Iterator[None]:
        """Wait for the turn of a request, and keep the turn in the block.

        :param owner: who has sent the request
        :param most_of_one: the most requests of an owner that run or wait
        :param most: the most requests that run or wait
        :param wait: the seconds that a request waits
        :raises TooManyRequests: if too many requests run or wait already
        """
        with self._lock:
            if (
                self._owners[owner] >= most_of_one
                or self._owners.total() >= most
            ):
                raise self._too_many()
            self._owners[owner] += 1
        try:
            if not self._turn.acquire(timeout=wait):
                raise self._too_many()
            try:
                yield
            finally:
                self._turn.release()
        finally:
            with self._lock:
                self._owners -= Counter([owner])

    def _too_many(self) -> exception.TooManyRequests:
        return exception.TooManyRequests(
            f'too many {self._what} are in progress: retry later'
        )
