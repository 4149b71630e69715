# SPDX-License-Identifier: Apache-2.0
"""The event runner: executes the due events, each event under a claim.

Many events run at the same time, one event of each lease. An event is executed
in successive tries: a try never waits for Nova to finish an operation; the try
ends and the event is tried again later, each time under a new claim.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import dataclasses
import functools
import math

import futurist
from oslo_config import cfg
from oslo_context import context
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.event import Claim
from blazar_sched.domain.event import END_LEASE
from blazar_sched.domain.event import Event
from blazar_sched.domain.event import LAPSE_OFFER
from blazar_sched.domain.event import start_again
from blazar_sched.domain.event import START_LEASE
from blazar_sched.domain.lease import Lease
from blazar_sched.replica import limited_log
from blazar_sched.service import cause
from blazar_sched.service import faults
from blazar_sched.service import loop
from blazar_sched.service import metrics as service_metrics
from blazar_sched.service import resources
from blazar_sched.service.bus import notifier
from blazar_sched.service.clients import rest
from blazar_sched.service.events import claim
from blazar_sched.service.events import transition
from blazar_sched.service.events.attempts import Attempted
from blazar_sched.service.events.attempts import Attempts
from blazar_sched.service.events.attempts import LONGEST_AWAY
from blazar_sched.service.events.clock import Clock
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.metrics import GIVEN_UP
from blazar_sched.service.metrics import LATENESS
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.metrics import PUT_OFF
from blazar_sched.service.resources import base

LOG = log.getLogger(__name__)

# The seconds between two looks for events that are due, and between two tries
# of a start that was given up although its lease is active.
INTERVAL = 0.5
START_RETRY_INTERVAL = 300.0
# Seconds that a stop gives the steps in progress.
STOP_TIMEOUT = 3.0
# The seconds after which a step of a loop hangs: a step waits for nothing but
# the database.
HANGS_AFTER = 600.0

# The metric label of each event status after a try.
_OUTCOMES = {
    states.EVENT_DONE: service_metrics.DONE,
    states.EVENT_UNDONE: PUT_OFF,
    states.EVENT_ERROR: GIVEN_UP,
}


# What is no fault of the service: the log has no traceback.
_EXPECTED = (exception.Unavailable, transition.Failed)


class _NotNow(Exception):
    """The event is claimed by another manager or waits for an event."""


class _Blocked(_NotNow):
    """A lease that is over has not yet left a host of this lease."""


class _Stopping(Exception):
    """The manager is stopping: no other step is begun."""


class Runner:
    """The executor of the events that are due.

    :param clock: the clock that decides which events are due; no event is
        executed while this clock differs from the process's own clock
    :param monotonic: the clock that measures durations, so that a step of the
        wall clock changes no claim and no wait
    :param after: called when an event has been done
    :param pool: the executor of the tries; by default a pool of as many
        threads as configured
    :param metrics: the metrics that count the tries
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, drivers: resources.Drivers,
        transitions: transition.Transitions, clock: Clock,
        monotonic: Callable[[], float], after: Callable[[], object],
        pool: futures.Executor | None = None, metrics: Metrics | None = None,
    ) -> None:
        self.stopping = False
        self._conf = conf.manager
        self._ledger = ledger
        self._drivers = drivers
        self._transitions = transitions
        self._clock = clock
        self._monotonic = monotonic
        self._after = after
        self._metrics = metrics or service_metrics.new()
        self._claims = claim.Claims(
            ledger, clock, monotonic, self._conf.event_claim_seconds
        )
        self._attempts = Attempts()
        self._away = limited_log.LimitedLog(LOG, monotonic)
        workers = self._conf.event_max_workers
        self._pool = pool or futurist.ThreadPoolExecutor(workers)
        # An event that failed is retried in a separate pool: however many
        # events hang on a service that does not answer, they hold the first
        # pool only once, for the timeout of that service's client.
        self._second_pool = pool or futurist.ThreadPoolExecutor(
            -(-workers // 4)
        )
        self._loop = loop.Loop(
            'event runner', self.step, hangs_after=HANGS_AFTER
        )
        self._renewer = loop.Loop(
            'claim renewer', self.renew, hangs_after=HANGS_AFTER
        )

    @property
    def loops(self) -> tuple[loop.Loop, ...]:
        return self._loop, self._renewer

    def start(self) -> None:
        self._loop.start()
        self._renewer.start()

    def wake(self) -> None:
        """Look now for events that are due."""
        self._loop.wake()

    def stop(self) -> None:
        """End each try after its current step and leave its event to others.

        A step that hangs is abandoned after STOP_TIMEOUT seconds: its claim is
        given back too, and no other step follows the abandoned step.
        """
        self.stopping = True
        self._loop.stop()
        self._claims.wait_for_none(STOP_TIMEOUT)
        self._renewer.stop()
        self._claims.release_all()
        for pool in {self._pool, self._second_pool}:
            pool.shutdown(wait=False)

    def step(self) -> float:
        """Begin the due events and return the seconds until the next look."""
        self._ledger.require_unchanged()
        at = self._clock.ask(self._ledger.next_event)
        now = self._clock()
        due = self.due()
        # Drop the events that other managers have done or moved.
        self._claims.forget_all_but(event.id for event, seen in due if seen)
        self._attempts.forget_all_but({event.id for event, _ in due})
        for event, seen in due:
            if self._take(event, seen):
                self._pool_for(event).submit(self._run_due, event, seen)
        if at is None or at <= now:
            return INTERVAL
        return min(INTERVAL, at - now)

    def due(self) -> list[tuple[Event, Claim | None]]:
        """Return the events that are due, each with its claim, if any."""
        now = self._clock()
        return self._ledger.due_events(
            int(now), int(now - START_RETRY_INTERVAL)
        )

    def renew(self) -> float:
        """Renew the claims of the running tries; return the interval."""
        self._claims.renew()
        return self._claims.interval

    def run(self, event: Event, seen: Claim | None = None) -> bool:
        """Try an event in this thread; tell whether the event is over.

        An event that was given up is also over.

        :param seen: the claim under which the event was found
        """
        return self._take(event, seen) and self._run(event, seen)

    def claim_start(self, tx: PlacingTx, lease: Lease) -> claim.HeldClaim:
        """Claim the start of an open lease, so that the start is done again.

        :param lease: the lease as recorded in the ledger, with no event in
            progress
        """
        start = next(e for e in lease.events if e.event_type == START_LEASE)
        mine = self._claims.new(start.id)
        events = start_again(lease.events)
        tx.put_lease(dataclasses.replace(lease, events=events))
        tx.claim_event(start.id, mine.claim, None)
        return mine

    @contextlib.contextmanager
    def ahead_of_start(self, mine: claim.HeldClaim) -> Iterator[None]:
        """Change an open lease's resources before its claimed start is done.

        No other manager changes the lease in the meantime. Whatever the
        outcome, and even if this process dies, the start is done afterwards:
        the start makes the other services match the ledger. No change
        therefore stays half done.

        :raises Unavailable: if the claim is lost, or the manager stops
        """
        try:
            with (
                self._claims.holding(mine),
                rest.guarded(lambda: self._check(mine)),
            ):
                yield
        except BaseException as e:
            self._claims.release([mine])
            self.wake()
            if isinstance(e, claim.ClaimLost | _Stopping):
                raise exception.Unavailable(
                    'another manager continues the start of the lease'
                ) from e
            raise

    def release_start(self, tx: PlacingTx, mine: claim.HeldClaim) -> None:
        """Leave a claimed start to the manager that does the start next.

        :raises ClaimLost: if the claim has been taken over
        """
        _settle(tx, mine, states.EVENT_UNDONE)

    def _pool_for(self, event: Event) -> futures.Executor:
        tried = self._attempts.known(event)
        failed = _is_given_up(event) or (tried and tried.pause)
        return self._second_pool if failed else self._pool

    def _take(self, event: Event, seen: Claim | None) -> bool:
        if self._clock.differs or (
            seen is not None and not self._claims.is_expired(event.id, seen)
        ):
            return False
        return self._attempts.take(event, self._monotonic())

    def _run_due(self, event: Event, seen: Claim | None) -> None:
        # The log lines about the event name its lease. The context is this
        # thread's until its next event.
        context.RequestContext(resource_uuid=event.lease_id)
        self._run(event, seen)

    def _run(self, event: Event, seen: Claim | None) -> bool:
        over = False
        try:
            # An event that was waiting for a thread at the stop stays undone.
            with cause.named(event.event_type):
                over = not self.stopping and self._try(event, seen)
        except claim.ClaimLost:
            LOG.warning('Another manager took over %s', _name(event))
        except Exception as e:
            # The ledger cannot be written: the claim expires without a write.
            if isinstance(e, exception.Unavailable):
                self._away.report_away('event runner', e)
            else:
                LOG.exception(
                    'Could not record the outcome of %s', _name(event)
                )
            self._remember(event).rest(self._monotonic(), LONGEST_AWAY)
        finally:
            self._attempts.release(event)
        if over:
            self.wake()
            self._after()
        return over

    def _try(self, event: Event, seen: Claim | None) -> bool:
        now = int(self._clock())
        mine = self._claims.new(event.id)
        known = self._attempts.known(event)
        try:
            # A blocked event may stay blocked for long: the block is first
            # checked without a commit, because a commit would make others
            # wait.
            if known and known.blocked and transition.is_blocked(
                self._ledger, event
            ):
                raise _Blocked
            lease = self._ledger.write(
                lambda tx: self._claim(tx, event, mine, seen, now)
            )
        except _Blocked:
            tried = self._remember(event)
            tried.blocked = True
            tried.wait_longer(self._monotonic())
            self._tell_late(event, now)
            return False
        except _NotNow:
            return False
        with self._claims.holding(mine):
            faults.point(f'{event.event_type}:claimed')
            return self._work(event, lease, mine, now)

    def _claim(
        self, tx: Tx, event: Event, mine: claim.HeldClaim, seen: Claim | None,
        now: int,
    ) -> Lease:
        """Claim an event that is due and that no other event must precede."""
        if not tx.claim_event(event.id, mine.claim, seen, event.status):
            raise _NotNow
        lease: Lease = tx.lease(event.lease_id)
        if _is_given_up(event) and not transition.can_reopen(lease, now):
            raise _NotNow
        event = next(e for e in lease.events if e.id == event.id)
        if event.time > now or transition.has_earlier(lease, event):
            raise _NotNow
        if transition.is_blocked(tx, event):
            raise _Blocked
        return transition.begin(tx, event, lease, now)

    def _work(
        self, event: Event, lease: Lease, mine: claim.HeldClaim, now: int
    ) -> bool:
        """Execute a claimed event; tell whether the event is over."""
        known = self._attempts.known(event)
        tried = self._remember(event)
        if known is None or tried.blocked:
            tried.blocked = False
            # From now on the event waits for the lease's own servers.
            tried.since = self._monotonic()
            if not _is_given_up(event):
                self._metrics.of(
                    LATENESS, event.event_type
                ).observe(max(0, now - event.time))
        try:
            # Each request to another service also counts as a step.
            with rest.guarded(lambda: self._check(mine)):
                parts = self._parts(lease)
                steps = self._steps(event, parts, mine)
                write = self._transitions.do(event, lease, steps, now)
            faults.point(f'{event.event_type}:worked')
            if isinstance(write, transition.Waiting):
                return self._wait_longer(
                    event, lease, mine, tried, write.reasons
                )
            ended = self._transitions.ending(event, lease)
            self._finish(event, mine, states.EVENT_DONE, functools.partial(
                transition.conclude, write=write, event=event, before=lease
            ))
        except (claim.ClaimLost, _Stopping):
            LOG.warning('Left %s to another manager', _name(event))
            self._finish(event, mine, states.EVENT_UNDONE)
            return False
        except Exception as e:
            if isinstance(e, exception.Unavailable) and not e.refused:
                return self._await_service(event, lease, mine, tried, e)
            if tried.is_news(exception.reason(e)):
                LOG.warning(
                    'Could not complete %s: %s', _name(event),
                    exception.reason(e), exc_info=not isinstance(e, _EXPECTED),
                )
            return self._try_again(
                event, lease, mine, tried,
                e if isinstance(e, transition.Failed) else None,
            )
        faults.point(f'{event.event_type}:finished')
        LOG.info(
            'Manager %s has done %s in %.1f s, on hosts: %s', mine.claim.owner,
            _name(event), self._monotonic() - tried.since,
            ', '.join(sorted({
                host.hypervisor_hostname
                for _, part in parts for host in part.held
            })) or 'none',
        )
        self._attempts.forget(event)
        ended()
        return True

    def _check(self, mine: claim.HeldClaim) -> None:
        """Return if another step may be begun; raise otherwise."""
        if self.stopping:
            raise _Stopping
        self._claims.check(mine)

    def _steps(
        self, event: Event, parts: Iterable[tuple[base.Resource, base.Part]],
        mine: claim.HeldClaim,
    ) -> Iterator[tuple[base.Resource, base.Part]]:
        """Yield the parts of a lease while another step may be begun."""
        for step in parts:
            self._check(mine)
            yield step
            faults.point(f'{event.event_type}:stepped')

    def _finish(
        self, event: Event, mine: claim.HeldClaim, status: str,
        write: transition.Write = lambda tx: None,
    ) -> None:
        """Write the status and the outcome of an event.

        :raises ClaimLost: if the claim has been taken over
        """

        over = int(self._clock()) if status != states.EVENT_UNDONE else None

        def work(tx: Tx) -> None:
            _settle(tx, mine, status, over)
            write(tx)

        # Replicas learn of the new aggregates and of the freed capacity.
        tells = event.event_type in (START_LEASE, END_LEASE, LAPSE_OFFER)
        if tells and status == states.EVENT_DONE:
            self._ledger.commit(work)
        else:
            self._ledger.write(work)
        self._metrics.of(
            service_metrics.EVENTS, event.event_type, _OUTCOMES[status]
        ).inc()

    def _wait_longer(
        self, event: Event, lease: Lease, mine: claim.HeldClaim,
        tried: Attempted, reasons: transition.Reasons,
    ) -> bool:
        """Put off an event that other services have not finished yet.

        :param reasons: what the event waits for; if empty, the event waits for
            servers
        """
        now = self._monotonic()
        waited = now - tried.since
        if _is_given_up(event) or (
            waited > self._conf.server_delete_timeout
            and transition.is_needed(event)
        ):
            LOG.error(
                'Waited %d s for %s: %s', waited, _name(event),
                '; '.join(reasons.values()) or 'servers do not change',
            )
            return self._give_up(event, lease, mine, reasons)
        tried.wait_longer(now)
        self._finish(event, mine, states.EVENT_UNDONE)
        return False

    def _await_service(
        self, event: Event, lease: Lease, mine: claim.HeldClaim,
        tried: Attempted, error: exception.Unavailable,
    ) -> bool:
        """Put off an event for whose service it is not the time.

        Such a failure does not count: a start is tried until the lease ends,
        and an end without limit.
        """
        self._away.report_away('event runner', error)
        if _is_given_up(event):
            return self._give_up(event, lease, mine, {})
        tried.rest(self._monotonic(), LONGEST_AWAY, loop.wait_of(error))
        self._finish(event, mine, states.EVENT_UNDONE)
        self._tell_late(event, int(self._clock()))
        return False

    def _tell_late(self, event: Event, now: int) -> None:
        """Notify the owner of a lease once that an event is late."""
        if transition.is_late(self._ledger, event, now):
            self._ledger.write(lambda tx: transition.tell_late(tx, event, now))

    def _try_again(
        self, event: Event, lease: Lease, mine: claim.HeldClaim,
        tried: Attempted, failed: transition.Failed | None = None,
    ) -> bool:
        """Put off an event that failed, unless the event has failed too long.
        """
        longest = self._conf.event_retry_interval
        in_all = longest * self._conf.event_max_retries
        # While Nova receives no requests, no server comes or goes.
        if (
            _is_given_up(event)
            or (failed is not None and failed.final)
            or not tried.pause_longer(
                self._monotonic(), longest,
                in_all if transition.is_needed(event) else math.inf,
            )
        ):
            reasons = {} if failed is None else failed.reasons
            return self._give_up(event, lease, mine, reasons)
        self._finish(event, mine, states.EVENT_UNDONE)
        return False

    def _give_up(
        self, event: Event, lease: Lease, mine: claim.HeldClaim,
        reasons: transition.Reasons,
    ) -> bool:
        """Put an event in ERROR, and its lease if the state machine allows."""
        if _is_given_up(event):
            # Everything else was written and notified at the first time.
            self._finish(event, mine, states.EVENT_ERROR)
            self._attempts.forget(event)
            return False
        LOG.error('Gave up %s', _name(event))
        self._finish(
            event, mine, states.EVENT_ERROR,
            functools.partial(
                transition.conclude,
                write=lambda tx: transition.fail(
                    tx, event, lease, int(self._clock()), reasons
                ),
                event=event, before=lease, suffix=notifier.ERROR,
            ),
        )
        self._attempts.forget(event)
        return True

    def _remember(self, event: Event) -> Attempted:
        return self._attempts.remember(event, self._monotonic())

    def _parts(self, lease: Lease) -> list[tuple[base.Resource, base.Part]]:
        """Return the open parts of a lease, each part with its driver."""
        held = defaultdict(list)
        for allocation, _ in self._ledger.allocations(lease_id=lease.id):
            held[allocation.reservation_id].append(allocation)
        used = {a.host for many in held.values() for a in many}
        hosts = {host.uuid: host for host in self._ledger.hosts(used)}
        return [
            (
                self._drivers[r.resource_type],
                base.Part(lease, r, held[r.id], hosts),
            )
            for r in lease.reservations
            if r.status != states.RESERVATION_DELETED
        ]


def _is_given_up(event: Event) -> bool:
    """Tell whether an event, as found due, was given up before."""
    return event.status == states.EVENT_ERROR


def _name(event: Event) -> str:
    return f'event {event.event_type} of lease {event.lease_id}'


def _settle(
    tx: Tx, mine: claim.HeldClaim, status: str, now: int | None = None
) -> None:
    """Set the status of a claimed event and release the claim.

    :param now: when the event was over, None if the event is not over
    :raises ClaimLost: if the claim has been taken over
    """
    if not tx.finish_event(mine.event_id, mine.token, status, now):
        raise claim.ClaimLost
