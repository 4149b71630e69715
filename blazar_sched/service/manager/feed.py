# SPDX-License-Identifier: Apache-2.0
"""The feed of changes for replicas, read once for all replicas.

A thousand workers that are notified of one commit send the same request. For
each request the newest revision is read; the page of changes is kept for a
moment.
"""

from collections.abc import Callable
import dataclasses
import time

from blazar_sched.replica import wire
from blazar_sched.service.ledger.ledger import Ledger

# The seconds for which pages are kept: a database that is restored under a
# running manager may reach the same revision by other changes.
KEPT = 1.0
# The most pages that are kept, each for replicas of another revision.
MAX_PAGES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """The kept pages, by their `since` and limit.

    :ivar newest: the ledger and its newest revision, for all of the pages
    :ivar since: when the first page was read, in monotonic seconds
    """

    newest: tuple[str, int]
    since: float
    pages: dict[tuple[int, int], wire.Page] = dataclasses.field(
        default_factory=dict
    )


class Feed:
    """The feed, which answers `changes` from the ledger.

    Safe to share between threads: a thread that reads a page that another
    thread has just kept only reads the page once too often.

    :param monotonic: returns monotonic seconds
    """

    def __init__(
        self, ledger: Ledger, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger = ledger
        self._monotonic = monotonic
        # Replaced as a whole, so that no page is stored among pages of another
        # revision.
        self._kept = _Kept(('', 0), float('-inf'))

    def changes(self, since: int, limit: int) -> wire.Page:
        """Return the answer of `Ledger.changes`, or a newer answer.

        :raises InvalidInput: if `since` or `limit` is out of range
        """
        newest, at = self._ledger.newest(), self._monotonic()
        kept = self._kept
        if newest != kept.newest or at - kept.since > KEPT:
            kept = self._kept = _Kept(newest, at)
        pages = kept.pages
        page = pages.get((since, limit))
        if page is None:
            page = self._ledger.changes(since, limit)
            if (
                (page['ledger'], page['newest']) == newest
                and len(pages) < MAX_PAGES
            ):
                pages[since, limit] = page
        return page
