# SPDX-License-Identifier: Apache-2.0
"""Offers: windows with room, of which one can be held for a while.

A held offer is a lease in the status CREATING: it has the allocations of the
lease, so that no other lease gets its room, and one event, with which the
offer lapses. Accepting the offer makes it a lease with the same id.

A lease that only approval filters refuse can be held, too. Such an offer gets
its room, and can be accepted, once an administrator has approved the offer: a
project cannot keep room from others beyond its limits by itself.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from oslo_config import cfg

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import plural
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.notification import Notification
from blazar_sched.parts.offer import models
from blazar_sched.parts.offer import search
from blazar_sched.parts.offer.calls import OFFERS
from blazar_sched.parts.offer.exception import MaxHeldOffers
from blazar_sched.parts.offer.exception import OfferLapsed
from blazar_sched.parts.offer.exception import OfferNotFound
from blazar_sched.parts.offer.search import LeaseWindow
from blazar_sched.parts.offer.search import Windows
from blazar_sched.placing import lease_placing
from blazar_sched.service.booking import draft
from blazar_sched.service.booking import idempotency
from blazar_sched.service.booking.search import Booking
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus import payload
from blazar_sched.service.bus.calls import Values
from blazar_sched.service.bus.notifier import LEASE_CREATE
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.ledger.at_one_revision import Query
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.manager import paging
from blazar_sched.service.manager.endpoint import lease_values
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running

# A held offer waits for the approval of an administrator; an administrator has
# approved or refused the offer.
NOTIFICATIONS = WAIT, APPROVE, REFUSE = (
    'offer.wait', 'offer.approve', 'offer.refuse',
)


class Offers:
    """The operations on offers."""

    def __init__(self, manager: Manager) -> None:
        self._conf = manager.conf.manager
        self._bookings = manager.bookings
        self._ledger = manager.ledger
        self._search = manager.search
        self._leases = manager.leases
        self._flavors = manager.flavors

    def search(self, values: Mapping[str, Any]) -> Values:
        """Return windows with room for a lease, or for an alternative.

        The windows are those of one revision. `limited_by` of a window is
        'policy' if a limit of the project forbids the lease.

        :param values: the fields of a request for offers
        :raises InvalidInput: naming the field that is wrong
        :raises TooManyRequests: if too many searches run or wait already
        """
        windows = self._search.result(
            self._windows(values), values['project_id']
        )
        return self._result(windows)

    def hold(
        self, values: Mapping[str, Any], seconds: int, approval: bool = False
    ) -> Values:
        """Return windows as `search` does, and hold the best one.

        No service but the ledger is asked: a filter of the operator that
        queries another service is asked by the acceptance.

        :param seconds: how long the offer is held
        :param approval: whether to hold an offer that needs approval, too
        :raises InvalidInput: naming the field that is wrong
        :raises LimitExceeded: if the project holds too many offers already, or
            if a limit forbids the lease
        """
        now = self._bookings.now()
        self._check_hold(seconds)

        def work(
            tx: PlacingTx, booking: Booking[Windows]
        ) -> tuple[Windows, Lease | None]:
            windows = booking(tx)
            if not windows.found:
                return windows, None
            held = _held(windows.found[0], now, seconds)
            self._check_number(tx, held.project_id)
            held = self._bookings.add(tx, held, now, lifted=approval)
            if held.is_waiting:
                _notify(tx, WAIT, held)
            return windows, held

        windows, held = self._search.book(
            self._windows(values),
            lambda booking: self._ledger.commit(lambda tx: work(tx, booking)),
            values['project_id'],
        )
        # The runner waits for the next event, which may be this one.
        self._bookings.runner.wake()
        return self._result(windows, held)

    def list(self, project_id: str | None) -> list[Values]:
        """Return the held offers of a project, or of all, by id."""
        return [
            self._shown(self._ledger, held)
            for held in self._ledger.offers(project_id)
        ]

    def get(self, offer_id: str, project_id: str | None) -> Values:
        """Return a held offer.

        :raises OfferNotFound: if the project has no such offer
        """
        return self._shown(
            self._ledger, self._ledger.run(models.get, offer_id, project_id)
        )

    def update(
        self, offer_id: str, project_id: str | None, values: Mapping[str, Any]
    ) -> Values:
        """Approve a held offer, take the approval back, or hold it longer.

        :param values: `user_id` of the administrator, and, None for no change,
            `approved`, and `hold`, the seconds from now on
        :raises InvalidInput: if the offer would be held for too long
        :raises OfferNotFound: if the project has no such offer
        :raises NotEnoughHostsAvailable: if the room of an offer that is
            approved is taken
        """
        now, seconds = self._bookings.now(), values['hold']
        approved = values['approved']
        if seconds is not None:
            self._check_hold(seconds)

        def work(tx: PlacingTx) -> Values:
            held = tx.run(models.get, offer_id, project_id)
            was_waiting = held.is_waiting
            if seconds is not None:
                held = _held_for(held, now, seconds)
            if approved is not None:
                held = dataclasses.replace(
                    held, approved_by=values['user_id'] if approved else None
                )
                _notify(tx, APPROVE if approved else REFUSE, held)
            held = dataclasses.replace(held, updated_at=now)
            if was_waiting and not held.is_waiting:
                self._bookings.writer.put(tx, held, now)
            else:
                tx.put_lease(held)
            if held.is_waiting and not was_waiting:
                self._release(tx, held, now)
            return self._shown(tx, held)

        shown = self._ledger.commit(work)
        self._bookings.runner.wake()
        return shown

    def _release(self, tx: PlacingTx, held: Lease, now: int) -> None:
        """Take an offer off its hosts, and from its other resources."""
        self._bookings.writer.release(tx, held, now)
        tx.drop_off_hosts([each.id for each in held.reservations])

    def delete(self, offer_id: str, project_id: str | None) -> None:
        """Delete a held offer, so that its room is free again.

        An administrator, who sees all projects, refuses the offer by this.

        :raises OfferNotFound: if the project has no such offer
        """
        def work(tx: PlacingTx) -> None:
            held = tx.run(models.get, offer_id, project_id)
            tx.delete_lease(held.id)
            if project_id is None:
                _notify(tx, REFUSE, held)

        self._ledger.commit(work)

    def accept(
        self, values: Mapping[str, Any], key: str, dry_run: bool = False
    ) -> Lease:
        """Make a lease of a held offer, under the id of the offer.

        A window that has begun in the meantime stays as it is: the lease
        starts at once.

        :param values: the fields of a request for a lease, with the id of the
            offer
        :param key: the idempotency key: a repeated request is answered with
            the lease
        :param dry_run: return the answer that the request would get now, and
            change nothing
        :raises OfferLapsed: if the project holds no such offer
        :raises InvalidInput: naming the field that is wrong
        :raises LimitExceeded: if a limit forbids the lease, and is not lifted
            by an approval
        """
        now = self._bookings.now()
        admission = self._bookings.enforcement.admission(dry_run)

        def accept(tx: PlacingTx) -> Lease:
            held = _still_held(tx, values, now)
            lease = _accepted(self._conf, held, values, now)
            if held.is_waiting:
                # That an approval is missing is said before what room is.
                self._bookings.enforcement.check_limits(tx, LeaseChange(
                    lease, None, now, asked_at=held.created_at
                ))
                placed = self._bookings.writer.put(tx, lease, now)
            else:
                placed = lease_placing.allocations_of(tx.replica, held)
                tx.put_lease(lease)
            notifier.lease(tx, LEASE_CREATE, lease)
            admission.check(tx, LeaseChange(
                lease, None, now, placed, asked_at=held.created_at,
                lifted=held.approved_by is not None,
            ))
            return lease

        try:
            lease = self._bookings.once(
                idempotency.Key(values, key), accept, admission
            )
        except exception.IdempotencyKeyReused:
            # The key is that of the offer, and not of the client.
            raise _lapsed(values['offer']) from None
        return lease if dry_run else self._leases.opened(lease, now)

    def _windows(self, values: Mapping[str, Any]) -> Query[Windows]:
        """Return the search for what a request for offers asks for."""
        for reservations in values['alternatives']:
            self._flavors.learn(reservations)
        return search.windows(self._bookings, values)

    def _check_hold(self, seconds: int) -> None:
        longest = self._conf.max_offer_hold
        if seconds > longest:
            raise exception.InvalidInput(
                f'an offer can be held for at most {longest} seconds',
                field='hold',
            )

    def _check_number(self, tx: PlacingTx, project_id: str) -> None:
        most = self._conf.max_held_offers
        if len(tx.offers(project_id)) >= most:
            raise MaxHeldOffers(
                f'a project may hold {plural.counted(most, "offer")} at most',
                field='hold',
            )

    def _result(self, windows: Windows, held: Lease | None = None) -> Values:
        """Return what a request for offers is answered with.

        :param held: the lease that holds the first window, if any
        """
        offers = [self._offered(found) for found in windows.found]
        if held is not None:
            offers[0] |= {
                'id': held.id, 'held_until': held.held_until,
                'needs_approval': held.needs_approval,
                'limited_by': held.needs_approval and 'policy',
            }
        return {
            'offers': offers,
            'searched_until': windows.searched_until,
            'nearest': windows.nearest,
        }

    def _offered(self, found: LeaseWindow) -> Values:
        needs_approval = limited_by = None
        try:
            needs_approval = self._bookings.enforcement.check_limits(
                self._ledger,
                LeaseChange(
                    found.in_window, None, self._bookings.now(),
                    found.found.placed, lifted=True,
                ),
            )
            limited_by = needs_approval and 'policy'
        except exception.LimitExceeded:
            limited_by = 'policy'
        return {
            'id': None,
            'held_until': None,
            'start': found.window.start,
            'end': found.window.end,
            'alternative': found.alternative,
            'limited_by': limited_by,
            'needs_approval': needs_approval,
            'reservations': [
                {
                    'resource_type': r.resource_type,
                    'available': found.count(r),
                }
                for r in found.lease.reservations
            ],
        }

    def _shown(self, source: Reader, held: Lease) -> Values:
        found = source.allocations(lease_id=held.id)
        allocations = [a for a, _ in found]
        return {
            'id': held.id,
            'start': held.start,
            'end': held.end,
            'held_until': held.held_until,
            'project_id': held.project_id,
            'needs_approval': held.needs_approval,
            'approved_by': held.approved_by,
            'reservations': [
                {
                    'resource_type': r.resource_type,
                    # What the approval has to find room for.
                    'available': r.demand.least if held.is_waiting
                    else r.demand.count(
                        [a for a in allocations if a.reservation_id == r.id]
                    ),
                }
                for r in held.reservations
            ],
        }


def _held(offered: LeaseWindow, now: int, seconds: int) -> Lease:
    """Return the lease that holds the room of an offer."""
    lease = dataclasses.replace(
        offered.in_window, status=states.LEASE_CREATING, events=()
    )
    return _held_for(lease, now, seconds)


def _held_for(held: Lease, now: int, seconds: int) -> Lease:
    """Return a held offer that lapses after some seconds."""
    until = min(now + seconds, held.end)
    lapse = event.lapse(held.id, until, now, held.events)
    return dataclasses.replace(held, events=(lapse,))


def _still_held(source: Reader, values: Mapping[str, Any], now: int) -> Lease:
    """Return a held offer of which the window is not over.

    :raises OfferLapsed: if the project holds no such offer
    """
    try:
        held = source.run(models.get, values['offer'], values['project_id'])
    except OfferNotFound:
        raise _lapsed(values['offer']) from None
    if held.end <= now:
        raise _lapsed(values['offer'])
    return held


def _lapsed(offer_id: str) -> OfferLapsed:
    return OfferLapsed(
        f'offer {offer_id} is not held: the offer has lapsed, was deleted, or '
        'was accepted by another request',
        field='offer',
    )


def _accepted(
    conf: cfg.ConfigOpts, held: Lease, values: Mapping[str, Any], now: int
) -> Lease:
    """Return the lease that the acceptance of a held offer makes.

    :param conf: the options of the manager
    :raises InvalidInput: naming the field that is wrong
    """
    before_end = values['before_end']
    lease = dataclasses.replace(
        held, name=values['name'], user_id=values['user_id'],
        status=states.LEASE_PENDING, trust_id=values.get('trust_id'),
        labels=values.get('labels', {}),
        events=draft.plan(
            conf, held.id, held.window, before_end, now,
            draft.acts_on_start(held.reservations),
        ),
        updated_at=now,
    )
    if before_end == draft.DEFAULT:
        draft.check_announced(lease)
    return lease


def _notify(tx: PlacingTx, event_type: str, held: Lease) -> None:
    """Notify of the approval of a held offer; the type is from above."""
    tx.notifications.append(Notification(event_type, held.project_id, lambda: {
        **payload.lease(held),
        'held_until': payload.date(held.held_until),
        'needs_approval': held.needs_approval,
        'approved_by': held.approved_by,
    }))


def start(manager: Manager) -> Running:
    """Answer the calls for offers."""
    offers = Offers(manager)

    def hold(
        values: Values, seconds: int, approval: bool | None = None
    ) -> Values:
        return offers.hold(values, seconds, bool(approval))

    def accept(
        values: Values, idempotency_key: str, dry_run: bool = False
    ) -> Values:
        return lease_values(offers.accept(values, idempotency_key, dry_run))

    return Running({
        'search_offers': offers.search,
        'hold_offer': hold,
        'accept_offer': accept,
        'update_offer': offers.update,
        **paging.answers(OFFERS, offers),
    })
