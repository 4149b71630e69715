# SPDX-License-Identifier: Apache-2.0
"""The execution of maintenances: hosts are closed, and leases leave them.

All other commits wait for a commit, so a maintenance is executed in slices.
The first commits close the hosts, the next ones move a few leases each. A
lease on a closed host that is not degraded is still to be moved.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
from typing import TypeVar

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.parts.maintenance import models
from blazar_sched.parts.maintenance.exception import MaintenanceNotFound
from blazar_sched.parts.maintenance.maintenance import CHANGING
from blazar_sched.parts.maintenance.maintenance import Maintenance
from blazar_sched.parts.maintenance.maintenance import NO_ROOM
from blazar_sched.parts.maintenance.maintenance import SERVERS
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service import faults
from blazar_sched.service import slices
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus import payload
from blazar_sched.service.bus.calls import Values
from blazar_sched.service.bus.notifier import LEASE_DEGRADED
from blazar_sched.service.bus.notifier import LEASE_HEALED
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.upkeep import healing
from blazar_sched.service.upkeep.healing import Healer

# What one commit moves.
LEASES_IN_COMMIT = 2
# A maintenance closes a host of the lease, or did so until the lease was moved
# to another host.
LEASE_MAINTENANCE = 'lease.maintenance'

T = TypeVar('T')

# What has left the hosts of a maintenance, and what is in the way.
Outcome = tuple[list[Values], list[Values]]
# The allocations in the window of a maintenance, each with the id of its
# lease.
Affected = list[tuple[Allocation, str]]


class Overtaken(Exception):
    """What was searched for has changed before the first commit."""


class Execution:
    """What is done with hosts and leases for maintenances.

    :param wake_runner: has the events that are due executed
    """

    def __init__(
        self, ledger: Ledger, healer: Healer, wake_runner: Callable[[], object]
    ) -> None:
        self._ledger = ledger
        self._healer = healer
        self._wake_runner = wake_runner

    def search(
        self, new: Maintenance, affected: Affected, now: int
    ) -> Outcome:
        """Return what can leave the hosts of a maintenance, and what cannot.

        Other commits wait for a commit, but not for this search.
        """
        # The hosts are closed by allocations of each as a whole.
        changes = [
            record.encode(Allocation(
                f'{new.id} {host.uuid}', new.id, host.uuid, new.start, new.end,
                whole=True,
            ))
            for host in self._ledger.hosts(new.hosts)
        ]
        found: list[Outcome] = []

        def search(leases: Iterable[Lease], replica: state.Replica) -> None:
            with replica.changing() as show:
                show(changes, leave_out=True)

                def move(lease: Lease, hosts: set[str], id_: str) -> Lease:
                    held = replica.indexes.allocations(id_)
                    placed = self._healer.plan(
                        replica, lease, hosts, now, {id_}
                    )[id_]
                    shown = [
                        *map(record.removal, held.values()),
                        *map(record.encode, placed),
                    ]
                    show(shown, leave_out=True)
                    changes.extend(shown)
                    return lease

                for lease in leases:
                    held = [a for a, id_ in affected if id_ == lease.id]
                    _, left = _leave(self._ledger, lease, held, now, move)
                    found.append(left)

        for ids in slices.of(_leases(affected), LEASES_IN_COMMIT):
            self._ledger.read_replica(functools.partial(
                search, [self._ledger.lease(id_) for id_ in ids]
            ))
        return _merged(found)

    def begin(
        self, old: Maintenance | None, new: Maintenance, affected: Affected,
        now: int, moves: bool,
    ) -> Outcome:
        """Write a maintenance, close its hosts, and move leases off them.

        :param old: the maintenance before its change, None if it is new
        :param affected: the allocations in the window, when that was searched
        :param moves: whether reservations are to leave the hosts
        :raises Overtaken: if the maintenance, or what is on its hosts, has
            changed since the search
        """
        before = [] if old is None else find_affected(self._ledger, old, now)

        def begin(tx: PlacingTx) -> None:
            changed = old is not None and tx.run(models.get, old.id) != old
            if changed or find_affected(tx, new, now) != affected:
                raise Overtaken
            tx.run(models.put, new)
            _set_hosts(tx, new, new.hosts[:slices.HOSTS], now)

        self._ledger.commit(begin)
        ids = _leases(affected)
        outcome = self.carry_on(new, now, ids, moves)
        self._restore({a.host for a, id_ in before if id_ not in ids}, now)
        self._wake_runner()
        return outcome

    def carry_on(
        self, new: Maintenance, now: int, ids: Collection[str] = (),
        moves: bool = True,
    ) -> Outcome:
        """Close the hosts of a maintenance, and move leases, in slices.

        A slice does nothing once the maintenance has changed: the request that
        has changed it goes on.

        :param ids: the ids of the leases that were known to be in the window
        """
        self._in_slices(
            self._open_hosts(new), slices.HOSTS,
            lambda hosts, tx: _set_hosts(tx, new, hosts, now),
        )
        all_ = list(dict.fromkeys((*ids, *self._unmoved(new, now))))
        for id_ in all_ if moves else ():
            with contextlib.suppress(exception.LeaseNotFound):
                self._healer.match(self._ledger.lease(id_))
        return _merged(self._in_slices(
            all_, LEASES_IN_COMMIT,
            lambda ids, tx: _merged(
                self._leave_in(tx, new, id_, now, moves) for id_ in ids
                if _is_current(tx, new)
            ),
        ))

    def is_unfinished(self, maintenance: Maintenance, now: int) -> bool:
        """Tell whether hosts are to be closed, or leases to be moved."""
        return bool(
            self._open_hosts(maintenance) or self._unmoved(maintenance, now)
        )

    def settle(self, now: int) -> None:
        """Take maintenances that are over or deleted from their hosts."""
        def open_(source: Reader) -> Callable[[ClosedWindow], bool]:
            known = {each.id for each in source.run(models.list_)}
            return lambda each: each.end > now and each.id in known

        is_open = open_(self._ledger)
        over = self._ledger.read_replica(lambda replica: [
            host.uuid for host in replica.closing_hosts()
            if not all(map(is_open, host.maintenances))
        ])

        def work(hosts: Sequence[str], tx: PlacingTx) -> None:
            is_open = open_(tx)
            for host in tx.hosts(hosts):
                tx.put_host(dataclasses.replace(
                    host,
                    maintenances=tuple(filter(is_open, host.maintenances)),
                ))

        if over:
            self._in_slices(over, slices.HOSTS, work)
            self._restore(over, now)
            self._wake_runner()

    def _restore(self, hosts: Collection[str], now: int) -> None:
        """Bring the `degraded` flag of the leases on hosts up to date."""
        leases = self._ledger.leases_on(hosts, now)
        self._in_slices(
            [each.id for each in leases if each.degraded], LEASES_IN_COMMIT,
            lambda ids, tx: _restore(tx, ids, now),
        )

    def _in_slices(
        self, all_: Sequence[str], length: int,
        work: Callable[[Sequence[str], PlacingTx], T],
    ) -> list[T]:
        """Commit the work on hosts or leases, so many in each commit."""
        results = []
        for part in slices.of(all_, length):
            faults.point('maintenance:slice')
            results.append(self._ledger.commit(functools.partial(work, part)))
        return results

    def _open_hosts(self, maintenance: Maintenance) -> list[str]:
        """Return the hosts that lack the copy of a maintenance."""
        return self._ledger.read_replica(lambda replica: [
            uuid for uuid in maintenance.hosts if uuid in replica.hosts
            and maintenance.on_host not in replica.hosts[uuid].maintenances
        ])

    def _unmoved(self, maintenance: Maintenance, now: int) -> list[str]:
        """Return the leases to be moved or flagged, by their ids."""
        after = max(now, maintenance.start)
        return [
            lease.id
            for lease in self._ledger.leases_on(maintenance.hosts, after)
            if lease.start < maintenance.end and not lease.degraded
        ]

    def _leave_in(
        self, tx: PlacingTx, new: Maintenance, lease_id: str, now: int,
        moves: bool,
    ) -> Outcome:
        """Move a lease off the hosts of a maintenance, or flag the lease."""
        affected = find_affected(tx, new, now, lease_id)
        if not affected:
            return [], []
        old = lease = tx.lease(lease_id)
        outcome: Outcome = [], in_its_way(affected)
        if moves:
            lease, outcome = _leave(
                tx, old, [a for a, _ in affected], now,
                lambda lease, hosts, id_: self._healer.move(
                    tx, lease, hosts, now, {id_}
                ),
            )
        _, in_the_way = outcome
        if in_the_way and not lease.degraded:
            tx.set_lease_status(lease_id, lease.status, now, degraded=True)
            lease = dataclasses.replace(lease, degraded=True, updated_at=now)
        notifier.of_lease(
            tx, LEASE_MAINTENANCE, lease, lambda: _payload(lease, new)
        )
        if lease.degraded and not old.degraded:
            notifier.lease(tx, LEASE_DEGRADED, lease)
        return outcome


def find_affected(
    source: Reader, maintenance: Maintenance, now: int,
    lease_id: str | None = None,
) -> Affected:
    """Return the allocations in the window, each with the id of its lease.

    A maintenance that is over affects none.

    :param lease_id: the lease of the allocations, None for all leases
    """
    if maintenance.end <= now:
        return []
    return [
        (allocation, lease_id)
        for allocation, lease_id in source.allocations(
            lease_id=lease_id, hosts=maintenance.hosts,
            after=max(now, maintenance.start),
        )
        if allocation.start < maintenance.end
    ]


def in_its_way(affected: Affected) -> list[Values]:
    """Return what is in the way of a maintenance, without the reasons."""
    return [
        {
            'lease_id': lease_id,
            'reservation_id': allocation.reservation_id,
            'hosts': [allocation.host],
            'why': None,
        }
        for allocation, lease_id in affected
    ]


def fill_in(tx: Tx, host: Host, now: int) -> Host:
    """Return a host that is registered, with its copies of maintenances.

    A maintenance still names a host that was removed.
    """
    return dataclasses.replace(host, maintenances=tuple(
        each.on_host for each in tx.run(models.list_)
        if host.uuid in each.hosts and each.end > now
    ))


def _leases(affected: Affected) -> list[str]:
    """Return the ids of the leases, each once."""
    return list(dict.fromkeys(id_ for _, id_ in affected))


def _merged(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcomes of several leases as one."""
    moved: list[Values] = []
    in_the_way: list[Values] = []
    for left, stays in outcomes:
        moved += left
        in_the_way += stays
    return moved, in_the_way


def _leave(
    source: Reader, lease: Lease, affected: Collection[Allocation], now: int,
    move: Callable[[Lease, set[str], str], Lease],
) -> tuple[Lease, Outcome]:
    """Move the reservations of a lease off hosts, as far as possible.

    :param affected: the allocations on the hosts
    :param move: moves one reservation, and returns the lease
    """
    moved: list[Values] = []
    in_the_way: list[Values] = []
    for id_ in dict.fromkeys(a.reservation_id for a in affected):
        hosts = {a.host for a in affected if a.reservation_id == id_}
        of = {'lease_id': lease.id, 'reservation_id': id_}
        staying: dict[str, set[str]] = {}
        if not healing.is_healable(lease, now):
            staying[CHANGING] = hosts
        else:
            if lease.status == states.LEASE_ACTIVE:
                used = {each.host for each in source.claiming([id_])}
                staying[SERVERS] = hosts & used
                hosts = hosts - used
            try:
                if hosts:
                    lease = move(lease, hosts, id_)
                    moved.append({**of, 'hosts': sorted(hosts)})
            except exception.NotEnoughHostsAvailable:
                staying[NO_ROOM] = hosts
        in_the_way += [
            {**of, 'hosts': sorted(each), 'why': why}
            for why, each in staying.items() if each
        ]
    return lease, (moved, in_the_way)


def _is_current(tx: PlacingTx, maintenance: Maintenance) -> bool:
    """Tell whether a maintenance is still there, and has not changed."""
    with contextlib.suppress(MaintenanceNotFound):
        return tx.run(models.get, maintenance.id) == maintenance
    return False


def _set_hosts(
    tx: PlacingTx, maintenance: Maintenance, hosts: Collection[str], now: int
) -> None:
    """Give hosts their copy of a maintenance, unless it is over."""
    if maintenance.end <= now or not _is_current(tx, maintenance):
        return
    for host in tx.hosts(hosts):
        others = tuple(
            each for each in host.maintenances if each.id != maintenance.id
        )
        tx.put_host(dataclasses.replace(
            host, maintenances=(*others, maintenance.on_host), updated_at=now
        ))


def _restore(tx: PlacingTx, lease_ids: Iterable[str], now: int) -> None:
    """Bring the `degraded` flag of leases up to date, once hosts are open."""
    for lease_id in sorted(lease_ids):
        try:
            old = tx.lease(lease_id)
        except exception.LeaseNotFound:
            continue
        if not old.degraded or not healing.is_healable(old, now):
            continue
        if old.status == states.LEASE_ACTIVE:
            # The start finds what the lease still lacks.
            events = event.start_again(old.events)
            new = dataclasses.replace(old, events=events)
        else:
            hosts = tx.hosts(
                {a.host for a, _ in tx.allocations(lease_id=lease_id)}
            )
            new = dataclasses.replace(
                old,
                degraded=healing.lacks_resources(old.reservations) or any(
                    host.closed_in(old.left(now)) for host in hosts
                ),
            )
        if new != old:
            tx.put_lease(dataclasses.replace(new, updated_at=now))
        if not new.degraded:
            notifier.lease(tx, LEASE_HEALED, new)


def _payload(lease: Lease, maintenance: Maintenance) -> Values:
    """Return the payload of a notification of a lease and a maintenance."""
    return {
        **payload.lease(lease),
        'maintenance': {
            'id': maintenance.id,
            'name': maintenance.name,
            'reason': maintenance.reason,
            'start_date': payload.date(maintenance.start),
            'end_date': payload.date(maintenance.end),
        },
    }
