# SPDX-License-Identifier: Apache-2.0
"""Transitions of leases: what each event waits for, does and notifies.

An event acts first in other services, by the drivers of the lease; then in the
ledger, in the commit that marks the event as done.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
from typing import Any

from oslo_config import cfg

from blazar_sched.domain import event as event_rules
from blazar_sched.domain import exception
from blazar_sched.domain import state_machine
from blazar_sched.domain import states
from blazar_sched.domain.demand import BEFORE_END
from blazar_sched.domain.demand import ON_START
from blazar_sched.domain.event import AFTER_START_LEASE
from blazar_sched.domain.event import BEFORE_END_LEASE
from blazar_sched.domain.event import END_LEASE
from blazar_sched.domain.event import Event
from blazar_sched.domain.event import LAPSE_OFFER
from blazar_sched.domain.event import START_LEASE
from blazar_sched.domain.event import VACATE_HOSTS
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import DELETE
from blazar_sched.domain.reservation import FAILED
from blazar_sched.domain.reservation import KEEP
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import WAITED_FOR
from blazar_sched.service.before_end import base as before_end
from blazar_sched.service.before_end import NOTHING
from blazar_sched.service.before_end import requested_action
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import LEASE_DEGRADED
from blazar_sched.service.bus.notifier import LEASE_DELETE
from blazar_sched.service.bus.notifier import LEASE_EVENT
from blazar_sched.service.bus.notifier import LEASE_HEALED
from blazar_sched.service.enforcement.admission import Enforcement
from blazar_sched.service.events import trust
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.resources import base
from blazar_sched.service.resources import servers

# A function that writes the outcome of an event.
Write = Callable[[Tx], object]
# A driver and the part that the driver acts on, for each reservation.
Steps = Iterable[tuple[base.Resource, base.Part]]

_Do = Callable[[Lease, Steps, int], 'Write | Waiting']

# The status of a lease while an event of the lease is in progress.
_MEANWHILE = {
    START_LEASE: states.LEASE_STARTING,
    END_LEASE: states.LEASE_TERMINATING,
}
# The seconds after which the owner of a lease is notified that the start or
# the end of the lease is late because another service can do nothing now.
LATE = 60
_UNFINISHED = (states.EVENT_UNDONE, states.EVENT_IN_PROGRESS)
# The reasons, by the ids of their reservations.
Reasons = Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """Other services have not finished: the event is to be done again.

    :param reasons: what the event waits for, as far as there is a reason to
        report
    """

    reasons: Reasons = dataclasses.field(default_factory=dict)


class Failed(Exception):
    """The parts of an event for some reservations have failed.

    :param reasons: the reasons for the failures
    :param final: whether another try would be in vain
    """

    def __init__(self, reasons: Reasons, final: bool) -> None:
        super().__init__(
            '; '.join(f'reservation {id_}: {why}' for id_, why
                      in reasons.items())
        )
        self.reasons = reasons
        self.final = final


class Transitions:
    """The transitions of leases.

    :param trusts: deletes the trust of a lease that is over
    :param enforcement: is notified when a lease is over
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, trusts: trust.Trusts,
        enforcement: Enforcement,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._trusts = trusts
        self._enforcement = enforcement
        self._do: dict[str, _Do] = {
            VACATE_HOSTS: self._vacate_hosts,
            START_LEASE: self._start_lease,
            AFTER_START_LEASE: functools.partial(self._act, ON_START),
            BEFORE_END_LEASE: functools.partial(self._act, BEFORE_END),
            END_LEASE: self._end_lease,
            LAPSE_OFFER: self._lapse_offer,
        }

    def do(
        self, event: Event, lease: Lease, steps: Steps, now: int
    ) -> Write | Waiting:
        """Execute an event in other services.

        :returns: a function that writes the outcome
        :raises Unavailable: if the event is to be tried again
        :raises Failed: if parts failed; `final` says whether to try again
        """
        with servers.listing_once():
            return self._do[event.event_type](lease, steps, now)

    def ending(self, event: Event, lease: Lease) -> Callable[[], object]:
        """Return the action to be run once an event is done."""
        if event.event_type != END_LEASE:
            return lambda: None
        notify = self._enforcement.ending(self._ledger, lease)

        def end() -> None:
            notify()
            self._trusts.delete(lease.trust_id)

        return end

    def _vacate_hosts(
        self, lease: Lease, steps: Steps, now: int
    ) -> Write | Waiting:
        # Once the lease starts, the start reports the servers that remain.
        if lease.start <= now:
            return lambda tx: None
        # Every part is vacated before reporting that one part is not clear.
        clear = [driver.vacate(part, now) for driver, part in steps]
        return (lambda tx: None) if all(clear) else Waiting()

    def _start_lease(
        self, lease: Lease, steps: Steps, now: int
    ) -> Write | Waiting:
        over = lease.end <= now
        unopened = over and lease.status == states.LEASE_PENDING
        opened: dict[str, base.Opened] = {}
        waiting = closing = False
        if not over:
            # Every part is started before reporting that one part has to wait.
            for driver, part in steps:
                closing |= any(
                    host.closed_in(lease.left(now)) for host in part.held
                )
                outcome = driver.start(part, now)
                if outcome is None:
                    waiting = True
                else:
                    opened[part.reservation.id] = outcome
        if waiting:
            return Waiting()
        # A start after the end of the lease says nothing new about the lease.
        degraded = None if over else closing or _is_degraded(lease, opened)

        def write(tx: Tx) -> None:
            tx.set_reservations_made(
                {
                    r.id: {**_done(r), **opened[r.id].made}
                    for r in lease.reservations if r.id in opened
                },
                {
                    id_: outcome.missing_resources
                    for id_, outcome in opened.items()
                    if outcome.missing_resources is not None
                },
            )
            tx.set_lease_status(lease.id, states.LEASE_ACTIVE, now, degraded)
            # A reservation not opened in its window has nothing to be ended.
            status = (
                states.RESERVATION_DELETED
                if unopened
                else states.RESERVATION_ACTIVE
            )
            _set_reservations(tx, lease, status, now)

        return write

    def _act(
        self, when: str, lease: Lease, steps: Steps, now: int
    ) -> Write | Waiting:
        waiting, impossible = {}, {}
        failed: dict[str, exception.Unavailable] = {}
        # Every part is acted on before reporting that one part has failed.
        for driver, part in steps:
            reservation = part.reservation
            if reservation.status != states.RESERVATION_ACTIVE:
                if now < lease.end and self._is_to_start(when, reservation):
                    waiting[reservation.id] = 'the start is not done'
                continue
            try:
                still = driver.act(part, when)
                if still is not None:
                    waiting[reservation.id] = still
            except exception.Unavailable as e:
                failed[reservation.id] = e
            except before_end.Impossible as e:
                impossible[reservation.id] = str(e)
        if failed:
            raise _failure(failed, impossible | waiting)
        if waiting:
            return Waiting(impossible | waiting)
        if impossible:
            raise Failed(impossible, final=True)
        return lambda tx: None

    def _is_to_start(self, when: str, reservation: Reservation) -> bool:
        """Tell whether the action of a reservation has to wait for its start.

        A start that was given up is tried again while the lease is active.
        """
        return (
            reservation.status == states.RESERVATION_PENDING
            and requested_action(self._conf, reservation, when) != NOTHING
        )

    def _end_lease(
        self, lease: Lease, steps: Steps, now: int
    ) -> Write | Waiting:
        # The window is over for these servers, however long the rest takes.
        kept = lease.ending_with(KEEP)
        if self._ledger.claiming(kept):
            self._ledger.commit(lambda tx: tx.release_instances(kept))
        # Every part is ended before reporting that one part is not over.
        ended = [driver.end(part) for driver, part in steps]
        if not all(ended):
            return Waiting()

        def write(tx: Tx) -> None:
            tx.discard_trust(lease.trust_id)
            _release_servers(tx, lease, now)
            if lease.status == states.LEASE_DELETING:
                for tell in self._ledger.on_deletion:
                    tell(tx, [lease], now)
                tx.delete_lease(lease.id)
                return
            tx.set_lease_status(lease.id, states.LEASE_TERMINATED, now)
            _set_reservations(tx, lease, states.RESERVATION_DELETED, now)

        return write

    def _lapse_offer(self, lease: Lease, steps: Steps, now: int) -> Write:
        # A held offer has nothing in other services.
        return lambda tx: tx.delete_lease(lease.id)


def is_needed(event: Event) -> bool:
    """Tell whether a lease depends on an event.

    Vacating is tried until the lease starts; the start then reports the
    servers that are still in the way, and the start waits for no server.
    """
    return event.event_type != VACATE_HOSTS


def has_earlier(lease: Lease, event: Event) -> bool:
    """Tell whether another event of the lease has to come first."""
    return any(
        e.status in _UNFINISHED
        and is_needed(e)
        and _order(e) < _order(event)
        for e in lease.events
    )


def can_reopen(lease: Lease, now: int) -> bool:
    """Tell whether a start that was given up can be tried once more.

    :param lease: the lease, with that start in progress; no other event may be
        in progress
    """
    begun = [e for e in lease.events if e.status == states.EVENT_IN_PROGRESS]
    return (
        lease.status == states.LEASE_ACTIVE
        and now < lease.end
        and len(begun) == 1
    )


def is_blocked(source: Reader, event: Event) -> bool:
    """Tell whether another lease has yet to leave a host of the event's lease.

    :param source: the ledger, which many threads can query at once, or a
        commit, in which no record changes any more
    """
    return event.event_type == START_LEASE and source.is_blocked(
        event.lease_id
    )


def begin(tx: Tx, event: Event, lease: Lease, now: int) -> Lease:
    """Return a lease with its status while an event of the lease is done."""
    if event.event_type == START_LEASE and lease.end <= now:
        # Nothing is opened any more; the status shows what an earlier try
        # opened.
        return lease
    status = _MEANWHILE.get(event.event_type)
    if status in state_machine.allowed(state_machine.LEASE, lease.status):
        tx.set_lease_status(lease.id, status, now)
        lease = dataclasses.replace(lease, status=status, updated_at=now)
    return lease


def fail(
    tx: Tx, event: Event, lease: Lease, now: int, reasons: Reasons
) -> None:
    """Put a lease in ERROR, or flag it if the state machine forbids ERROR.

    :param reasons: the reasons, of the reservations whose action was not done
    """
    when = ON_START if event.event_type == AFTER_START_LEASE else BEFORE_END
    tx.set_reservations_made({
        r.id: {**r.made, FAILED[when]: reasons[r.id]}
        for r in lease.reservations if r.id in reasons
    })
    if states.LEASE_ERROR not in state_machine.allowed(
        state_machine.LEASE, lease.status
    ):
        tx.set_lease_status(lease.id, lease.status, now, degraded=True)
        return
    tx.set_lease_status(lease.id, states.LEASE_ERROR, now)
    _set_reservations(tx, lease, states.RESERVATION_ERROR, now)


def _failure(
    failed: Mapping[str, exception.Unavailable], others: Reasons
) -> Exception:
    """Return what is wrong with the actions of an event, by reservation id.

    :param others: the reasons of the actions that have not failed
    """
    # A service of OpenStack that can do nothing now is waited for; a mail
    # server or a webhook of the operator keeps no lease from its end.
    for error in failed.values():
        if error.service and not error.refused:
            return error
    # The owner of the lease reads the reasons without their details.
    reasons = {id_: str(each.args[0]) for id_, each in failed.items()}
    failure = Failed({**others, **reasons}, final=False)
    failure.__cause__ = error
    return failure


def is_late(source: Reader, event: Event, now: int) -> bool:
    """Tell whether to notify of a start or an end that is late.

    :param source: the ledger, or a commit
    """
    if event.event_type not in _MEANWHILE or now < event.time + LATE:
        return False
    try:
        lease = source.lease(event.lease_id)
    except exception.LeaseNotFound:
        return False
    # Another manager may have done the event in the meantime.
    return not lease.degraded and any(
        e.id == event.id and e.status in _UNFINISHED for e in lease.events
    )


def tell_late(tx: Tx, event: Event, now: int) -> None:
    """Flag a lease whose start or end is late, and notify of that once."""
    if is_late(tx, event, now):
        lease = tx.lease(event.lease_id)
        tx.set_lease_status(lease.id, lease.status, now, degraded=True)
        notifier.lease(tx, LEASE_DEGRADED, tx.lease(lease.id))


def _done(reservation: Reservation) -> dict[str, Any]:
    """Return the `made` entries that a reservation keeps when restarted."""
    names = (*FAILED, *FAILED.values(), WAITED_FOR)
    return {k: v for k, v in reservation.made.items() if k in names}


def _is_degraded(lease: Lease, opened: Mapping[str, base.Opened]) -> bool:
    """Tell whether a lease falls short of what was promised.

    :param opened: the outcomes of the start, by reservation id
    """

    def missing(r: Reservation) -> bool:
        told = opened[r.id].missing_resources if r.id in opened else None
        return r.missing_resources if told is None else told

    return any(outcome.degraded for outcome in opened.values()) or any(
        missing(r) or not r.made.keys().isdisjoint(FAILED.values())
        for r in lease.reservations
    )


def _order(event: Event) -> tuple[int, int]:
    return event.time, event_rules.ORDER.index(event.event_type)


def _release_servers(tx: Tx, lease: Lease, now: int) -> None:
    """Make the servers of a lease that is over count for themselves."""
    tx.release_instances(lease.ending_with(KEEP))
    # Nova has none of these servers any more, even if no look at Nova has
    # recorded that yet: their hosts are free.
    gone = [] if lease.is_lifetime else lease.ending_with(DELETE)
    tx.delete_instances([each.uuid for each in tx.claiming(gone)])
    # A server in ERROR, which Nova does not shelve, is still on its host.
    tx.release_instances([each.id for each in lease.reservations], now)


def _set_reservations(tx: Tx, lease: Lease, status: str, now: int) -> None:
    tx.set_reservations_status([
        r.id for r in lease.reservations
        if status in state_machine.allowed(state_machine.RESERVATION, r.status)
    ], status, now)


def conclude(
    tx: Tx, write: Write, event: Event, before: Lease, suffix: str = ''
) -> None:
    """Write the outcome of an event that is over, and notify of the changes.

    :param before: the lease of the event, as it was before the event
    """
    write(tx)
    try:
        lease = tx.lease(before.id)
    except exception.LeaseNotFound:
        lease = before
    notifier.lease(tx, f'{LEASE_EVENT}{event.event_type}{suffix}', lease)
    if lease.degraded != before.degraded:
        notifier.lease(
            tx, LEASE_DEGRADED if lease.degraded else LEASE_HEALED, lease
        )
    if event.event_type == END_LEASE and not suffix and (
        before.status == states.LEASE_DELETING
    ):
        notifier.lease(tx, LEASE_DELETE, lease)
