# SPDX-License-Identifier: Apache-2.0
"""The event runner: does what is due, each event under a claim.

Many events run at once, one of each lease. An event is a try after another:
a try never waits for Nova, it ends and is taken up again later. So a claim
is short, and what a manager left when it died is soon taken over by another.
"""

from collections import defaultdict
from collections.abc import Callable
import dataclasses
import os
import socket
import threading
from typing import Any

import futurist
from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import event as event_
from blazar_sched.domain import host as host_
from blazar_sched.domain import lease as lease_
from blazar_sched.domain import state_machine
from blazar_sched.domain import states
from blazar_sched.service import resources
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.manager import loop

LOG = log.getLogger(__name__)

# Seconds until it is looked again whether deleted servers are gone.
LOOK_AGAIN = 1.0
_UNFINISHED = (states.EVENT_UNDONE, states.EVENT_IN_PROGRESS)
# What a lease is while an event of it is being done.
_MEANWHILE = {
    event_.START_LEASE: states.LEASE_STARTING,
    event_.END_LEASE: states.LEASE_TERMINATING,
}

# Writes an event's outcome.
Write = Callable[[Any], object]


class _NotNow(Exception):
    """The event is somebody else's, or has to wait for another one."""


class _ClaimLost(Exception):
    """Another manager has taken the event over."""


@dataclasses.dataclass(slots=True)
class _Tries:
    """What this process remembers of an event that it has tried."""

    since: float
    failures: int = 0
    not_before: float = 0


class Runner:
    """Does the events that are due.

    :param clock: returns the time in epoch seconds
    :param after: called when an event has been done
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: ledger_.Ledger,
        drivers: resources.Drivers,
        clock: Callable[[], float],
        after: Callable[[], object],
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._drivers = drivers
        self._clock = clock
        self._after = after
        self._owner = f'{socket.gethostname()}-{os.getpid()}'
        self._stopping = False
        self._lock = threading.Lock()
        # Leases with an event that runs in this process.
        self._running: set[str] = set()
        self._tries: dict[str, _Tries] = {}
        self._pool = futurist.ThreadPoolExecutor(
            max_workers=self._conf.event_max_workers
        )
        self._loop = loop.Loop('event runner', self.step)
        self._do = {
            event_.START_LEASE: self._start_lease,
            event_.BEFORE_END_LEASE: self._before_end_lease,
            event_.END_LEASE: self._end_lease,
        }

    def start(self) -> None:
        self._loop.start()

    def poke(self) -> None:
        """Look for events that are due now."""
        self._loop.poke()

    def stop(self) -> None:
        """Return once the tries under way are over."""
        self._stopping = True
        self._loop.stop()
        self._pool.shutdown()

    def step(self) -> float:
        """Begin what is due and return the seconds until the next look."""
        now = self._clock()
        for event, lease in self._ledger.due_events(int(now)):
            if self._take(event.id, lease.id, now):
                self._pool.submit(self._run, event.id, lease.id)
        longest: float = self._conf.event_poll_interval
        at = self._ledger.next_event_time()
        if at is None or at <= now:
            return longest
        return min(longest, at - now)

    def run(self, event_id: str, lease_id: str) -> bool:
        """Try an event in this thread; say whether it is over.

        Also an event that was given up is over.
        """
        if not self._take(event_id, lease_id, self._clock()):
            return False
        return self._run(event_id, lease_id)

    def _take(self, event_id: str, lease_id: str, now: float) -> bool:
        with self._lock:
            tries = self._tries.get(event_id)
            if lease_id in self._running or (
                tries is not None and now < tries.not_before
            ):
                return False
            self._running.add(lease_id)
            return True

    def _run(self, event_id: str, lease_id: str) -> bool:
        over = False
        try:
            # What waited for a thread when it was stopped stays undone.
            over = not self._stopping and self._try(event_id, lease_id)
        except Exception:
            # The ledger cannot be written: the claim runs out by itself.
            LOG.exception('Event %s of lease %s', event_id, lease_id)
        finally:
            with self._lock:
                self._running.discard(lease_id)
        if over:
            self.poke()
            self._after()
        return over

    def _try(self, event_id: str, lease_id: str) -> bool:
        now = int(self._clock())
        try:
            token, event, lease = self._ledger.commit(
                lambda tx: self._claim(tx, event_id, lease_id, now),
                placing=False,
            )
        except _NotNow:
            return False
        with self._lock:
            tries = self._tries.setdefault(event_id, _Tries(since=now))
        try:
            write = self._do[event.event_type](lease, now)
            if write is None:
                return self._look_again(event, lease, token, tries)
            self._finish(event, token, states.EVENT_DONE, write)
        except _ClaimLost:
            LOG.warning(
                'The %s of lease %s was taken over', event.event_type, lease_id
            )
            return False
        except Exception:
            LOG.exception('The %s of lease %s', event.event_type, lease_id)
            return self._try_again(event, lease, token, tries)
        self._forget(event_id)
        return True

    def _claim(
        self, tx: Any, event_id: str, lease_id: str, now: int
    ) -> tuple[str, event_.Event, lease_.Lease]:
        """Claim an event if it is due and nothing has to come before it."""
        token = tx.claim_event(
            event_id, self._owner, now, now + self._conf.event_claim_seconds
        )
        if token is None:
            raise _NotNow
        lease = tx.lease(lease_id)
        event = next(e for e in lease.events if e.id == event_id)
        if event.time > now or _has_earlier(lease, event):
            raise _NotNow
        if event.event_type == event_.START_LEASE and _is_blocked(
            tx, lease, now
        ):
            raise _NotNow
        status = _MEANWHILE.get(event.event_type)
        if status in state_machine.allowed(state_machine.LEASE, lease.status):
            tx.set_lease_status(lease_id, status)
            lease = dataclasses.replace(lease, status=status)
        return token, event, lease

    def _finish(
        self, event: event_.Event, token: str, status: str, write: Write
    ) -> None:
        """Write an event's status and outcome, if it is still claimed."""

        def work(tx: Any) -> None:
            if not tx.finish_event(event.id, token, status):
                raise _ClaimLost
            write(tx)

        self._ledger.commit(
            work, placing=event.event_type == event_.END_LEASE
        )

    def _look_again(
        self,
        event: event_.Event,
        lease: lease_.Lease,
        token: str,
        tries: _Tries,
    ) -> bool:
        """Put off an end whose servers are still going."""
        waited = self._clock() - tries.since
        if waited > self._conf.server_delete_timeout:
            LOG.error(
                'Servers of lease %s do not go, after %d s', lease.id, waited
            )
            return self._give_up(event, lease, token)
        return self._put_off(event, token, tries, LOOK_AGAIN)

    def _try_again(
        self,
        event: event_.Event,
        lease: lease_.Lease,
        token: str,
        tries: _Tries,
    ) -> bool:
        """Put off an event that failed, unless it has failed too often."""
        tries.failures += 1
        if tries.failures > self._conf.event_max_retries:
            return self._give_up(event, lease, token)
        return self._put_off(
            event, token, tries, self._conf.event_retry_interval
        )

    def _put_off(
        self, event: event_.Event, token: str, tries: _Tries, seconds: float
    ) -> bool:
        tries.not_before = self._clock() + seconds
        self._finish(event, token, states.EVENT_UNDONE, lambda tx: None)
        return False

    def _give_up(
        self, event: event_.Event, lease: lease_.Lease, token: str
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

        LOG.error(
            'The %s of lease %s is given up', event.event_type, lease.id
        )
        self._finish(event, token, states.EVENT_ERROR, write)
        self._forget(event.id)
        return True

    def _forget(self, event_id: str) -> None:
        with self._lock:
            self._tries.pop(event_id, None)

    def _start_lease(self, lease: lease_.Lease, now: int) -> Write:
        over = lease.end <= now
        degraded = False
        if not over:
            for driver, *args in self._parts(lease):
                degraded = driver.start(lease, *args, now) or degraded

        def write(tx: Any) -> None:
            tx.set_lease_status(
                lease.id, states.LEASE_ACTIVE, degraded=degraded or None
            )
            # What was not opened in its window has nothing to be ended.
            status = (
                states.RESERVATION_DELETED
                if over
                else states.RESERVATION_ACTIVE
            )
            _set_reservations(tx, lease, status)

        return write

    def _before_end_lease(self, lease: lease_.Lease, now: int) -> Write:
        LOG.info('Lease %s ends at %d', lease.id, lease.end)
        return lambda tx: None

    def _end_lease(self, lease: lease_.Lease, now: int) -> Write | None:
        # Each of them, before saying that one is not over.
        ended = [
            driver.end(lease, *args) for driver, *args in self._parts(lease)
        ]
        if not all(ended):
            return None

        def write(tx: Any) -> None:
            if lease.status == states.LEASE_DELETING:
                tx.delete_lease(lease.id)
                return
            tx.set_lease_status(lease.id, states.LEASE_TERMINATED)
            _set_reservations(tx, lease, states.RESERVATION_DELETED)
            for reservation in lease.reservations:
                tx.put_allocations(reservation.id, ())

        return write

    def _parts(self, lease: lease_.Lease) -> list[tuple[Any, ...]]:
        """Return (driver, reservation, allocations, hosts) of what is open."""
        held = defaultdict(list)
        hosts: dict[str, host_.Host] = {}
        for allocation, _ in self._ledger.allocations(lease_id=lease.id):
            held[allocation.reservation_id].append(allocation)
        if held:
            hosts = {host.uuid: host for host in self._ledger.hosts()}
        return [
            (self._drivers[r.resource_type], r, held[r.id], hosts)
            for r in lease.reservations
            if r.status != states.RESERVATION_DELETED
        ]


def _order(event: event_.Event) -> tuple[int, int]:
    return event.time, event_.ORDER.index(event.event_type)


def _has_earlier(lease: lease_.Lease, event: event_.Event) -> bool:
    """Tell whether another event of the lease has to come first."""
    return any(
        e.status in _UNFINISHED and _order(e) < _order(event)
        for e in lease.events
    )


def _is_blocked(tx: Any, lease: lease_.Lease, now: int) -> bool:
    """Tell whether a lease that is over still has to leave a host of it."""
    hosts = {a.host for a, _ in tx.allocations(lease_id=lease.id)}
    leaving = {
        owner
        for host in hosts
        for allocation, owner in tx.allocations(host=host)
        if owner != lease.id and allocation.end <= now
    }
    return any(
        e.event_type == event_.END_LEASE and e.status in _UNFINISHED
        for id_ in leaving
        for e in tx.lease(id_).events
    )


def _set_reservations(tx: Any, lease: lease_.Lease, status: str) -> None:
    for reservation in lease.reservations:
        if status in state_machine.allowed(
            state_machine.RESERVATION, reservation.status
        ):
            tx.set_reservation_status(reservation.id, status)
