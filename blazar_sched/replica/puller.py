# SPDX-License-Identifier: Apache-2.0
"""Puller of the ledger's changes, which keeps a replica at its revision.

Pull is the only path: an answer that is lost, doubled or out of order on the
way is asked for again. An answer that cannot be understood makes the replica
stale, and the next pull takes a snapshot. One thread pulls; `copy` is replaced
as a whole, so any thread may read it.

Why a full copy equals a rebuild from SQL, though its pages may be of
different revisions and of different managers: let `since` be the least
revision of a page and `until` the greatest, and let the changes be the
changes of ``(since, N]`` with ``N >= until``. A record holds the whole state
of its key. The last change of a key that these changes name is the state of
the key at N. A key that the changes do not name had the same state at `since`
as at N, so also when its page was read, and the pages leave no gap between
their keys. An entity of a page whose host the copy lacks was created, with its
host, after the page of hosts was read: the changes name the entity, or else an
answer is wrong, which is checked.

A ledger whose revision is below the replica's is an old database: a database
that lags behind, or that was restored from a backup. The replica is not set
back as long as it is fresh; once it is stale, it takes the old ledger's state,
and a warning is logged. (After a restore, replicas that were away until the
revision had passed theirs could not detect the restore; these replicas start
anew if the restored ledger is given another uuid.)
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import threading
import time
from typing import Any

from oslo_log import log as logging

from blazar_sched import ext
from blazar_sched.domain.settings import Settings
from blazar_sched.domain.settings import UNTOLD
from blazar_sched.replica import accounting
from blazar_sched.replica import packing
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.replica import wire

LOG = logging.getLogger(__name__)

# Records asked for in one call.
LIMIT = 1000

# Calls a method of the manager by name and returns its answer.
Call = Callable[..., Any]


class Unanswered(Exception):
    """No answer is there yet from which the pull can continue."""


class Unusable(ValueError):
    """An answer that cannot be understood or does not fit."""


@dataclasses.dataclass(frozen=True, slots=True)
class Copy:
    """A replica of the ledger `ledger`, known to be true at `fresh_at`.

    `fresh_at` is on the monotonic clock; None for a replica that is known to
    be wrong.
    """

    ledger: str
    replica: state.Replica
    fresh_at: float | None


class Puller:
    """A puller that keeps `copy`, which is None until there is a copy.

    :param call: ``call('changes', since=, limit=)`` and
        ``call('snapshot', after=, limit=)`` answer with wire pages
    :param monotonic: the clock of `Copy.fresh_at`
    :param max_age: returns the number of seconds for which a copy is fresh
    :param copy: an existing copy to start from
    :param clock: this process's wall clock, in epoch seconds
    :param removed: called with the uuid of each instance whose record the
        ledger has deleted
    :ivar ahead: seconds by which that clock is ahead of the manager's, as far
        as the duration of the call does not explain the difference
    """

    def __init__(
        self, call: Call, monotonic: Callable[[], float],
        max_age: Callable[[], float], copy: Copy | None = None,
        clock: Callable[[], float] = time.time,
        removed: Callable[[str], object] = lambda uuid: None,
    ) -> None:
        self.ahead = 0.0
        self._removed = removed
        self._clock = clock
        self._call = call
        self._monotonic = monotonic
        self._max_age = max_age
        self._copy = copy
        # The lock is held while a thread writes to the replica.
        self._lock = threading.Lock()

    @property
    def copy(self) -> Copy | None:
        return self._copy

    def is_fresh(self, copy: Copy) -> bool:
        return (
            copy.fresh_at is not None
            and self._monotonic() - copy.fresh_at <= self._max_age()
        )

    def load(
        self, ledger: str, revision: int, items: Iterable[packing.Item],
        fresh_at: float, now: int, settings: Settings = UNTOLD,
    ) -> None:
        """Start from the items of a copy that was kept.

        :param settings: what a manager has told with the copy
        :raises Unusable: if the items cannot be used
        """
        replica = self._new(now, settings)
        try:
            if replica.load(revision, *packing.split(items)):
                raise ValueError('a record names a host that does not exist')
        except Exception as e:
            raise Unusable(f'{type(e).__name__}: {e}') from e
        self._copy = Copy(ledger, replica, fresh_at)

    def pull(self, now: int) -> None:
        """Bring the replica to the ledger's newest revision, and to `now`.

        :raises Unanswered: if no manager answers, or only in another version
            of the wire format, or with an old state; the replica grows older
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
        except (Unanswered, wire.WireVersionError) as e:
            raise Unanswered(str(e)) from e
        except Exception as e:
            # A malformed record may raise any exception.
            if copy is not None:
                self._copy = dataclasses.replace(copy, fresh_at=None)
            raise Unusable(f'{type(e).__name__}: {e}') from e
        self._copy = dataclasses.replace(copy, fresh_at=before)

    def advance(self, now: int) -> None:
        """Bring the replica to `now`, unless a thread is writing to it.

        The call never waits.
        """
        copy = self._copy
        if copy is None or not self._lock.acquire(blocking=False):
            return
        try:
            copy.replica.advance(now)
        finally:
            self._lock.release()

    def _follow(self, copy: Copy, now: int) -> bool:
        """Apply the new changes; return False if a snapshot is needed."""
        for page in self._changes(copy.replica.revision):
            if page.ledger != copy.ledger or page.revision is None:
                return False
            with self._lock:
                copy.replica.use(page.settings)
                copy.replica.advance(now)
                if page.revision <= copy.replica.revision:
                    continue
                try:
                    copy.replica.apply(page.revision, page.records)
                except ext.TimelineError as e:
                    LOG.error(
                        'The changes up to revision %d are invalid: %s. '
                        'Reloading the replica.', page.revision, e,
                    )
                    return False
            for kind, key, data in page.records:
                if kind == record.INSTANCE and data is None:
                    self._removed(key)
        return True

    def _changes(self, since: int) -> Iterator[wire.Changes]:
        """Yield pages up to the newest revision, or to an unknown one."""
        while True:
            before = self._clock()
            page = wire.parse_changes(
                self._ask('changes', since=since, limit=LIMIT)
            )
            if page.now is not None:
                self.ahead = max(before - page.now, 0) or min(
                    self._clock() - page.now, 0
                )
            self._check_age(page.ledger, page.newest)
            if page.since != since:
                raise Unusable('the page is the response to another request')
            if page.revision == since != page.newest:
                raise Unusable('the page has no next page')
            yield page
            if page.revision is None or page.revision == page.newest:
                return
            since = page.revision

    def _snapshot(self, now: int) -> Copy:
        """Copy the ledger anew, without records that cannot be used."""
        try:
            return self._copied(now, leave_out=False)
        except ext.TimelineError as e:
            LOG.error('The replica leaves out invalid records: %s', e)
            return self._copied(now, leave_out=True)

    def _copied(self, now: int, leave_out: bool) -> Copy:
        """Copy the ledger; the module docstring says why pages may differ."""
        first = self._snapshot_page(None)
        revisions: list[int] = []
        replica = self._new(now)
        left_out = replica.load(
            0, *packing.split(self._items(first, revisions)), leave_out
        )
        since, until = min(revisions), max(revisions)
        changed: dict[tuple[str, str], record.Record] = {}
        for page in self._changes(since):
            _check_same_ledger(first.ledger, page.ledger)
            if page.revision is None:
                raise Unanswered('the changes after the snapshot are pruned')
            replica.use(page.settings)
            changed |= {(each[0], each[1]): each for each in page.records}
            newest = page.revision
        if newest < until:
            raise Unanswered(
                f'the changes end at revision {newest}, before {until}'
            )
        if not left_out <= {key for _, key in changed}:
            raise Unusable('a record names a host that does not exist')
        replica.apply(newest, changed.values(), leave_out)
        self._tell(first.ledger, newest)
        return Copy(first.ledger, replica, None)

    def _items(
        self, page: wire.Snapshot, revisions: list[int]
    ) -> Iterator[packing.Item]:
        """Yield the items of the first page and of the pages that follow.

        :param revisions: receives the revisions of the pages
        """
        ledger = page.ledger
        while True:
            _check_same_ledger(ledger, page.ledger)
            revisions.append(page.revision)
            yield from page.items
            if page.next is None:
                return
            page = self._snapshot_page(page.next)

    def _snapshot_page(self, after: str | None) -> wire.Snapshot:
        page = wire.parse_snapshot(
            self._ask('snapshot', after=after, limit=LIMIT)
        )
        self._check_age(page.ledger, page.revision)
        if page.after != after:
            raise Unusable('the page is the response to another request')
        if page.next is not None and page.next == after:
            raise Unusable('the page has no next page')
        return page

    def _check_age(self, ledger: str, newest: int) -> None:
        """Refuse an answer that is older than the replica, if that is fresh.
        """
        copy = self._copy
        if (
            copy is not None
            and copy.ledger == ledger
            and newest < copy.replica.revision
            and self.is_fresh(copy)
        ):
            raise Unanswered(
                f'the ledger is at revision {newest}, the replica was at '
                f'{copy.replica.revision} already: the database that the '
                'manager reads lags behind, or is an old one'
            )

    def _tell(self, ledger: str, revision: int) -> None:
        """Warn if the new copy is not a later state of the same ledger."""
        copy = self._copy
        if copy is None:
            return
        if copy.ledger != ledger:
            LOG.warning(
                'The ledger was replaced: %s instead of %s. Reloading the '
                'replica.', ledger, copy.ledger,
            )
        elif revision < copy.replica.revision:
            LOG.warning(
                'The ledger went back from revision %d to %d. Reloading the '
                'replica.', copy.replica.revision, revision,
            )

    def _new(self, now: int, settings: Settings = UNTOLD) -> state.Replica:
        replica = state.Replica(
            accounting.SchedulerAccounting, settings=settings
        )
        replica.advance(now)
        return replica

    def _ask(self, method: str, **kwargs: Any) -> Any:
        try:
            return self._call(method, **kwargs)
        except Exception as e:
            # The traceback of a manager follows in the text of the error.
            text = f'{type(e).__name__}: {e}'.partition('\n')[0]
            raise Unanswered(text) from e


def _check_same_ledger(ledger: str, other: str) -> None:
    if ledger != other:
        raise Unanswered('the ledger changed between two pages')
