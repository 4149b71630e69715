# SPDX-License-Identifier: Apache-2.0
"""Series: leases that recur, booked ahead up to a horizon.

The occurrences of a series are ordinary leases. The first occurrences up to
the horizon are booked when the series is created; a loop books the others, and
the later ones as the horizon moves on.

All other commits wait for a commit, so a series is booked, changed and deleted
in slices, a few leases in each commit. What has room is searched for before
the first commit. After each commit the series says until when it is booked, or
that it is being deleted: the loop of any manager goes on from there.
"""

import bisect
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import itertools
import uuid

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.notification import Notification
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.parts.series import models
from blazar_sched.parts.series.calls import ALL_SERIES
from blazar_sched.parts.series.exception import MaxSeries
from blazar_sched.parts.series.exception import SeriesNotFound
from blazar_sched.parts.series.pace import Pace
from blazar_sched.parts.series.series import MAX_RESERVATIONS
from blazar_sched.parts.series.series import Occurrence
from blazar_sched.parts.series.series import Recurrence
from blazar_sched.parts.series.series import REFUSE
from blazar_sched.parts.series.series import Series
from blazar_sched.placing.displacement import TooManyDisplaced
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service import faults
from blazar_sched.service import loop
from blazar_sched.service.booking import draft
from blazar_sched.service.booking import idempotency
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.booking import Removed
from blazar_sched.service.booking.lease_writer import Placed
from blazar_sched.service.booking.obstacle import with_obstacles
from blazar_sched.service.bus.calls import Values
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.enforcement.base import Project
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.manager import paging
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

# The seconds between two looks at all series.
INTERVAL = 60.0
# The longest seconds between two tries of a missing occurrence.
MAX_PAUSE = 900.0
# How often a change begins again because the series was changed meanwhile.
MAX_REPEATS = 5
# There is no room for occurrences that are due to be booked; later occurrences
# cannot be booked: the rule, for example, cannot be evaluated any more.
NOTIFICATIONS = AT_RISK, FAILED = 'series.at_risk', 'series.failed'

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


class _Overtaken(Exception):
    """A series has changed since it was read."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Due:
    """The occurrences to book.

    :param following: the start of the first later occurrence
    :param over: the names of the occurrences that do not wait for room any
        more
    """

    occurrences: Sequence[Occurrence]
    following: int
    over: Collection[str] = ()

    def done(self, series: Series, without: Iterable[str], now: int) -> Series:
        """Return a series whose occurrences are booked, but those named."""
        over = {*self.over, *(each.name for each in self.occurrences)}
        missing = [name for name in series.missing if name not in over]
        return dataclasses.replace(
            series, booked_until=self.following, missing=[*missing, *without],
            updated_at=now,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Change:
    """What is to be done for a series.

    :param new: the series, with what a change has changed
    :param windows: the window of each occurrence due, by its name: a lease
        with this window may stay
    :param going: the leases to delete, unless they have to stay
    """

    new: Series
    due: _Due
    windows: Mapping[str, Window] = dataclasses.field(default_factory=dict)
    going: Sequence[Lease] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    """What a search for room has found.

    :param placed: the leases with room
    :param without: the names of the occurrences without room
    """

    placed: list[Placed]
    without: set[str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Slice:
    """What one commit does for a series.

    :param pace: times the commit
    :param leases: the ids of the leases to delete, as in _Change
    :param windows: as in _Change
    :param without: the names of the occurrences for which there is no room
    """

    pace: Pace
    due: _Due
    leases: Collection[str]
    windows: Mapping[str, Window]
    without: Collection[str]


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
                lambda tx: _notify(tx, FAILED, failing, [])
            ),
        )
        self._waiting = loop.Objects[Series]('series without room', metrics)
        self._going = loop.Objects[Series]('deleted series', metrics)
        self._loop = loop.Loop('series', self.step)

    def create(
        self, values: Values, key: str | None = None, dry_run: bool = False,
        names: bool = False,
    ) -> Values:
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
        made = _made(self._ledger, new)
        if made is not None:
            return self._shown(made, now)
        new.recurrence.check_start(now)
        new.recurrence.check(now)
        change = _Change(new, self._due(new, now))
        self._check_coming(change, now)

        def begin(tx: PlacingTx) -> Series:
            made = _made(tx, new)
            if made is None:
                self._check_number(tx, new)
            return made or new

        with self._explaining(change, now, names):
            found = self._searched(change, now, _left_out(new))
            if dry_run:
                self._check_number(self._ledger, new)
                return _planned(change, found, (), now)
            made = self._book_all(change, found, now, begin)
        return self._shown(made, now)

    @contextlib.contextmanager
    def _explaining(
        self, change: _Change, now: int, names: bool
    ) -> Iterator[None]:
        """Add what is in the way to the refusal of an occurrence."""
        series = change.new
        try:
            yield
        except exception.NotEnoughHostsAvailable as e:
            name = (e.offer or {}).get('occurrence')
            if name is None:
                raise
            start = series.recurrence.instant(name, 'start')
            window = Window(start, start + series.duration)
            lease = self._draft(series, Occurrence(name, window), now)
            raise with_obstacles(
                self._bookings, e, lease, window, now, names,
                [each.id for each in change.going],
            ) from e.__cause__

    def get(self, series_id: str, project_id: str | None) -> Values:
        """Return a series with its occurrences.

        :raises SeriesNotFound: if the project has no such series
        """
        found = self._ledger.run(models.get, series_id, project_id)
        return self._shown(found, self._bookings.now())

    def list(self, project_id: str | None) -> list[Values]:
        """Return the series of a project, or all, by id."""
        return [
            dataclasses.asdict(each)
            for each in self._ledger.run(models.list_, project_id)
        ]

    def update(
        self, series_id: str, project_id: str | None, values: Values,
        since: str | None = None, dry_run: bool = False, names: bool = False,
    ) -> Values:
        """Change a series from an occurrence on.

        Nothing is changed if an occurrence finds no room in the search ahead
        of the first commit. An occurrence whose room is taken between two
        commits waits for room.

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
        for _ in range(MAX_REPEATS):
            known = self._ledger.run(models.get, series_id, project_id)
            with contextlib.suppress(_Overtaken):
                return self._update(known, values, since, now, dry_run, names)
        raise exception.Unavailable(f'series {series_id} changes all the time')

    def _update(
        self, known: Series, values: Values, since: str | None, now: int,
        dry_run: bool, names: bool,
    ) -> Values:
        """Change a series, if the series is still the known one.

        :raises _Overtaken: if the series has changed since
        """
        new = dataclasses.replace(known, **values, updated_at=now, retry_at=0)
        at = _first_change(new, values, since, now)
        if values.keys() <= _OF_NO_LEASE:
            self._ledger.commit(
                lambda tx: tx.run(models.put, _begun(tx, known, new)), dry_run
            )
            return self._shown(new, now)
        change = self._changed(known, new, at, now)
        self._check_coming(change, now)
        with self._explaining(change, now, names):
            found = self._searched(change, now, _left_out(new))
            if dry_run:
                leaving = {lease.id for lease in change.going}
                leases = self._ledger.run(models.leases, known.id)
                kept = [each for each in leases if each.id not in leaving]
                return _planned(change, found, kept, now)
            changed = self._book_all(
                change, found, now, lambda tx: _begun(tx, known, change.new)
            )
        return self._shown(changed, now)

    def _changed(
        self, known: Series, new: Series, at: int, now: int
    ) -> _Change:
        """Return what changes with a series.

        A lease stays if it is as the changed series says, or if something of
        it was made. The leases of occurrences that one request cannot book
        stay until `step` replaces these leases.

        :param at: the first start that changes
        """
        new = dataclasses.replace(new, booked_until=at)
        due = self._due(new, now)
        windows = {each.name: each.window for each in due.occurrences}
        recurrence = known.recurrence
        # Occurrences that wait for room continue to wait.
        over = {
            name for name in known.missing
            if name in due.over or name not in windows
            and at <= recurrence.instant(name, 'start') < due.following
        }
        settled = set(known.missing) - over
        going = []
        for lease in self._ledger.run(models.leases, known.id):
            start = _planned_start(recurrence, lease)
            if at <= start < due.following and not self._stays(
                new, lease, windows, now
            ):
                going.append(lease)
            else:
                settled.add(str(lease.occurrence))
        occurrences = [
            each for each in due.occurrences if each.name not in settled
        ]
        return _Change(
            new, _Due(occurrences, due.following, over), windows, going
        )

    def _stays(
        self, series: Series, lease: Lease, windows: Mapping[str, Window],
        now: int,
    ) -> bool:
        """Tell whether a lease stays when a series is changed."""
        return not _is_untouched(lease) or (
            lease.window == windows.get(str(lease.occurrence))
            and self._bookings.drafts.is_as_requested(
                lease, series.reservations, now
            )
        )

    def delete(self, series_id: str, project_id: str | None) -> None:
        """Delete a series with its leases that have not started.

        The leases that have started go on, as leases of no series. From the
        first commit on, the series is found no more. A repeated request goes
        on to delete the leases.

        :raises SeriesNotFound: if the project has no such series
        """
        now = self._bookings.now()

        def work(tx: Tx) -> Series:
            series = tx.run(models.find, series_id, project_id)
            if series.deleted_at is None:
                # So that a manager of the last release books nothing more.
                series = dataclasses.replace(
                    series, booked_until=FOREVER, missing=[], deleted_at=now
                )
                tx.run(models.put, series)
                # The id stays, as the key of what was deleted.
                tx.put_key(
                    series.project_id, series.id, None, series.digest, now
                )
            return series

        self._delete_leases(self._ledger.write(work))

    def _delete_leases(self, series: Series) -> None:
        """Delete the leases of a series that is being deleted, then itself."""
        ids = [each.id for each in self._ledger.run(models.leases, series.id)]

        def work(tx: PlacingTx, ids: Sequence[str]) -> Removed:
            leases = tx.run(models.leases, series.id, ids)
            tx.run(models.release, ids)
            return self._bookings.remove(tx, *filter(_is_untouched, leases))

        pace = Pace(series.most_in_commit)
        for part in pace.parts(len(ids)):
            self._ledger.commit(
                pace.timed(functools.partial(work, ids=ids[part]))
            )()
            faults.point('series:deleting')
        self._ledger.write(lambda tx: tx.run(models.delete, series.id))

    def step(self) -> float:
        """Book the occurrences that the horizon has reached.

        Several managers may do the same: what is to be booked is decided in
        the commit.

        :returns: the seconds until the next step: few if there is more to book
        """
        now = self._bookings.now()
        known = self._ledger.run(models.list_)
        horizon = now + self._conf.series_horizon
        self._more = False
        self._objects.each(
            (
                (series.id, series) for series in known
                if series.booked_until < horizon
            ),
            lambda series: self._roll_on(series, now), now,
        )
        self._going.each(
            ((each.id, each) for each in self._ledger.run(models.deleted)),
            self._delete_leases, now,
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
        change = self._changed(series, series, series.booked_until, now)
        found = self._searched(change, now, _LEFT_OUT_LATER)
        missing = self._go_on(series, self._in_slices(change, found), now)[1]
        if change.due.following < now + self._conf.series_horizon:
            self._more = True
        if not series.missing:
            self._tried[series.id] = self._ledger.newest()[1]
        if missing:
            LOG.warning(
                'Could not book the occurrences %s of series %s',
                ', '.join(missing), series.id,
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
            if tx.run(models.get, series.id) != series:
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
            tx.run(models.put, claimed)
            return claimed

        claimed = self._ledger.write(claim)
        if claimed is None:
            return
        most = claimed.most_at_once
        if len(claimed.missing) <= most:
            self._tried[series.id] = self._ledger.newest()[1]
        tried = [coming[name] for name in claimed.missing[-most:]]
        due = _Due(tried, claimed.booked_until)
        found = self._searched(_Change(claimed, due), now, _LEFT_OUT_LATER)
        fitting = [each for each in tried if each.name not in found.without]
        if fitting:
            due = dataclasses.replace(due, occurrences=fitting)
            self._go_on(
                claimed, self._in_slices(_Change(claimed, due), found), now
            )

    def _book_all(
        self, change: _Change, found: _Found, now: int,
        begin: Callable[[PlacingTx], Series],
    ) -> Series:
        """Book what is due in slices; return the series as it is then.

        :param begin: returns the series in the first commit: any other than
            that of the change is returned
        """
        new = change.new
        slices = self._in_slices(change, found)
        first = next(slices)

        def work(tx: PlacingTx) -> tuple[Series, Removed] | Series:
            series = begin(tx)
            if series is not new:
                return series
            return self._book(tx, new, first, now, _left_out(new))

        done = self._ledger.commit(first.pace.timed(work))
        if isinstance(done, Series):
            return done
        series, removed = done
        removed()
        series, _ = self._go_on(series, slices, now, found.without)
        # The loop books the occurrences that are too many for a request.
        self._loop.wake()
        return series

    def _go_on(
        self, known: Series, slices: Iterable[_Slice], now: int,
        told: Collection[str] = (),
    ) -> tuple[Series, Sequence[str]]:
        """Do slices, each in a commit, while nobody else changes the series.

        :param told: the names of occurrences without room that the answer of
            a request names
        :returns: the series as it is then, and the names of the other
            occurrences without room
        """
        lost: list[str] = []
        for each in slices:
            faults.point('series:slice')

            def work(
                tx: PlacingTx, known: Series = known, each: _Slice = each
            ) -> tuple[Series, Removed, Sequence[str]] | None:
                if tx.run(models.get, known.id) != known:
                    return None
                new, removed = self._book(
                    tx, known, each, now, _LEFT_OUT_LATER
                )
                missing = [
                    name for name in new.missing
                    if name not in known.missing and name not in told
                ]
                if missing:
                    _notify(tx, AT_RISK, known, missing)
                return new, removed, missing

            try:
                done = self._ledger.commit(each.pace.timed(work))
            except SeriesNotFound:
                break
            if done is None:
                break
            known, removed, missing = done
            removed()
            lost += missing
        self._bookings.runner.wake()
        return known, lost

    def _in_slices(self, change: _Change, found: _Found) -> Iterator[_Slice]:
        """Yield what is due in slices, in the order of time.

        A lease goes before the occurrence that takes its room. Until the last
        slice, a series is booked until the next thing to be done. The time of
        the commit of a slice decides the length of the next slice.
        """
        series, due = change.new, change.due
        cleaning = self._conf.cleaning_time
        ends = [each.window.end + cleaning for each in due.occurrences]
        recurrence = series.recurrence
        things: list[tuple[int, bool, Lease | Occurrence]] = [
            (each.window.start, True, each) for each in due.occurrences
        ]
        for lease in change.going:
            at = _planned_start(recurrence, lease)
            n = bisect.bisect_right(ends, lease.start)
            if n < len(ends):
                start = due.occurrences[n].window.start
                if start < lease.end + cleaning:
                    at = min(at, start)
            things.append((at, False, lease))
        things.sort(key=lambda thing: thing[:2])
        pace = Pace(series.most_in_commit)
        for each in pace.parts(max(1, len(things))):
            part, following = things[each], due.following
            if each.stop < len(things):
                following = max(things[each.stop][0], series.booked_until)
            yield _Slice(
                pace,
                _Due(
                    [o for _, _, o in part if isinstance(o, Occurrence)],
                    following, due.over,
                ),
                [lease.id for _, _, lease in part if isinstance(lease, Lease)],
                change.windows, found.without,
            )

    def _check_number(self, source: Reader, new: Series) -> None:
        most = self._conf.max_series
        if len(source.run(models.list_, new.project_id)) >= most:
            raise MaxSeries(
                f'a project may have at most {most} series', field='rrule'
            )

    def _searched(
        self, change: _Change, now: int, left_out: _Errors
    ) -> _Found:
        """Return which occurrences have room, each beside the one before.

        Other commits wait for a commit, but not for this search.

        :param left_out: the errors for which an occurrence is left out; any
            other error refuses the whole request, naming the occurrence
        """
        found = _Found([], set())
        series, going = change.new, change.going
        project = self._bookings.enforcement.project(
            self._ledger, series.project_id, {lease.id for lease in going}
        )

        def place(lease: Lease) -> Placed:
            return self._ledger.read_replica(
                lambda replica: self._on_trial(
                    replica, lease, now, found.placed[-1:], going
                )
            )

        for each in change.due.occurrences:
            try:
                new = self._place(
                    self._ledger, series, each, now, project, place
                )
            except TooManyDisplaced:
                # The commit of the occurrence clears hosts in several commits.
                pass
            except left_out:
                found.without.add(each.name)
            else:
                found.placed.append(new)
        return found

    def _on_trial(
        self, replica: state.Replica, lease: Lease, now: int,
        before: Iterable[Placed], going: Iterable[Lease],
    ) -> Placed:
        """Place a lease beside others, in the room of those that go."""
        window = lease.window.widened(self._conf.cleaning_time)
        changes: list[record.Record] = [
            record.removal(allocation)
            for each in going if each.window.overlaps(window)
            for reservation in each.reservations
            for allocation in replica.indexes.allocations(
                reservation.id
            ).values()
        ]
        for _, placed, displaced in before:
            changes += map(record.encode, itertools.chain(*placed.values()))
            changes += map(record.encode, displaced)
        with replica.changing() as show:
            show(changes)
            return (lease, *self._bookings.writer.place(replica, lease, now))

    def _book(
        self, tx: PlacingTx, series: Series, part: _Slice, now: int,
        left_out: _Errors,
    ) -> tuple[Series, Removed]:
        """Delete and book the leases of a slice; return the series then.

        :param left_out: as for `_searched`
        """
        removed = self._bookings.remove(tx, *(
            lease for lease in tx.run(models.leases, series.id, part.leases)
            if not self._stays(series, lease, part.windows, now)
        ))

        def place(lease: Lease) -> Placed:
            return (
                lease, *self._bookings.writer.place_in_commit(tx, lease, now)
            )

        due = part.due
        made: list[Placed] = []
        missing = []
        project = self._bookings.enforcement.project(tx, series.project_id)
        booked = tx.run(
            models.booked, series.id, [each.name for each in due.occurrences]
        )
        for occurrence in due.occurrences:
            if occurrence.name in booked:
                continue
            if occurrence.name in part.without:
                missing.append(occurrence.name)
                continue
            try:
                new = self._place(tx, series, occurrence, now, project, place)
            except left_out:
                missing.append(occurrence.name)
            else:
                _, placed, displaced = new
                tx.expect(itertools.chain(*placed.values(), displaced))
                made.append(new)
        # All at once: other commits wait for each statement.
        self._bookings.writer.write(tx, made)
        series = due.done(series, missing, now)
        tx.run(models.put, series)
        return series, removed

    def _place(
        self, source: Reader, series: Series, occurrence: Occurrence, now: int,
        project: Project, place: Callable[[Lease], Placed],
    ) -> Placed:
        """Return the placed lease of an occurrence, as one of its project.

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
        project.add(lease, new[1])
        return new

    def _check_coming(self, change: _Change, now: int) -> None:
        """Refuse invalid reservations also if no occurrence is due yet.

        :raises InvalidInput: naming the field that is wrong
        """
        series, due = change.new, change.due
        if not due.occurrences and due.following < FOREVER:
            window = Window(due.following, due.following + series.duration)
            self._draft(series, Occurrence('', window), now)

    def _shown(self, series: Series, now: int) -> Values:
        leases = self._ledger.run(models.leases, series.id)
        return _shown(series, leases, now)

    def _due(self, series: Series, now: int) -> _Due:
        """Return the occurrences to book up to the horizon, for one request.

        The occurrences that found no room before continue to wait.
        """
        recurrence = series.recurrence
        until = now + self._conf.series_horizon
        over = {
            name for name in series.missing
            if recurrence.instant(name, 'start') < now
        }
        after = max(now, series.booked_until)
        coming = recurrence.occurrences(after, until) if after < until else ()
        due = list(itertools.islice(coming, series.most_at_once + 1))
        if len(due) > series.most_at_once:
            return _Due(due[:-1], due[-1].window.start, over)
        following = FOREVER
        if series.booked_until < FOREVER:
            following = recurrence.following(max(until, after))
        return _Due(due, following, over)

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


def _begun(tx: Tx, known: Series, new: Series) -> Series:
    """Return a changed series in the first commit of its change.

    :raises _Overtaken: if the series is not the known one any more
    """
    if tx.run(models.get, known.id) != known:
        raise _Overtaken
    return new


def _left_out(series: Series) -> _Errors:
    """Return the errors for which a request leaves out an occurrence."""
    if series.if_no_room == REFUSE:
        return ()
    return (exception.NotEnoughHostsAvailable,)


def _first_change(
    new: Series, values: Values, since: str | None, now: int
) -> int:
    """Return the first start that a change concerns.

    :raises InvalidInput: naming the field with which a series would have no
        valid recurrence, or `from`
    """
    recurrence, at = new.recurrence, now
    if 'start' in values:
        recurrence.check_start(now)
    if not _OF_THE_RULE.isdisjoint(values):
        recurrence.check_coming(now)
    if since is not None:
        first = recurrence.instant(since, 'from')
        # A series has one rule for all occurrences still to be booked.
        if first > new.booked_until:
            raise exception.InvalidInput(
                'from must not be after the first occurrence that is still to '
                'be booked',
                field='from',
            )
        at = max(now, first)
    recurrence.check_apart(at)
    return at


def _planned_start(recurrence: Recurrence, lease: Lease) -> int:
    """Return the start of the occurrence of a lease.

    The lease itself may have been moved.
    """
    return recurrence.instant(str(lease.occurrence), 'start')


def _is_untouched(lease: Lease) -> bool:
    """Return whether nothing of a lease was made or is being made."""
    return lease.status == states.LEASE_PENDING and lease.is_idle


def _planned(
    change: _Change, found: _Found, kept: Sequence[Lease], now: int
) -> Values:
    """Return a series as it would be, with the leases that it would have."""
    due = change.due
    without = [o.name for o in due.occurrences if o.name in found.without]
    leases = [*kept, *(lease for lease, _, _ in found.placed)]
    return _shown(due.done(change.new, without, now), leases, now)


def _shown(series: Series, leases: Iterable[Lease], now: int) -> Values:
    """Return a series with its occurrences, those without room, too."""
    booked = [
        _occurrence(str(lease.occurrence), lease.window, lease)
        for lease in leases
    ]
    without = [
        _occurrence(each.name, each.window, None)
        for each in series.recurrence.occurrences(now, series.booked_until)
        if each.name in series.missing
    ]
    occurrences = sorted(
        booked + without, key=lambda each: (each['start'], each['occurrence'])
    )
    return {**dataclasses.asdict(series), 'leases': occurrences}


def _occurrence(name: str, window: Window, lease: Lease | None) -> Values:
    return {
        'occurrence': name,
        'start': window.start,
        'end': window.end,
        'lease_id': lease and lease.id,
        'status': lease and lease.status,
    }


def _made(source: Reader, new: Series) -> Series | None:
    """Return the series that the same idempotency key has made, else None.

    :raises IdempotencyKeyReused: if the key was used for another request, or
        the series was deleted
    """
    try:
        known = source.run(models.get, new.id)
    except SeriesNotFound:
        if source.lease_by_key(new.project_id, new.id) is not None:
            raise idempotency.deleted() from None
        return None
    if known.digest:
        idempotency.require_same(known.digest, new.digest)
    return known


def _notify(
    tx: Tx, event_type: str, series: Series, occurrences: Sequence[str]
) -> None:
    """Notify of some occurrences of a series; the type is from above."""
    tx.notifications.append(Notification(
        event_type, series.project_id, lambda: {
            'series_id': series.id,
            'name': series.name,
            'user_id': series.user_id,
            'project_id': series.project_id,
            'occurrences': list(occurrences),
        },
    ))


def start(manager: Manager) -> Running:
    """Answer the calls for series, and book their occurrences."""
    all_series = AllSeries(manager.bookings, manager.metrics)

    def create(
        values: Values, idempotency_key: str | None = None,
        dry_run: bool = False, names: bool = False,
    ) -> Values:
        manager.flavors.learn(values['reservations'])
        return all_series.create(values, idempotency_key, dry_run, names)

    def update(
        series_id: str, project_id: str | None, values: Values,
        since: str | None = None, dry_run: bool = False,
        names: bool | None = None,
    ) -> Values:
        manager.flavors.learn(values.get('reservations', ()))
        return all_series.update(
            series_id, project_id, values, since, dry_run, bool(names)
        )

    return Running({
        'create_series': create,
        'update_series': update,
        **paging.answers(ALL_SERIES, all_series),
    }, (all_series,))
