# SPDX-License-Identifier: Apache-2.0
"""What replicas ask for after a commit, read once for all of them.

A thousand workers that hear of one commit ask the same question. Whether
there was another commit is read for each of them; the page of changes is kept
for a moment.
"""

from collections.abc import Callable
import dataclasses
import time

from blazar_sched.replica import wire
from blazar_sched.service.ledger.ledger import Ledger

# Seconds for which pages are kept: a database that is restored under a running
# manager may come to the same revision by other changes.
KEPT = 1.0
# Pages, each for replicas of another revision.
MOST_PAGES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """Pages by their `since` and limit.

    :ivar newest: the ledger and its newest revision, of all of the pages
    :ivar since: when the first was read, monotonic seconds
    """

    newest: tuple[str, int]
    since: float
    pages: dict[tuple[int, int], wire.Page] = dataclasses.field(
        default_factory=dict
    )


class Feed:
    """Answers `changes` from the ledger.

    Safe to share between threads: one that reads a page that another thread
    has just kept only reads it once too often.

    :param monotonic: returns seconds that only pass
    """

    def __init__(
        self,
        ledger: Ledger,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._monotonic = monotonic
        # Replaced as a whole, so that no page gets among others.
        self._kept = _Kept(('', 0), float('-inf'))

    def changes(self, since: int, limit: int) -> wire.Page:
        """Return what `Ledger.changes` does, and at least as new.

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
                and len(pages) < MOST_PAGES
            ):
                pages[since, limit] = page
        return page
