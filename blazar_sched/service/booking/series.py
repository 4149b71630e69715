# SPDX-License-Identifier: Apache-2.0
"""Series: leases that recur, booked ahead up to a horizon.

The occurrences of a series are ordinary leases. The first occurrences up to
the horizon are booked when the series is created, in one commit, for which
other commits do not wait long; a loop books the others, and the later ones as
the horizon moves on.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
from typing import Any
import uuid

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.series import MAX_RESERVATIONS
from blazar_sched.domain.series import Occurrence
from blazar_sched.domain.series import Recurrence
from blazar_sched.domain.series import REFUSE
from blazar_sched.domain.series import Series
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.service import loop
from blazar_sched.service.booking import draft
from blazar_sched.service.booking import idempotency
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.booking import Removed
from blazar_sched.service.booking.lease_writer import Placed
from blazar_sched.service.booking.obstacle import with_obstacles
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import SERIES_AT_RISK
from blazar_sched.service.bus.notifier import SERIES_FAILED
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.enforcement.base import Project
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

# The seconds between two looks at all series.
INTERVAL = 60.0
# The longest seconds between two tries of a missing occurrence.
MAX_PAUSE = 900.0

_Shown = dict[str, Any]
_Errors = tuple[type[exception.BlazarSchedError], ...]
# The errors for which the loop leaves out an occurrence, to try it again.
_LEFT_OUT: _Errors = (
    exception.NotEnoughHostsAvailable, exception.LimitExceeded,
)
# A flavor of the series may be gone, too, once the series is rolled on.
_LEFT_OUT_LATER: _Errors = (*_LEFT_OUT, exception.InvalidInput)
# The namespace of the ids of series that are made from keys.
_NAMESPACE = uuid.UUID('5b0c6a52-64fd-4c0b-9a53-3d2f6b1c7e48')
# The fields of a series that are not those of leases that are booked already.
_OF_NO_LEASE = {'name', 'if_no_room'}
# Of these depends whether a series has an occurrence. Excepted dates may leave
# out all of them.
_OF_THE_RULE = {'rrule', 'start', 'time_zone'}


@dataclasses.dataclass(frozen=True, slots=True)
class _Booked:
    """What a commit has done for a series.

    :param missing: the occurrences for which there is no room since now
    """

    shown: _Shown
    missing: list[str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Due:
    """The occurrences to book.

    :param following: the start of the first later occurrence
    :param missing: the names of occurrences that go on to wait for room
    """

    occurrences: list[Occurrence]
    following: int
    missing: list[str] = dataclasses.field(default_factory=list)


class AllSeries(loop.Looped):
    """The operations on series, and the loop that books ahead."""

    def __init__(self, bookings: Bookings, metrics: Metrics) -> None:
        self._conf = bookings.conf.manager
        self._bookings = bookings
        self._ledger = bookings.ledger
        # Whether the last step has left occurrences to the next step.
        self._more = False
        # The ledger's revision when a missing occurrence was last tried, by
        # the id of the series.
        self._tried: dict[str, int] = {}
        self._objects = loop.Objects[Series](
            'series', metrics,
            lambda failing: self._ledger.write(
                lambda tx: notifier.series(tx, SERIES_FAILED, failing, [])
            ),
        )
        self._waiting = loop.Objects[Series]('series without room', metrics)
        self._loop = loop.Loop('series', self.step)

    def create(
        self,
        values: Mapping[str, Any],
        key: str | None = None,
        dry_run: bool = False,
        names: bool = False,
    ) -> _Shown:
        """Create a series, and book its occurrences up to the horizon.

        :param key: the idempotency key of the request, unique in its project:
            a repeated request with the same values is answered with the series
            that the first request created
        :param dry_run: answer as otherwise, and change nothing
        :param names: as for `Leases.create`
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if an occurrence has no room, unless
            the series skips such occurrences
        :raises LimitExceeded: if a limit forbids one of the leases, or if the
            project has too many series
        :raises IdempotencyKeyReused: if the key has created another series
        """
        if self._bookings.enforcement.is_external:
            raise exception.InvalidInput(
                'this cloud asks another service about each lease, so that '
                'no series is possible',
                field='rrule',
            )
        now = self._bookings.now()
        id_ = idempotency.new_id(_NAMESPACE, values['project_id'], key)
        new = Series(
            id=id_, created_at=now, digest=idempotency.digest(values), **values
        )
        # Before the checks of times: a request that was in time may be late
        # when repeated.
        made = idempotency.series_of(self._ledger, new)
        if made is not None:
            return _shown(self._ledger, made, now)
        new.recurrence.check_start(now)
        new.recurrence.check(now)
        left_out = _left_out(new)
        try:
            booked = self._create(new, now, left_out, dry_run)
        except exception.NotEnoughHostsAvailable as e:
            raise self._explained(e, new, now, names) from e.__cause__
        if not dry_run:
            self._bookings.runner.wake()
            # The loop books the occurrences for which one commit is too short.
            self._loop.wake()
        return booked.shown

    def _create(
        self, new: Series, now: int, left_out: _Errors, dry_run: bool
    ) -> _Booked:
        due = self._due(new, now)
        self._check_coming(new, due, now)
        due = self._searched(new, due, now, left_out)

        def work(tx: PlacingTx) -> _Booked:
            made = idempotency.series_of(tx, new)
            if made is not None:
                return _Booked(_shown(tx, made, now), [])
            self._check_number(tx, new)
            return self._book(tx, new, due, now, left_out)

        return self._ledger.commit(work, dry_run)

    def _explained(
        self,
        refusal: exception.NotEnoughHostsAvailable,
        series: Series,
        now: int,
        names: bool,
        leaving: Collection[str] = (),
    ) -> exception.NotEnoughHostsAvailable:
        """Return the refusal of an occurrence with what is in its way.

        :param leaving: the ids of the leases that the request would replace
        """
        name = (refusal.offer or {}).get('occurrence')
        if name is None:
            return refusal
        start = series.recurrence.instant(name, 'start')
        window = Window(start, start + series.duration)
        lease = self._draft(series, Occurrence(name, window), now)
        return with_obstacles(
            self._bookings, refusal, lease, window, now, names, leaving
        )

    def _leaving(self, series: Series, at: int) -> set[str]:
        """Return the ids of the leases that a change from `at` replaces."""
        return {
            lease.id for lease in self._ledger.leases_of_series(series.id)
            if _is_untouched(lease)
            and at <= _planned_start(series.recurrence, lease)
        }

    def get(self, series_id: str, project_id: str | None) -> _Shown:
        """Return a series with its occurrences.

        :raises SeriesNotFound: if the project has no such series
        """
        found: Series = self._ledger.one_series(series_id, project_id)
        return _shown(self._ledger, found, self._bookings.now())

    def list(self, project_id: str | None) -> list[_Shown]:
        """Return the series of a project, or all, by id."""
        return [
            dataclasses.asdict(each)
            for each in self._ledger.all_series(project_id)
        ]

    def update(
        self,
        series_id: str,
        project_id: str | None,
        values: Mapping[str, Any],
        since: str | None = None,
        dry_run: bool = False,
        names: bool = False,
    ) -> _Shown:
        """Change a series from an occurrence on, in one commit.

        A lease that has not started is replaced, unless its window and its
        reservations are those of the changed series. An occurrence whose lease
        was deleted is booked again, unless the series excepts the occurrence.

        :param values: the fields to change
        :param since: the local date or time of the first occurrence that
            changes; None for the next occurrence
        :param dry_run: answer as otherwise, and change nothing
        :param names: as for `Leases.create`
        :raises SeriesNotFound: if the project has no such series
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if an occurrence has no room, unless
            the series skips such occurrences
        :raises LimitExceeded: if a limit forbids one of the leases
        """
        now = self._bookings.now()
        # Ahead of the commit, as a rule takes time to check.
        checked: Series = self._ledger.one_series(series_id, project_id)
        _check_change(checked, values, since, now)

        def work(tx: PlacingTx) -> tuple[_Booked, Sequence[Removed]]:
            known: Series = tx.one_series(series_id, project_id)
            if known != checked:
                _check_change(known, values, since, now)
            new = dataclasses.replace(
                known, **values, updated_at=now, retry_at=0
            )
            if values.keys() <= _OF_NO_LEASE:
                tx.put_series(new)
                return _Booked(_shown(tx, new, now), []), []
            at = _first_change(new, since, now)
            return self._change(tx, known, new, at, now, _left_out(new))

        try:
            booked, removed = self._ledger.commit(work, dry_run)
        except exception.NotEnoughHostsAvailable as e:
            new = dataclasses.replace(checked, **values)
            leaving = self._leaving(checked, _first_change(new, since, now))
            raise self._explained(
                e, new, now, names, leaving
            ) from e.__cause__
        if not dry_run:
            for each in removed:
                each()
            self._bookings.runner.wake()
            self._loop.wake()
        return booked.shown

    def delete(self, series_id: str, project_id: str | None) -> None:
        """Delete a series with its leases that have not started.

        The leases that have started go on, as leases of no series.

        :raises SeriesNotFound: if the project has no such series
        """

        def work(tx: PlacingTx) -> Sequence[Removed]:
            series = tx.one_series(series_id, project_id)
            removed = [
                self._bookings.remove(tx, lease)
                for lease in tx.leases_of_series(series.id)
                if _is_untouched(lease)
            ]
            tx.delete_series(series.id)
            idempotency.forget_series(tx, series, self._bookings.now())
            return removed

        for each in self._ledger.commit(work):
            each()

    def _change(
        self,
        tx: PlacingTx,
        known: Series,
        new: Series,
        at: int,
        now: int,
        left_out: _Errors,
    ) -> tuple[_Booked, Sequence[Removed]]:
        """Replace the leases that are not as the changed series says.

        The leases of occurrences that one commit cannot book stay until
        `step` replaces these leases.

        :param at: the first start that changes
        :param left_out: as for `_book`
        """
        due = self._due(dataclasses.replace(new, booked_until=at), now)
        self._check_coming(new, due, now)
        windows = {each.name: each.window for each in due.occurrences}
        recurrence = known.recurrence
        # Occurrences that wait for room continue to wait.
        missing = [
            name for name in known.missing
            if name in windows
            or not at <= recurrence.instant(name, 'start') < due.following
        ]
        settled = set(missing)
        replaced: list[Lease] = []
        for lease in tx.leases_of_series(known.id):
            name = str(lease.occurrence)
            if (
                not at <= _planned_start(recurrence, lease) < due.following
                or not _is_untouched(lease)
                or lease.window == windows.get(name)
                and self._bookings.drafts.is_as_requested(
                    lease, new.reservations, now
                )
            ):
                settled.add(name)
            else:
                replaced.append(lease)
        due = _Due(
            [each for each in due.occurrences if each.name not in settled],
            due.following,
            missing,
        )
        removed = [self._bookings.remove(tx, lease) for lease in replaced]
        return self._book(tx, new, due, now, left_out), removed

    def step(self) -> float:
        """Book the occurrences that the horizon has reached.

        Several managers may do the same: what is to be booked is decided in
        the commit.

        :returns: the seconds until the next step: few if there is more to book
        """
        now = self._bookings.now()
        known = self._ledger.all_series()
        horizon = now + self._conf.series_horizon
        self._more = False
        self._objects.each(
            (
                (series.id, series) for series in known
                if series.booked_until < horizon
            ),
            lambda series: self._roll_on(series, now), now,
        )
        self._waiting.each(
            ((series.id, series) for series in self._to_retry(known, now)),
            lambda series: self._retry(series, now), now,
        )
        ids = {series.id for series in known}
        for id_ in self._tried.keys() - ids:
            del self._tried[id_]
        return loop.PAUSE if self._more else INTERVAL

    def _roll_on(self, series: Series, now: int) -> None:
        """Book the occurrences that the horizon has reached."""
        at = series.booked_until
        recurrence = series.recurrence
        # The leases that a change has yet to replace have the room.
        changing = any(
            _planned_start(recurrence, lease) >= at
            for lease in self._ledger.leases_of_series(series.id)
        )
        due = self._due(series, now)
        if not changing:
            due = self._searched(series, due, now, _LEFT_OUT_LATER)

        def work(tx: PlacingTx) -> tuple[_Booked, Sequence[Removed]]:
            known = tx.one_series(series.id)
            if known != series:
                # Another manager has booked, or the series was changed.
                return _Booked({}, []), []
            done = (
                self._change(tx, known, known, at, now, _LEFT_OUT_LATER)
                if changing
                else (self._book(tx, known, due, now, _LEFT_OUT_LATER), [])
            )
            if missing := done[0].missing:
                notifier.series(tx, SERIES_AT_RISK, known, missing)
            return done

        booked, removed = self._commit_later(series, work)
        for each in removed:
            each()
        if due.following < now + self._conf.series_horizon:
            self._more = True
        if not series.missing:
            self._tried[series.id] = self._ledger.newest()[1]
        if booked.missing:
            LOG.warning(
                'Could not book the occurrences %s of series %s',
                ', '.join(booked.missing), series.id,
            )

    def _to_retry(self, known: Iterable[Series], now: int) -> Iterator[Series]:
        """Yield the series whose missing occurrences are to be tried again.

        They are tried after the ledger has changed, at pauses that grow, by
        one manager at a time, and not more than MAX_RESERVATIONS reservations
        in a step.
        """
        newest = self._ledger.newest()[1]
        left = MAX_RESERVATIONS
        for series in sorted(known, key=lambda each: each.retry_at):
            if (
                left > 0 and series.missing and series.retry_at <= now
                and self._tried.get(series.id) != newest
            ):
                tried = min(len(series.missing), series.most_at_once)
                left -= tried * len(series.reservations)
                yield series

    def _retry(self, series: Series, now: int) -> None:
        """Book the missing occurrences for which there is room by now."""
        coming = {
            each.name: each for each in series.recurrence.occurrences(
                now, series.booked_until
            )
        }

        def claim(tx: Tx) -> Series | None:
            if tx.one_series(series.id) != series:
                return None
            waited = now - (series.updated_at or now)
            names = [name for name in series.missing if name in coming]
            most = series.most_at_once
            # Those that are tried now come last the next time.
            claimed = dataclasses.replace(
                series,
                retry_at=now + int(min(max(waited, INTERVAL), MAX_PAUSE)),
                missing=names[most:] + names[:most],
            )
            tx.put_series(claimed)
            return claimed

        claimed = self._ledger.write(claim)
        if claimed is None:
            return
        most = claimed.most_at_once
        if len(claimed.missing) <= most:
            self._tried[series.id] = self._ledger.newest()[1]
        names = claimed.missing[-most:]
        due = self._searched(
            claimed,
            _Due([coming[name] for name in names], claimed.booked_until),
            now, _LEFT_OUT_LATER,
        )
        if not due.occurrences:
            return
        found = {each.name for each in due.occurrences}
        missing = [name for name in claimed.missing if name not in found]

        def work(tx: PlacingTx) -> tuple[_Booked, Sequence[Removed]]:
            if tx.one_series(series.id) != claimed:
                return _Booked({}, []), []
            booked = self._book(
                tx, claimed, dataclasses.replace(due, missing=missing), now,
                _LEFT_OUT_LATER,
            )
            return booked, []

        self._commit_later(series, work)

    def _commit_later(
        self,
        series: Series,
        work: Callable[[PlacingTx], tuple[_Booked, Sequence[Removed]]],
    ) -> tuple[_Booked, Sequence[Removed]]:
        """Book occurrences of a series that may be deleted by now."""
        try:
            booked, removed = self._ledger.commit(work)
        except exception.SeriesNotFound:
            return _Booked({}, []), []
        self._bookings.runner.wake()
        return booked, removed

    def _check_number(self, tx: PlacingTx, new: Series) -> None:
        most = self._conf.max_series
        if len(tx.all_series(new.project_id)) >= most:
            raise exception.MaxSeries(
                f'a project may have at most {most} series',
                field='rrule',
            )

    def _searched(
        self, series: Series, due: _Due, now: int, left_out: _Errors
    ) -> _Due:
        """Leave out the occurrences without room, before a commit.

        Other commits wait for a commit, but not for this search.

        :param left_out: as for `_book`
        """

        def place(lease: Lease) -> Placed:
            return (lease, *self._ledger.read_replica(
                lambda replica: self._bookings.writer.place(
                    replica, lease, now
                )
            ))

        found: list[Occurrence] = []
        missing = list(due.missing)
        project = self._bookings.enforcement.project(
            self._ledger, series.project_id
        )
        for each in due.occurrences:
            try:
                self._place(self._ledger, series, each, now, project, place)
            except left_out:
                missing.append(each.name)
            else:
                found.append(each)
        return _Due(found, due.following, missing)

    def _book(
        self,
        tx: PlacingTx,
        series: Series,
        due: _Due,
        now: int,
        left_out: _Errors,
    ) -> _Booked:
        """Book the occurrences that are due.

        :param left_out: the errors for which an occurrence is left out; any
            other error refuses the whole request, naming the occurrence
        """

        def place(lease: Lease) -> Placed:
            return (
                lease, *self._bookings.writer.place(tx.replica, lease, now)
            )

        made: list[Placed] = []
        missing = list(due.missing)
        project = self._bookings.enforcement.project(tx, series.project_id)
        for occurrence in due.occurrences:
            try:
                new_lease = self._place(
                    tx, series, occurrence, now, project, place
                )
            except left_out:
                missing.append(occurrence.name)
            else:
                lease, placed, displaced = new_lease
                project.add(lease, placed)
                tx.expect(itertools.chain(*placed.values(), displaced))
                made.append(new_lease)
        # All at once: other commits wait for each statement.
        self._bookings.writer.write(tx, made)
        new = dataclasses.replace(
            series, booked_until=due.following, missing=missing, updated_at=now
        )
        tx.put_series(new)
        return _Booked(
            _shown(tx, new, now),
            [name for name in missing if name not in series.missing],
        )

    def _place(
        self,
        source: Reader,
        series: Series,
        occurrence: Occurrence,
        now: int,
        project: Project,
        place: Callable[[Lease], Placed],
    ) -> Placed:
        """Return the lease of an occurrence, as placed.

        :raises NotEnoughHostsAvailable: naming the occurrence; likewise the
            refusal of a limit
        """
        lease = self._draft(series, occurrence, now)
        try:
            new = place(lease)
            self._bookings.enforcement.check_limits(
                source, LeaseChange(lease, None, now, new[1]), project
            )
        except _LEFT_OUT as e:
            more = dict(e.kwargs)
            if 'offer' in more:
                more['offer'] = {
                    **more['offer'], 'occurrence': occurrence.name
                }
            raise type(e)(
                f'occurrence {occurrence.name}: {e.args[0]}', **more
            ) from e
        return new

    def _check_coming(self, series: Series, due: _Due, now: int) -> None:
        """Refuse invalid reservations also if no occurrence is due yet.

        :raises InvalidInput: naming the field that is wrong
        """
        if not due.occurrences and due.following < FOREVER:
            window = Window(due.following, due.following + series.duration)
            self._draft(series, Occurrence('', window), now)

    def _due(self, series: Series, now: int) -> _Due:
        return _due(series, now, now + self._conf.series_horizon)

    def _draft(
        self, series: Series, occurrence: Occurrence, now: int
    ) -> Lease:
        """Return the lease of an occurrence.

        :raises InvalidInput: naming the field that is wrong
        """
        lease = self._bookings.drafts.new(
            {
                'name': f'{series.name} {occurrence.name}',
                'project_id': series.project_id,
                'user_id': series.user_id,
                'start': occurrence.window.start,
                'end': occurrence.window.end,
                'before_end': draft.DEFAULT,
                'reservations': series.reservations,
            },
            now,
        )
        return dataclasses.replace(
            lease, series_id=series.id, occurrence=occurrence.name
        )


def _due(series: Series, now: int, until: int) -> _Due:
    """Return the occurrences to book until a time, in one commit.

    The occurrences that found no room before continue to wait.
    """
    recurrence = series.recurrence
    waiting = [
        name for name in series.missing
        if recurrence.instant(name, 'start') >= now
    ]
    after = max(now, series.booked_until)
    coming = recurrence.occurrences(after, until) if after < until else ()
    due = list(itertools.islice(coming, series.most_at_once + 1))
    if len(due) > series.most_at_once:
        return _Due(due[:-1], due[-1].window.start, waiting)
    following = FOREVER
    if series.booked_until < FOREVER:
        following = recurrence.following(max(until, after))
    return _Due(due, following, waiting)


def _left_out(series: Series) -> _Errors:
    """Return the errors for which a request leaves out an occurrence."""
    if series.if_no_room == REFUSE:
        return ()
    return (exception.NotEnoughHostsAvailable,)


def _first_change(series: Series, since: str | None, now: int) -> int:
    """Return the first start that a change concerns.

    :raises InvalidInput: naming `from`
    """
    if since is None:
        return now
    at = series.recurrence.instant(since, 'from')
    # A series has one rule for all occurrences that are still to be booked.
    if at > series.booked_until:
        raise exception.InvalidInput(
            'from must not be after the first occurrence that is still to be '
            'booked',
            field='from',
        )
    return max(now, at)


def _check_change(
    known: Series, values: Mapping[str, Any], since: str | None, now: int
) -> None:
    """Refuse values with which a series would have no valid recurrence.

    :raises InvalidInput: naming the field that is wrong
    """
    new = dataclasses.replace(known, **values)
    recurrence = new.recurrence
    if 'start' in values:
        recurrence.check_start(now)
    if not _OF_THE_RULE.isdisjoint(values):
        recurrence.check_coming(now)
    recurrence.check_apart(_first_change(new, since, now))


def _planned_start(recurrence: Recurrence, lease: Lease) -> int:
    """Return the start of the occurrence of a lease.

    The lease itself may have been moved.
    """
    return recurrence.instant(str(lease.occurrence), 'start')


def _is_untouched(lease: Lease) -> bool:
    """Return whether nothing of a lease was made or is being made."""
    return lease.status == states.LEASE_PENDING and lease.is_idle


def _shown(source: Reader, series: Series, now: int) -> _Shown:
    """Return a series with its occurrences, those without room, too."""
    leases = [
        {
            'occurrence': lease.occurrence,
            'start': lease.start,
            'end': lease.end,
            'lease_id': lease.id,
            'status': lease.status,
        }
        for lease in source.leases_of_series(series.id)
    ]
    without = [
        {
            'occurrence': each.name,
            'start': each.window.start,
            'end': each.window.end,
            'lease_id': None,
            'status': None,
        }
        for each in series.recurrence.occurrences(now, series.booked_until)
        if each.name in series.missing
    ]
    occurrences = sorted(
        leases + without, key=lambda each: (each['start'], each['occurrence'])
    )
    return {**dataclasses.asdict(series), 'leases': occurrences}
