# SPDX-License-Identifier: Apache-2.0
"""Work in several commits, none of which keeps the others waiting for long."""

from collections.abc import Callable
from collections.abc import Iterator
import time
from typing import TypeVar

from blazar_sched.service.ledger.tx import PlacingTx

T = TypeVar('T')

# The seconds of processor time that the work of a commit may take: a commit
# that waits for it, and takes as long itself, is made within 50 ms.
SECONDS = 0.02


class Pace:
    """How many things a commit does: as many as take about SECONDS.

    What a thing takes depends on the number of its hosts, and of all hosts.
    The first commit does one thing, and each commit at most twice as many as
    the commit before.

    :param most: the most things of a commit
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._length = 1

    def parts(self, count: int) -> Iterator[slice]:
        """Yield the parts of so many things, one after another.

        The caller does the work of a part, `timed`, before the next part.
        """
        begin = 0
        while begin < count:
            part = slice(begin, begin + self._length)
            yield part
            begin = part.stop

    def timed(
        self, work: Callable[[PlacingTx], T]
    ) -> Callable[[PlacingTx], T]:
        """Return the work of a part, which tells the length of the next."""
        def timed(tx: PlacingTx) -> T:
            began = time.thread_time()
            result = work(tx)
            took = max(time.thread_time() - began, 1e-6)
            fitting = int(self._length * SECONDS / took)
            self._length = max(1, min(fitting, 2 * self._length, self._most))
            return result

        return timed
