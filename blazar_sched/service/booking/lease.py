# SPDX-License-Identifier: Apache-2.0
"""Create, update and delete operations on leases, each in one commit."""

from collections.abc import Callable
from collections.abc import Mapping
import contextlib
import dataclasses
import math
from typing import Any

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_rules
from blazar_sched.domain import states
from blazar_sched.domain.event import Event
from blazar_sched.domain.lease import ending_now
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.service.booking import idempotency
from blazar_sched.service.booking.booking import Bookings
from blazar_sched.service.booking.booking import Removed
from blazar_sched.service.booking.end_search import EndSearch
from blazar_sched.service.booking.lease_writer import end_window
from blazar_sched.service.booking.obstacle import with_obstacles
from blazar_sched.service.booking.search import Booking
from blazar_sched.service.booking.search import WindowSearch
from blazar_sched.service.booking.search import with_window
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import BEFORE_END_STOP
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.events import shrinking
from blazar_sched.service.ledger.at_one_revision import ReplicaReader
from blazar_sched.service.ledger.tx import PlacingTx

# A delete checks this many times, with this many seconds between the checks,
# whether the lease's resources in other services are gone. No caller is left
# without an answer for 10 s.
DELETE_WAITS = 16
DELETE_WAIT = 0.5
# The same limits for a create that has to return the id of a server group.
OPEN_WAITS = 25
OPEN_WAIT = 0.2
_OPENING = (states.LEASE_PENDING, states.LEASE_STARTING)

Draft = Booking[Lease]
Choose = Callable[[PlacingTx], Mapping[str, Any]]


class Leases:
    """The operations on leases: create, update and delete.

    Each operation is done in one commit or not at all.

    :param wait: sleeps for a number of seconds
    """

    def __init__(
        self, bookings: Bookings, search: WindowSearch,
        wait: Callable[[float], object],
    ) -> None:
        self._bookings = bookings
        self._ledger = bookings.ledger
        self._runner = bookings.runner
        self._search = search
        self._wait = wait
        self._shrinker = shrinking.Shrinker(bookings.drivers, bookings.runner)

    def create(
        self, values: Mapping[str, Any], key: str | None = None,
        offering: bool = False, dry_run: bool = False, names: bool = False,
    ) -> Lease:
        """Place and record a new lease.

        With `latest_start` in `values`, the lease begins at the first start
        in the range that has room. With `alternatives`, lists of reservations,
        the first of these that has room is booked if the `reservations` have
        none.

        :param key: the idempotency key of the request, unique in its project:
            a repeated request with the same values is answered with the lease
            that the first request created
        :param offering: whether a refusal for lack of capacity carries an
            offer, and what is in the way
        :param dry_run: return the answer that the request would get now, and
            change nothing
        :param names: whether a refusal may name hosts, and the leases of all
            projects
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if a reservation finds no room
        :raises TooManyRequests: if a start is to be searched for, and too many
            searches run or wait already
        :raises IdempotencyKeyReused: if the key has created another lease
        """
        asked = idempotency.Key(values, key)
        # Before the checks of times: a request that was in time may be late
        # when repeated.
        made = asked.lease(self._ledger)
        if made is not None:
            return made
        now = self._bookings.now()
        earliest, *others = (
            self._bookings.drafts.new({**values, 'reservations': shape}, now)
            for shape in _shapes(values)
        )
        for each in earliest, *others:
            self._match(each)
        admission = self._bookings.enforcement.admission(dry_run)

        def add_first(tx: PlacingTx, lease: Lease) -> Lease:
            try:
                return self._bookings.add(tx, lease, now, admission)
            except exception.NotEnoughHostsAvailable:
                # The lease was not written: see `add`.
                for each in others:
                    with contextlib.suppress(
                        exception.NotEnoughHostsAvailable
                    ):
                        return self._bookings.add(tx, each, now, admission)
                raise

        def book(draft: Draft) -> Lease:
            return self._bookings.once(
                asked, lambda tx: add_first(tx, draft(tx)), admission
            )

        try:
            with self._bookings.counting(earliest, dry_run):
                lease = self._at_first_start(values, earliest, now, book)
        except exception.NotEnoughHostsAvailable as e:
            if not offering:
                raise
            refusal = with_obstacles(
                self._bookings, e, earliest, earliest.window, now, names
            )
            # The refusal may be raised as it is, and is no cause of itself.
            raise self._search.with_start(
                refusal, earliest, now
            ) from e.__cause__
        return lease if dry_run else self.opened(lease, now)

    def alternative(
        self, lease: Lease, values: Mapping[str, Any]
    ) -> int | None:
        """Return which reservations of a request a lease has, by position.

        :returns: 0 for `reservations`, then those of `alternatives`; None if
            the lease was changed meanwhile
        """
        now = self._bookings.now()
        return next(
            (
                number for number, asked in enumerate(_shapes(values))
                if self._bookings.drafts.is_as_requested(lease, asked, now)
            ),
            None,
        )

    def opened(self, lease: Lease, now: int) -> Lease:
        """Return a lease that was committed, as opened if it opens now.

        A client that boots servers into a server group needs the id of the
        group from the answer, and the start makes the group. Other clients do
        not wait.
        """
        if lease.start > now or not any(map(_has_group, lease.reservations)):
            return lease
        for _ in range(OPEN_WAITS):
            try:
                lease = self._ledger.lease(lease.id)
            except exception.LeaseNotFound:
                break
            if lease.status not in _OPENING or self._runner.stopping:
                break
            self._wait(OPEN_WAIT)
        return lease

    def _at_first_start(
        self, values: Mapping[str, Any], earliest: Lease, now: int,
        book: Callable[[Draft], Lease],
    ) -> Lease:
        """Book a lease at its start, or at the first start that has room.

        No commit waits for a search, unless other commits come between the
        search and the booking again and again.

        :param earliest: the lease at the first start that was asked for
        :param book: books the lease that a draft returns
        :raises NotEnoughHostsAvailable: if no start has room
        """
        if values.get('latest_start') is None:
            return book(lambda tx: earliest)
        first = self._search.first(values, earliest, now)

        def search(reader: ReplicaReader) -> Lease:
            return self._bookings.drafts.new(
                {**values, 'start': first(reader)}, now
            )

        return self._search.book(search, book, earliest.project_id)

    def update(
        self, lease_id: str, project_id: str | None, values: Mapping[str, Any],
        dry_run: bool = False, offering: bool = False,
        choose: Choose | None = None, names: bool = False,
    ) -> Lease:
        """Change a lease: apply the whole request, or nothing.

        An entry of `reservations` in `values` that has an id changes that
        reservation, or removes the reservation if the entry has ``remove:
        True``; an entry that has a resource_type and no id adds a reservation.

        The resources that an active lease would have in excess are given up
        first.

        :param dry_run: return the answer that the request would get now;
            change nothing and call no other service
        :param offering: whether a refusal for lack of capacity carries an
            offer, and what is in the way
        :param choose: called ahead of the change, in its commit: returns more
            values, in place of those in `values`, or refuses the change
        :param names: as for `create`
        :raises LeaseNotFound: if the project has no such lease
        :raises InvalidStatus: if the lease is already changing, or is over
        :raises CantUpdateParameter: if the requested change is no longer
            possible, or if more than the requested amount is in use
        :raises InvalidInput: naming the field that is wrong
        :raises NotEnoughHostsAvailable: if the changed lease finds no room
        :raises Unavailable: if other services do not give up the excess
            resources
        """
        at = self._bookings.clock()
        now = int(at)
        if values.get('end') == lease_rules.NOW:
            # The window ends with this second: a server that was created
            # earlier in the same second belongs to the lease.
            values = {**values, 'end': math.ceil(at)}
        try:
            return self._update(
                lease_id, project_id, values, now, dry_run, choose
            )
        except exception.NotEnoughHostsAvailable as e:
            if not offering:
                raise
            raise self._with_end(
                e, lease_id, project_id, values, now, names
            ) from e.__cause__

    def _update(
        self, lease_id: str, project_id: str | None, values: Mapping[str, Any],
        now: int, dry_run: bool, choose: Choose | None,
    ) -> Lease:
        if set(values) - lease_rules.DESCRIBING:
            known = self._ledger.owned_lease(lease_id, project_id)
            _check_changeable(known, values)
            self._match(self._bookings.drafts.changed(known, values, now))
        admission = self._bookings.enforcement.admission(dry_run)

        def work(
            tx: PlacingTx, left: lease_placing.Allocations | None = None
        ) -> tuple[Lease, Lease, shrinking.Shrink | None]:
            old = tx.owned_lease(lease_id, project_id)
            _check_changeable(old, values)
            chosen = {} if choose is None else choose(tx)
            new = self._bookings.drafts.changed(old, {**values, **chosen}, now)
            if new != old:
                if left is None and not dry_run and (
                    shrink := self._shrinker.begin(tx, old, new, now)
                ):
                    return old, new, shrink
                if left is None:
                    left = self._shrinker.remaining(tx.replica, old, new, now)
                new = dataclasses.replace(new, updated_at=now)
                change = self._bookings.writer.change(tx, old, new, now, left)
                admission.check(tx, change)
                new = change.lease
                if _has_moved_notified_end(old, new):
                    notifier.lease(tx, BEFORE_END_STOP, new)
            return old, new, None

        old, new, shrink = admission.commit(work)
        if dry_run:
            return new
        if shrink is not None:
            old, new, _ = self._shrinker.finish(shrink, admission.commit, work)
        if new != old:
            self._runner.wake()
        return new

    def end_search(
        self, lease_id: str, project_id: str | None, values: Mapping[str, Any],
        end: int,
    ) -> EndSearch:
        """Return the search for the latest end of a lease.

        :param values: what else is to be changed, as for `update`
        :param end: the latest end to consider
        :raises LeaseNotFound: if the project has no such lease
        """
        now = self._bookings.now()
        self._match(self._ledger.owned_lease(lease_id, project_id))

        def change(tx: PlacingTx, old: Lease, end: int) -> LeaseChange:
            changes = {**values, 'end': end}
            _check_changeable(old, changes)
            new = self._bookings.drafts.changed(old, changes, now)
            left = self._shrinker.remaining(tx.replica, old, new, now)
            return self._bookings.writer.planned(tx, old, new, now, left)

        return EndSearch(
            self._bookings, self._search, lease_id, project_id, end, change
        )

    def _match(self, lease: Lease) -> None:
        """Match the requirements of a lease ahead of the commit.

        The commit blocks other writers, so the matching is done before.
        """
        lease_placing.match(
            self._ledger.replica, lease, self._bookings.writer.options
        )

    def _with_end(
        self, refusal: exception.NotEnoughHostsAvailable, lease_id: str,
        project_id: str | None, values: Mapping[str, Any], now: int,
        names: bool,
    ) -> exception.NotEnoughHostsAvailable:
        """Return the refusal of a changed lease with the last end with room.

        The refusal also says what is in the way. No end is offered where the
        change would also be refused without a later end, to a lease that has
        more than resources on hosts, or if the search is given up.
        """
        old = self._ledger.owned_lease(lease_id, project_id)
        new = self._bookings.drafts.changed(old, values, now)
        refusal = with_obstacles(
            self._bookings, refusal, new, new.left(now), now, names
        )
        active = old.status == states.LEASE_ACTIVE
        end = old.end
        if end < new.end and all(
            r.demand.is_on_hosts(active) for r in new.reservations
        ):
            others = {k: v for k, v in values.items() if k != 'duration'}
            try:
                search = self.end_search(lease_id, project_id, others, new.end)
                found = search.ahead()
                if not search.is_given_up:
                    end = found
            except exception.TooManyRequests:
                return refusal
            except exception.InvalidInput:
                # The other values need a later end.
                pass
        return with_window(
            refusal, Window(new.start, end) if end > old.end else None
        )

    def delete(
        self, lease_id: str, project_id: str | None, dry_run: bool = False
    ) -> None:
        """Delete a lease, once its resources in other services are gone.

        The removal may continue after the answer; the lease is DELETING until
        then.

        :param dry_run: raise what the request would raise now, and change
            nothing
        :raises LeaseNotFound: if the project has no such lease
        :raises InvalidStatus: while an event of the lease is in progress
        :raises Unavailable: if other services do not give up the resources of
            the lease
        """
        now = self._bookings.now()

        def work(tx: PlacingTx) -> tuple[Event | None, Removed | None]:
            lease = tx.owned_lease(lease_id, project_id)
            _check_idle(lease)
            if _has_nothing(lease):
                return None, self._bookings.remove(tx, lease)
            end = event.end_now(lease_id, now, lease.events)
            leaving = dataclasses.replace(
                ending_now(lease, now), events=(end,)
            )
            tx.put_lease(leaving)
            end_window(tx, leaving)
            return end, None

        end, removed = self._ledger.commit(work, dry_run)
        if dry_run:
            return
        if end is not None:
            self._finish_delete(lease_id, end)
        elif removed is not None:
            removed()

    def _finish_delete(self, lease_id: str, end: Event) -> None:
        """Do the end event of a lease here, or wait while the runner does it.
        """
        for _ in range(DELETE_WAITS):
            over = self._runner.run(end)
            try:
                lease = self._ledger.lease(lease_id)
            except exception.LeaseNotFound:
                return
            if over and lease.status == states.LEASE_ERROR:
                raise exception.Unavailable(
                    f'the resources of lease {lease_id} in other services '
                    'cannot be removed: see the log, then delete the lease '
                    'again'
                )
            if self._runner.stopping:
                return
            self._wait(DELETE_WAIT)


def _shapes(values: Mapping[str, Any]) -> list[Any]:
    """Return the lists of reservations of a request, in their order."""
    return [values['reservations'], *values.get('alternatives', ())]


def _has_group(reservation: Reservation) -> bool:
    return reservation.demand.affinity is not None


def _has_nothing(lease: Lease) -> bool:
    """Tell whether a lease has nothing in other services.

    The lease of a server's lifetime has its server from the beginning.
    """
    return lease.status == states.LEASE_TERMINATED or (
        lease.status == states.LEASE_PENDING and not lease.is_lifetime
    )


def _check_idle(lease: Lease) -> None:
    # A vacating event in progress does not count: vacating restarts where a
    # change asks for it, and the writes of the running try are refused by
    # their token.
    if not lease.is_idle:
        raise exception.InvalidStatus(
            'an event of the lease is in progress: retry later', field='status'
        )


def _check_changeable(lease: Lease, values: Mapping[str, Any]) -> None:
    _check_idle(lease)
    if lease.status not in (states.LEASE_PENDING, states.LEASE_ACTIVE) and (
        set(values) - lease_rules.DESCRIBING
    ):
        raise exception.InvalidStatus(
            f'a lease that is {lease.status} can only be renamed or labelled',
            field='status',
        )


def _has_moved_notified_end(old: Lease, new: Lease) -> bool:
    """Tell whether the owner was notified of an end that has now changed."""
    told = {
        e.id
        for e in old.events
        if e.event_type == event.BEFORE_END_LEASE
        and e.status == states.EVENT_DONE
    }
    return any(
        e.id in told and e.status == states.EVENT_UNDONE for e in new.events
    )
