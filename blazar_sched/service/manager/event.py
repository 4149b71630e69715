# SPDX-License-Identifier: Apache-2.0
"""The event runner: does what is due, each event under a claim.

Many events run at once, one of each lease. An event is a try after another:
a try never waits for Nova to finish something, it ends and is taken up again
later, each time under a new claim.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures
import dataclasses
import threading
from typing import Any

import futurist
from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import event as event_
from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import state_machine
from blazar_sched.domain import states
from blazar_sched.service import enforcement as enforcement_
from blazar_sched.service import faults
from blazar_sched.service import resources
from blazar_sched.service.clients import keystone as keystone_
from blazar_sched.service.clients import rest
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.manager import claim
from blazar_sched.service.manager import loop
from blazar_sched.service.manager import notifier as notifier_

LOG = log.getLogger(__name__)

# Seconds until it is looked again whether deleted servers are gone, or
# whether a host has been left; the longer it lasts, the rarer.
LOOK_AGAIN = 1.0
RAREST_LOOK = 5.0
# Seconds that a stop gives the steps under way.
STOP_TIMEOUT = 3.0
_UNFINISHED = (states.EVENT_UNDONE, states.EVENT_IN_PROGRESS)
# What a lease is while an event of it is being done.
_MEANWHILE = {
    event_.START_LEASE: states.LEASE_STARTING,
    event_.END_LEASE: states.LEASE_TERMINATING,
}

# Writes an event's outcome.
Write = Callable[[Any], object]
# A driver and the arguments of its start or end, for each reservation.
Steps = Iterable[tuple[Any, ...]]


class _NotNow(Exception):
    """The event is somebody else's, or has to wait for another one."""


class _Blocked(_NotNow):
    """A lease that is over still has to leave a host of this one."""


class _Stopping(Exception):
    """The manager stops: no other step is begun."""


@dataclasses.dataclass(slots=True)
class _Tries:
    """What this process remembers of an event; on the monotonic clock."""

    lease_id: str
    since: float
    failures: int = 0
    not_before: float = float('-inf')
    blocked: bool = False


class Runner:
    """Does the events that are due.

    :param clock: returns the time in epoch seconds; it says what is due
    :param monotonic: measures how long something lasts, so that a step of
        the clock changes no claim and no wait
    :param after: called when an event has been done
    :param keystone: removes the trust of a lease that is over
    :param enforcement: is told that a lease is over
    :param pool: runs the tries; else threads, as many as configured
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: ledger_.Ledger,
        drivers: resources.Drivers,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        after: Callable[[], object],
        notifier: notifier_.Notifier,
        keystone: keystone_.Keystone,
        enforcement: enforcement_.Enforcement,
        pool: futures.Executor | None = None,
    ) -> None:
        self.stopping = False
        self._conf = conf.manager
        self._ledger = ledger
        self._drivers = drivers
        self._clock = clock
        self._monotonic = monotonic
        self._after = after
        self._notifier = notifier
        self._keystone = keystone
        self._enforcement = enforcement
        self._claims = claim.Claims(
            ledger, clock, monotonic, self._conf.event_claim_seconds
        )
        self._lock = threading.Lock()
        # Leases with an event that runs here, or waits for a thread.
        self._running: set[str] = set()
        self._tries: dict[str, _Tries] = {}
        workers = self._conf.event_max_workers
        self._pool = pool or futurist.ThreadPoolExecutor(workers)
        # What failed is tried again in a pool of its own: however many
        # events hang in a service that does not answer, they hold the first
        # pool once, for the timeout of that service's client.
        self._second_pool = pool or futurist.ThreadPoolExecutor(
            -(-workers // 4)
        )
        self._loop = loop.Loop('event runner', self.step)
        self._renewer = loop.Loop('claim renewer', self.renew)
        self._do = {
            event_.START_LEASE: self._start_lease,
            event_.BEFORE_END_LEASE: self._before_end_lease,
            event_.END_LEASE: self._end_lease,
        }

    def start(self) -> None:
        self._loop.start()
        self._renewer.start()

    def poke(self) -> None:
        """Look for events that are due now."""
        self._loop.poke()

    def stop(self) -> None:
        """End each try after its step, and leave its event to others.

        A step that hangs is left behind after some seconds: its claim is
        given back too, and no other step follows it.
        """
        self.stopping = True
        self._loop.stop()
        self._claims.wait_for_none(STOP_TIMEOUT)
        self._renewer.stop()
        self._claims.give_back()
        for pool in {self._pool, self._second_pool}:
            pool.shutdown(wait=False)

    def step(self) -> float:
        """Begin what is due and return the seconds until the next look."""
        now = self._clock()
        due = self._ledger.due_events(int(now))
        self._forget_all_but(due)
        for event, seen in due:
            if self._take(event, seen):
                self._pool_for(event).submit(self._run, event, seen)
        longest: float = self._conf.event_poll_interval
        at = self._ledger.next_event_time()
        if at is None or at <= now:
            return longest
        return min(longest, at - now)

    def renew(self) -> float:
        """Keep the claims of the tries under way; say when to do it again."""
        self._claims.renew()
        return self._claims.interval

    def run(
        self, event: event_.Event, seen: event_.Claim | None = None
    ) -> bool:
        """Try an event in this thread; say whether it is over.

        Also an event that was given up is over.

        :param seen: the claim that it was found under
        """
        return self._take(event, seen) and self._run(event, seen)

    def end_trust(self, lease: lease_.Lease) -> None:
        """Remove the trust of a lease that is over; it is not waited for."""
        try:
            self._keystone.delete_trust(lease.trust_id)
        except exception.BlazarSchedError as e:
            LOG.warning('The trust of lease %s is left: %s', lease.id, e)

    def _forget_all_but(
        self, due: Sequence[tuple[event_.Event, event_.Claim | None]]
    ) -> None:
        """Forget the events that others have done, or moved."""
        self._claims.forget_all_but(event.id for event, seen in due if seen)
        ids = {event.id for event, _ in due}
        with self._lock:
            self._tries = {
                id_: tries
                for id_, tries in self._tries.items()
                if id_ in ids or tries.lease_id in self._running
            }

    def _pool_for(self, event: event_.Event) -> futures.Executor:
        tries = self._tries.get(event.id)
        return self._second_pool if tries and tries.failures else self._pool

    def _take(self, event: event_.Event, seen: event_.Claim | None) -> bool:
        if seen is not None and not self._claims.is_dead(event.id, seen):
            return False
        with self._lock:
            tries = self._tries.get(event.id)
            if event.lease_id in self._running or (
                tries is not None and self._monotonic() < tries.not_before
            ):
                return False
            self._running.add(event.lease_id)
            return True

    def _run(self, event: event_.Event, seen: event_.Claim | None) -> bool:
        over = False
        try:
            # What waited for a thread when it was stopped stays undone.
            over = not self.stopping and self._try(event, seen)
        except claim.Lost:
            LOG.warning('%s was taken over', _name(event))
        except Exception:
            # The ledger cannot be written: the claim runs out by itself.
            LOG.exception('%s', _name(event))
        finally:
            with self._lock:
                self._running.discard(event.lease_id)
        if over:
            self.poke()
            self._after()
        return over

    def _try(self, event: event_.Event, seen: event_.Claim | None) -> bool:
        now = int(self._clock())
        mine = self._claims.new(event.id)
        known = self._tries.get(event.id)
        try:
            # What was blocked may be so for long: that is asked first
            # without a commit, which others would have to wait for.
            if known and known.blocked and _is_blocked(self._ledger, event):
                raise _Blocked
            lease = self._ledger.commit(
                lambda tx: self._claim(tx, event, mine, seen, now),
                placing=False,
            )
        except _Blocked:
            tries = self._remember(event)
            tries.blocked = True
            self._wait_longer(tries)
            return False
        except _NotNow:
            return False
        with self._claims.holding(mine):
            faults.point(f'{event.event_type}:claimed')
            return self._work(event, lease, mine, now)

    def _claim(
        self,
        tx: Any,
        event: event_.Event,
        mine: claim.Held,
        seen: event_.Claim | None,
        now: int,
    ) -> lease_.Lease:
        """Claim an event if it is due and nothing has to come before it."""
        if not tx.claim_event(event.id, mine.claim, seen):
            raise _NotNow
        lease: lease_.Lease = tx.lease(event.lease_id)
        event = next(e for e in lease.events if e.id == event.id)
        if event.time > now or _has_earlier(lease, event):
            raise _NotNow
        if _is_blocked(tx, event):
            raise _Blocked
        if event.event_type == event_.START_LEASE and lease.end <= now:
            # Nothing is opened any more; what an earlier try opened shows.
            return lease
        status = _MEANWHILE.get(event.event_type)
        if status in state_machine.allowed(state_machine.LEASE, lease.status):
            tx.set_lease_status(lease.id, status)
            lease = dataclasses.replace(lease, status=status)
        return lease

    def _work(
        self,
        event: event_.Event,
        lease: lease_.Lease,
        mine: claim.Held,
        now: int,
    ) -> bool:
        """Do an event that is claimed; say whether it is over."""
        tries = self._remember(event)
        try:
            # Each request to another service is a step too.
            with rest.guarded(lambda: self._check(mine)):
                steps = self._steps(event, lease, mine)
                write = self._do[event.event_type](lease, steps, now)
            faults.point(f'{event.event_type}:worked')
            if write is None:
                return self._look_again(event, lease, mine, tries)
            ended = self._ending(event, lease)
            self._finish(event, mine, states.EVENT_DONE, write)
        except (claim.Lost, _Stopping):
            LOG.warning('%s is left to others', _name(event))
            self._finish(event, mine, states.EVENT_UNDONE)
            return False
        except Exception:
            LOG.exception('%s', _name(event))
            return self._try_again(event, lease, mine, tries)
        faults.point(f'{event.event_type}:finished')
        self._forget(event)
        self._tell(event, lease)
        ended()
        return True

    def _check(self, mine: claim.Held) -> None:
        """Pass if another step may be begun."""
        if self.stopping:
            raise _Stopping
        self._claims.check(mine)

    def _steps(
        self, event: event_.Event, lease: lease_.Lease, mine: claim.Held
    ) -> Iterator[tuple[Any, ...]]:
        """Yield (driver, reservation, allocations, hosts) of what is open."""
        for part in self._parts(lease):
            self._check(mine)
            yield part
            faults.point(f'{event.event_type}:stepped')

    def _finish(
        self,
        event: event_.Event,
        mine: claim.Held,
        status: str,
        write: Write = lambda tx: None,
    ) -> None:
        """Write an event's status and outcome.

        :raises Lost: if it has been taken over
        """

        def work(tx: Any) -> None:
            if not tx.finish_event(event.id, mine.token, status):
                raise claim.Lost
            write(tx)

        ends = event.event_type == event_.END_LEASE
        self._ledger.commit(
            work, placing=ends and status == states.EVENT_DONE
        )

    def _look_again(
        self,
        event: event_.Event,
        lease: lease_.Lease,
        mine: claim.Held,
        tries: _Tries,
    ) -> bool:
        """Put off an end whose servers are still going."""
        waited = self._monotonic() - tries.since
        if waited > self._conf.server_delete_timeout:
            LOG.error(
                'Servers of lease %s do not go, after %d s', lease.id, waited
            )
            return self._give_up(event, lease, mine)
        self._wait_longer(tries)
        self._finish(event, mine, states.EVENT_UNDONE)
        return False

    def _wait_longer(self, tries: _Tries) -> None:
        """Have an event wait, the longer the longer it has waited."""
        now = self._monotonic()
        wait = min(max(LOOK_AGAIN, (now - tries.since) / 2), RAREST_LOOK)
        tries.not_before = now + wait

    def _try_again(
        self,
        event: event_.Event,
        lease: lease_.Lease,
        mine: claim.Held,
        tries: _Tries,
    ) -> bool:
        """Put off an event that failed, unless it has failed too often."""
        tries.failures += 1
        if tries.failures > self._conf.event_max_retries:
            return self._give_up(event, lease, mine)
        tries.not_before = (
            self._monotonic() + self._conf.event_retry_interval
        )
        self._finish(event, mine, states.EVENT_UNDONE)
        return False

    def _give_up(
        self, event: event_.Event, lease: lease_.Lease, mine: claim.Held
    ) -> bool:
        """Put the event in ERROR, and the lease, if its machine allows."""

        def write(tx: Any) -> None:
            if states.LEASE_ERROR not in state_machine.allowed(
                state_machine.LEASE, lease.status
            ):
                tx.set_lease_status(lease.id, lease.status, degraded=True)
                return
            tx.set_lease_status(lease.id, states.LEASE_ERROR)
            _set_reservations(tx, lease, states.RESERVATION_ERROR)

        LOG.error('%s is given up', _name(event))
        self._finish(event, mine, states.EVENT_ERROR, write)
        self._forget(event)
        self._tell(event, lease, notifier_.ERROR)
        return True

    def _ending(
        self, event: event_.Event, lease: lease_.Lease
    ) -> Callable[[], object]:
        """Return what is to be told once the event is done."""
        if event.event_type != event_.END_LEASE:
            return lambda: None
        return self._enforcement.ending(self._ledger, lease)

    def _tell(
        self, event: event_.Event, before: lease_.Lease, suffix: str = ''
    ) -> None:
        """Notify of an event that is over, and of what it has made known.

        :param before: its lease as it was
        """
        if not self._notifier.is_on:
            return
        try:
            lease = self._ledger.lease(before.id)
        except exception.BlazarSchedError:
            # Deleted, or the database is away.
            lease = before
        self._notifier.lease(
            f'{notifier_.LEASE_EVENT}{event.event_type}{suffix}', lease
        )
        if lease.degraded and not before.degraded:
            self._notifier.lease(notifier_.LEASE_DEGRADED, lease)
        if event.event_type == event_.END_LEASE and not suffix and (
            before.status == states.LEASE_DELETING
        ):
            self._notifier.lease(notifier_.LEASE_DELETE, lease)

    def _remember(self, event: event_.Event) -> _Tries:
        with self._lock:
            return self._tries.setdefault(
                event.id, _Tries(event.lease_id, self._monotonic())
            )

    def _forget(self, event: event_.Event) -> None:
        """Forget an event that is over, and let go on what waited for it."""
        with self._lock:
            self._tries.pop(event.id, None)
            for tries in self._tries.values():
                if tries.blocked and event.event_type == event_.END_LEASE:
                    tries.not_before = float('-inf')

    def _start_lease(
        self, lease: lease_.Lease, steps: Steps, now: int
    ) -> Write:
        over = lease.end <= now
        unopened = over and lease.status == states.LEASE_PENDING
        opened = {}
        if not over:
            for driver, reservation, *args in steps:
                opened[reservation.id] = driver.start(
                    lease, reservation, *args, now
                )
        degraded = any(outcome.degraded for outcome in opened.values())

        def write(tx: Any) -> None:
            for reservation_id, outcome in opened.items():
                tx.set_reservation_made(
                    reservation_id, outcome.made, outcome.missing_resources
                )
            tx.set_lease_status(
                lease.id, states.LEASE_ACTIVE, degraded=degraded or None
            )
            # What was not opened in its window has nothing to be ended.
            status = (
                states.RESERVATION_DELETED
                if unopened
                else states.RESERVATION_ACTIVE
            )
            _set_reservations(tx, lease, status)

        return write

    def _before_end_lease(
        self, lease: lease_.Lease, steps: Steps, now: int
    ) -> Write:
        for driver, reservation, *args in steps:
            if reservation.status == states.RESERVATION_ACTIVE:
                driver.before_end(lease, reservation, *args)
        LOG.info('Lease %s ends at %d', lease.id, lease.end)
        return lambda tx: None

    def _end_lease(
        self, lease: lease_.Lease, steps: Steps, now: int
    ) -> Write | None:
        # Each of them, before saying that one is not over.
        ended = [driver.end(lease, *args) for driver, *args in steps]
        if not all(ended):
            return None
        self.end_trust(lease)

        def write(tx: Any) -> None:
            if lease.status == states.LEASE_DELETING:
                tx.delete_lease(lease.id)
                return
            tx.set_lease_status(lease.id, states.LEASE_TERMINATED)
            _set_reservations(tx, lease, states.RESERVATION_DELETED)
            for reservation in lease.reservations:
                tx.put_allocations(reservation.id, ())
            tx.drop_floating_ip_allocations(
                [reservation.id for reservation in lease.reservations]
            )

        return write

    def _parts(self, lease: lease_.Lease) -> list[tuple[Any, ...]]:
        """Return (driver, reservation, allocations, hosts) of what is open."""
        held = defaultdict(list)
        for allocation, _ in self._ledger.allocations(lease_id=lease.id):
            held[allocation.reservation_id].append(allocation)
        used = {a.host for many in held.values() for a in many}
        hosts = {host.uuid: host for host in self._ledger.hosts(used)}
        return [
            (self._drivers[r.resource_type], r, held[r.id], hosts)
            for r in lease.reservations
            if r.status != states.RESERVATION_DELETED
        ]


def _name(event: event_.Event) -> str:
    return f'The {event.event_type} of lease {event.lease_id}'


def _order(event: event_.Event) -> tuple[int, int]:
    return event.time, event_.ORDER.index(event.event_type)


def _has_earlier(lease: lease_.Lease, event: event_.Event) -> bool:
    """Tell whether another event of the lease has to come first."""
    return any(
        e.status in _UNFINISHED and _order(e) < _order(event)
        for e in lease.events
    )


def _is_blocked(source: Any, event: event_.Event) -> bool:
    """Tell whether another lease has yet to leave a host.

    :param source: the ledger, which many can ask at once, or a commit,
        in which nothing changes any more
    """
    return event.event_type == event_.START_LEASE and source.is_blocked(
        event.lease_id
    )


def _set_reservations(tx: Any, lease: lease_.Lease, status: str) -> None:
    for reservation in lease.reservations:
        if status in state_machine.allowed(
            state_machine.RESERVATION, reservation.status
        ):
            tx.set_reservation_status(reservation.id, status)
