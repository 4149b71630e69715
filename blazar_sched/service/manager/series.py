# SPDX-License-Identifier: Apache-2.0
"""Series: leases that recur, booked ahead up to a horizon.

The occurrences of a series are ordinary leases. All occurrences up to the
horizon are booked when the series is created, in one commit; a loop books the
later ones as the horizon moves on.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import Any
import uuid

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.series import MOST
from blazar_sched.domain.series import Occurrence
from blazar_sched.domain.series import Recurrence
from blazar_sched.domain.series import REFUSE
from blazar_sched.domain.series import Series
from blazar_sched.domain.window import FOREVER
from blazar_sched.placing import lease_placing
from blazar_sched.service import loop
from blazar_sched.service import resources
from blazar_sched.service.bus.notifier import LEASE_CREATE
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.bus.notifier import SERIES_AT_RISK
from blazar_sched.service.bus.notifier import SERIES_FAILED
from blazar_sched.service.enforcement import Enforcement
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.enforcement.base import Project
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.manager import draft
from blazar_sched.service.manager import idempotency
from blazar_sched.service.manager.lease import Leases
from blazar_sched.service.manager.lease_writer import LeaseWriter
from blazar_sched.service.manager.lease_writer import Placed
from blazar_sched.service.manager.runner import Runner
from blazar_sched.service.metrics import Metrics

LOG = log.getLogger(__name__)

# The seconds between two looks at all series.
INTERVAL = 60.0

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

# Functions to call after a commit, which notify of removed leases.
_Removed = list[Callable[[], None]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Booked:
    """What a commit has done for a series.

    :param leases: the new leases
    :param missing: the occurrences for which there is no room since now
    """

    shown: _Shown
    leases: list[Lease]
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
    """The operations on series, and the loop that books ahead.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        drivers: resources.Drivers,
        runner: Runner,
        notifier: Notifier,
        enforcement: Enforcement,
        writer: LeaseWriter,
        leases: Leases,
        clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._drafts = draft.Drafts(conf, drivers)
        self._runner = runner
        self._notifier = notifier
        self._enforcement = enforcement
        self._writer = writer
        self._leases = leases
        self._clock = clock
        # The ledger's revision when a missing occurrence was last tried, by
        # the id of the series.
        self._tried: dict[str, int] = {}
        self._objects = loop.Objects[Series](
            'series', metrics,
            lambda failing: notifier.series(SERIES_FAILED, failing, []),
        )
        self._loop = loop.Loop('series', self.step)

    def create(
        self,
        values: Mapping[str, Any],
        key: str | None = None,
        dry_run: bool = False,
    ) -> _Shown:
        """Create a series, and book its occurrences up to the horizon.

        :param key: the idempotency key of the request, unique in its project:
            a repeated request with the same values is answered with the series
            that the first request created
        :param dry_run: return which occurrences would have room now, and
            change nothing
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if an occurrence has no room, unless
            the series skips such occurrences
        :raises LimitExceeded: if a limit forbids one of the leases
        :raises IdempotencyKeyReused: if the key has created another series
        """
        if self._enforcement.is_external:
            raise exception.InvalidInput(
                'this cloud asks another service about each lease, so that '
                'no series is possible',
                field='rrule',
            )
        now = int(self._clock())
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
        strict = new.if_no_room == REFUSE and not dry_run
        left_out = () if strict else (exception.NotEnoughHostsAvailable,)
        commit = self._ledger.dry_run if dry_run else self._ledger.commit

        def work(tx: PlacingTx) -> _Booked:
            made = idempotency.series_of(tx, new)
            if made is not None:
                return _Booked(_shown(tx, made, now), [], [])
            return self._book(tx, new, self._due(new, now), now, left_out)

        booked = commit(work)
        if not dry_run:
            self._announce(booked)
        return booked.shown

    def get(self, series_id: str, project_id: str | None) -> _Shown:
        """Return a series with its occurrences.

        :raises SeriesNotFound: if the project has no such series
        """
        found: Series = self._ledger.one_series(series_id, project_id)
        return _shown(self._ledger, found, int(self._clock()))

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
    ) -> _Shown:
        """Change a series from an occurrence on, in one commit.

        A lease that has not started is replaced, unless its window and its
        reservations are those of the changed series. An occurrence whose lease
        was deleted is booked again, unless the series excepts the occurrence.

        :param values: the fields to change
        :param since: the local date or time of the first occurrence that
            changes; None for the next occurrence
        :param dry_run: return which occurrences would have room now, and
            change nothing
        :raises SeriesNotFound: if the project has no such series
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if an occurrence has no room, unless
            the series skips such occurrences
        :raises LimitExceeded: if a limit forbids one of the leases
        """
        now = int(self._clock())
        # Ahead of the commit, as a rule takes time to check.
        checked: Series = self._ledger.one_series(series_id, project_id)
        _check_change(checked, values, since, now)

        def work(tx: PlacingTx) -> tuple[_Booked, _Removed]:
            known: Series = tx.one_series(series_id, project_id)
            if known != checked:
                _check_change(known, values, since, now)
            new = dataclasses.replace(known, **values, updated_at=now)
            if values.keys() <= _OF_NO_LEASE:
                tx.put_series(new)
                return _Booked(_shown(tx, new, now), [], []), []
            at = _first_change(new, since, now)
            return self._change(tx, known, new, at, now, dry_run)

        commit = self._ledger.dry_run if dry_run else self._ledger.commit
        booked, removed = commit(work)
        if not dry_run:
            for each in removed:
                each()
            self._announce(booked)
        return booked.shown

    def delete(self, series_id: str, project_id: str | None) -> None:
        """Delete a series with its leases that have not started.

        The leases that have started go on, as leases of no series.

        :raises SeriesNotFound: if the project has no such series
        """

        def work(tx: PlacingTx) -> _Removed:
            series = tx.one_series(series_id, project_id)
            removed = [
                self._leases.remove(tx, lease)
                for lease in tx.leases_of_series(series.id)
                if _is_untouched(lease)
            ]
            tx.delete_series(series.id)
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
        dry_run: bool,
    ) -> tuple[_Booked, _Removed]:
        """Replace the leases that are not as the changed series says.

        :param at: the first start that changes
        """
        due = self._due(
            dataclasses.replace(new, booked_until=at, missing=[]), now
        )
        windows = {each.name: each.window for each in due.occurrences}
        # Occurrences that wait for room continue to wait.
        settled = set(known.missing)
        replaced: list[Lease] = []
        recurrence = known.recurrence
        for lease in tx.leases_of_series(known.id):
            name = str(lease.occurrence)
            if (
                _planned_start(recurrence, lease) < at
                or not _is_untouched(lease)
                or lease.window == windows.get(name)
                and self._drafts.is_as_requested(lease, new.reservations, now)
            ):
                settled.add(name)
            else:
                replaced.append(lease)
        due = _Due(
            [each for each in due.occurrences if each.name not in settled],
            due.following,
            known.missing,
        )
        held = [
            allocation for lease in replaced
            for allocation, _ in tx.allocations(lease_id=lease.id)
        ]
        removed = [self._leases.remove(tx, lease) for lease in replaced]
        strict = new.if_no_room == REFUSE and not dry_run
        left_out = () if strict else (exception.NotEnoughHostsAvailable,)
        with tx.replica.indexes.removed(held):
            return self._book(tx, new, due, now, left_out), removed

    def step(self) -> float:
        """Book the occurrences that the horizon has reached.

        Several managers may do the same: what is to be booked is decided in
        the commit.
        """
        now = int(self._clock())
        known = self._ledger.all_series()
        self._objects.each(
            (
                (series.id, series) for series in known
                if self._is_due(series, now)
            ),
            lambda series: self._roll_on(series, now), now,
        )
        ids = {series.id for series in known}
        for id_ in self._tried.keys() - ids:
            del self._tried[id_]
        return INTERVAL

    def _is_due(self, series: Series, now: int) -> bool:
        if series.booked_until < now + self._conf.series_horizon:
            return True
        # An occurrence without room is tried again once anything has changed.
        newest = self._ledger.newest()[1]
        return bool(series.missing) and self._tried.get(series.id) != newest

    def _roll_on(self, series: Series, now: int) -> None:
        def work(tx: PlacingTx) -> _Booked:
            known = tx.one_series(series.id)
            due = self._due(known, now)
            return self._book(tx, known, due, now, _LEFT_OUT_LATER)

        try:
            booked = self._ledger.commit(work)
        except exception.SeriesNotFound:
            # The series was deleted in the meantime.
            return
        self._tried[series.id] = self._ledger.newest()[1]
        self._announce(booked)
        if booked.missing:
            LOG.warning(
                'Could not book the occurrences %s of series %s',
                ', '.join(booked.missing), series.id,
            )
            self._notifier.series(SERIES_AT_RISK, series, booked.missing)

    def _announce(self, booked: _Booked) -> None:
        for lease in booked.leases:
            self._notifier.lease(LEASE_CREATE, lease)
        if booked.leases:
            self._runner.wake()

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
        made: list[Placed] = []
        missing = list(due.missing)
        project = Project(tx, series.project_id)
        with lease_placing.remembering(tx.replica) as keep:
            for occurrence in due.occurrences:
                try:
                    lease = self._draft(series, occurrence, now)
                    placed, displaced = self._writer.place(
                        tx.replica, lease, now
                    )
                    self._enforcement.check_limits(
                        tx, LeaseChange(lease, None, now, placed), project
                    )
                except left_out:
                    missing.append(occurrence.name)
                except _LEFT_OUT as e:
                    raise type(e)(
                        f'occurrence {occurrence.name}: {e.args[0]}',
                        field=e.field,
                    ) from e
                else:
                    project.add(lease, placed)
                    keep(placed, displaced)
                    made.append((lease, placed, displaced))
        # All at once: other commits wait for each statement.
        self._writer.write(tx, made)
        new = dataclasses.replace(
            series, booked_until=due.following, missing=missing, updated_at=now
        )
        tx.put_series(new)
        return _Booked(
            _shown(tx, new, now), [lease for lease, _, _ in made],
            [name for name in missing if name not in series.missing],
        )

    def _due(self, series: Series, now: int) -> _Due:
        return _due(series, now, now + self._conf.series_horizon)

    def _draft(
        self, series: Series, occurrence: Occurrence, now: int
    ) -> Lease:
        """Return the lease of an occurrence.

        :raises InvalidInput: naming the field that is wrong
        """
        lease = self._drafts.new(
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
    """Return the occurrences to book until a time.

    The occurrences that found no room before are tried again.
    """
    recurrence = series.recurrence
    due: list[Occurrence] = []
    for each in recurrence.occurrences(now, until):
        is_new = each.window.start >= series.booked_until
        if is_new and len(due) >= MOST:
            return _Due(due, each.window.start)
        if is_new or each.name in series.missing:
            due.append(each)
    if series.booked_until == FOREVER:
        return _Due(due, FOREVER)
    following = recurrence.following(max(until, series.booked_until))
    return _Due(due, following)


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
