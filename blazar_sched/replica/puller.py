# SPDX-License-Identifier: Apache-2.0
"""Pulls the ledger's changes and keeps a replica at its revision.

Pull is the only path: whatever is lost, doubled or out of order on the way
is asked for again. What cannot be understood makes the replica stale and is
answered by a snapshot. One thread pulls; `copy` is replaced as a whole, so
any thread may read it.
"""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import threading
from typing import Any

from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.replica import wire

# Records asked for at once.
LIMIT = 1000

Image = dict[tuple[str, str], dict[str, Any]]
# Calls a method of the manager by name and returns its answer.
Call = Callable[..., Any]


class Unanswered(Exception):
    """The ledger could not be asked, or failed to answer."""


class Unusable(ValueError):
    """What came cannot be understood or does not fit."""


@dataclasses.dataclass(frozen=True, slots=True)
class Copy:
    """A replica of the ledger `ledger`, known to be true at `fresh_at`.

    `fresh_at` is on the monotonic clock; None for a replica that is known
    not to be right.
    """

    ledger: str
    replica: state.Replica
    fresh_at: float | None


class Puller:
    """Keeps `copy`, None until there is one.

    :param call: ``call('changes', since=, limit=)`` and
        ``call('snapshot', after=, limit=)`` answer with wire pages
    :param monotonic: the clock of `Copy.fresh_at`
    """

    def __init__(self, call: Call, monotonic: Callable[[], float]) -> None:
        self._call = call
        self._monotonic = monotonic
        self._copy: Copy | None = None
        # Held while the replica is written to.
        self._lock = threading.Lock()

    @property
    def copy(self) -> Copy | None:
        return self._copy

    def load(
        self,
        ledger: str,
        revision: int,
        records: Iterable[record.Record],
        fresh_at: float,
        now: int,
    ) -> None:
        """Start from a copy that was kept.

        :raises Unusable: if the records cannot be used
        """
        image: Image = {}
        record.merge(image, records)
        try:
            replica = _build(revision, image, now)
        except Exception as e:
            raise Unusable(f'{type(e).__name__}: {e}') from e
        self._copy = Copy(ledger, replica, fresh_at)

    def pull(self, now: int) -> None:
        """Bring the replica to the ledger's newest revision, and to `now`.

        :raises Unanswered: if there is no answer; the replica grows older
        :raises Unusable: if an answer cannot be used; the replica is stale
            then, and the next call takes a snapshot
        """
        before = self._monotonic()
        copy = self._copy
        try:
            if (
                copy is None
                or copy.fresh_at is None
                or not self._follow(copy, now)
            ):
                copy = self._snapshot(now)
        except Unanswered:
            raise
        except Exception as e:
            # A record that only looks like one may raise whatever it likes.
            if copy is not None:
                self._copy = dataclasses.replace(copy, fresh_at=None)
            raise Unusable(f'{type(e).__name__}: {e}') from e
        self._copy = dataclasses.replace(copy, fresh_at=before)

    def advance(self, now: int) -> None:
        """Bring the replica to `now`, unless it is just being written to.

        So it never waits.
        """
        copy = self._copy
        if copy is None or not self._lock.acquire(blocking=False):
            return
        try:
            copy.replica.advance(now)
        finally:
            self._lock.release()

    def _follow(self, copy: Copy, now: int) -> bool:
        """Apply what is new; False if only a snapshot can tell."""
        for page in self._changes(copy.replica.revision):
            if page.ledger != copy.ledger or page.revision is None:
                return False
            with self._lock:
                copy.replica.advance(now)
                if page.revision > copy.replica.revision:
                    copy.replica.apply(page.revision, page.records)
        return True

    def _changes(self, since: int) -> Iterable[wire.Changes]:
        """Yield pages up to the newest revision, or to an unknown one."""
        while True:
            page = wire.parse_changes(
                self._ask('changes', since=since, limit=LIMIT)
            )
            if page.since != since:
                raise Unusable('the answer is to another question')
            if page.revision == since != page.newest:
                raise Unusable('the answer leads nowhere')
            yield page
            if page.revision is None or page.revision == page.newest:
                return
            since = page.revision

    def _snapshot(self, now: int) -> Copy:
        """Copy the ledger anew.

        Its pages may be of different revisions. Records say what *is*, so
        the changes since the first page make them agree.
        """
        image: Image = {}
        first = page = self._snapshot_page(None)
        record.merge(image, page.records)
        while page.next is not None:
            page = self._snapshot_page(page.next)
            _same_ledger(first.ledger, page.ledger)
            record.merge(image, page.records)
        revision = first.revision
        for changes in self._changes(revision):
            _same_ledger(first.ledger, changes.ledger)
            if changes.revision is None:
                raise Unusable('the ledger forgot its own snapshot')
            record.merge(image, changes.records)
            revision = changes.revision
        return Copy(first.ledger, _build(revision, image, now), None)

    def _snapshot_page(self, after: str | None) -> wire.Snapshot:
        page = wire.parse_snapshot(
            self._ask('snapshot', after=after, limit=LIMIT)
        )
        if page.next is not None and page.next == after:
            raise Unusable('the answer leads nowhere')
        return page

    def _ask(self, method: str, **kwargs: Any) -> Any:
        try:
            return self._call(method, **kwargs)
        except Exception as e:
            raise Unanswered(f'{type(e).__name__}: {e}') from e


def _same_ledger(ledger: str, other: str) -> None:
    if ledger != other:
        raise Unusable('the ledger changed between two pages')


def _build(revision: int, image: Image, now: int) -> state.Replica:
    replica = state.Replica(accounting.SchedulerAccounting)
    replica.advance(now)
    replica.load(
        revision, ((kind, key, data) for (kind, key), data in image.items())
    )
    return replica
