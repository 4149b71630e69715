# SPDX-License-Identifier: Apache-2.0
"""Placing leases and writing them, as a part of a commit."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import itertools

from oslo_config import cfg

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import lease as lease_rules
from blazar_sched.domain import plural
from blazar_sched.domain import states
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.reservation import KEEP
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing import displacement
from blazar_sched.placing import lease_placing
from blazar_sched.placing import leavable
from blazar_sched.placing.options import Options
from blazar_sched.replica import state
from blazar_sched.service import resources
from blazar_sched.service.booking import placing_options
from blazar_sched.service.booking.draft import Drafts
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import LEASE_CREATE
from blazar_sched.service.bus.notifier import LEASE_UPDATE
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import CommitFirst
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.resources.base import FreeOffHosts

# A new lease, its allocations, and the instances that it displaces.
Placed = tuple[Lease, lease_placing.Allocations, list[Instance]]


class LeaseWriter:
    """Places leases on hosts, and writes them with their allocations.

    Each method is a part of the caller's commit, and of what it notifies.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, drivers: resources.Drivers, drafts: Drafts
    ) -> None:
        self._conf = conf
        self._drivers = drivers
        self._drafts = drafts

    def place(
        self, replica: state.Replica, lease: Lease, now: int
    ) -> tuple[lease_placing.Allocations, list[Instance]]:
        """Return a new lease's allocations and the displaced instances.

        :raises NotEnoughHostsAvailable: if a reservation finds no room
        """
        return place(replica, lease, now, self.options, self._rules_of(lease))

    def place_in_commit(
        self, tx: PlacingTx, lease: Lease, now: int
    ) -> tuple[lease_placing.Allocations, list[Instance]]:
        """Return what `place` returns, in a commit.

        :raises NotEnoughHostsAvailable: if a reservation finds no room
        :raises CommitFirst: if another commit must clear hosts first
        """
        with self._clearing_first(tx, lease.window, now) as cleared:
            return place(
                tx.replica, lease, now, self.options, self._rules_of(lease),
                cleared,
            )

    def _rules_of(self, lease: Lease) -> Rules | None:
        # The lease of a server's lifetime displaces no other server.
        return None if lease.is_lifetime else self.rules

    @contextlib.contextmanager
    def _clearing_first(
        self, tx: PlacingTx, window: Window, now: int
    ) -> Iterator[Mapping[str, Window] | None]:
        """Have another commit clear the hosts that were too many in a block.

        Yield the hosts that earlier commits have cleared for a window, None
        in a dry run, ahead of which no commit is made.
        """
        if tx.first is None:
            yield None
            return
        try:
            yield {
                host: cleared for each in tx.first
                for host, cleared in each.done.items()
                if cleared.overlaps(window)
            }
        except displacement.TooManyDisplaced as e:
            raise CommitFirst(
                functools.partial(self._clear, e.hosts, now), e.hosts
            ) from e

    def _clear(
        self, hosts: Mapping[str, Window], now: int, tx: PlacingTx
    ) -> None:
        if self.rules is not None:
            tx.put_instances(
                displacement.clear(tx.replica, hosts, now, self.rules)
            )

    def write(self, tx: PlacingTx, new: Sequence[Placed]) -> None:
        """Write new leases with what `place` has returned for each."""
        tx.set_leavable_hosts(_none_leavable(tx))
        tx.add_leases(
            [lease for lease, _, _ in new],
            (
                allocation
                for _, placed, _ in new
                for allocation in itertools.chain(*placed.values())
            ),
        )
        for lease, _, displaced in new:
            tx.put_instances(displaced)
            self._book(tx, lease, lease.window)
            notifier.lease(tx, LEASE_CREATE, lease)

    def add_started(self, tx: PlacingTx, lease: Lease) -> None:
        """Write the new lease of a server that is on its host already."""
        tx.add_lease(lease, ())
        notifier.lease(tx, LEASE_CREATE, lease)

    def release(
        self, tx: PlacingTx, lease: Lease, now: int
    ) -> lease_placing.Allocations:
        """Take a lease that has not started off its hosts, to be moved.

        :returns: the allocations that the lease had
        """
        held = lease_placing.allocations_of(tx.replica, lease)
        tx.put_all_allocations(dict.fromkeys(held, ()), now)
        return held

    def move(
        self, tx: PlacingTx, old: Lease, held: lease_placing.Allocations,
        start: int, now: int,
    ) -> LeaseChange:
        """Place a lease that was released anew, and write the lease.

        :param held: the allocations that the lease had
        :param start: the start from now on; the lease lasts as long as before
        :raises NotEnoughHostsAvailable: if a reservation finds no room
        """
        moved = self._drafts.changed(
            old, {'start': start, 'duration': old.window.duration}, now
        )
        new = dataclasses.replace(moved, updated_at=now)
        placed = self.put(tx, new, now)
        notifier.lease(tx, LEASE_UPDATE, new)
        return LeaseChange(new, old, now, placed, held)

    def put(
        self, tx: PlacingTx, lease: Lease, now: int
    ) -> lease_placing.Allocations:
        """Place a lease that the ledger has without hosts, and write it.

        :raises NotEnoughHostsAvailable: if a reservation finds no room
        """
        placed, displaced = self.place_in_commit(tx, lease, now)
        leavable_ = _none_leavable(tx)
        tx.put_lease(lease)
        tx.put_all_allocations(placed, now)
        tx.set_leavable_hosts(leavable_)
        tx.put_instances(displaced)
        self._book(tx, lease, lease.window)
        return placed

    def change(
        self, tx: PlacingTx, old: Lease, new: Lease, now: int,
        left: lease_placing.Allocations,
    ) -> LeaseChange:
        """Write a changed lease, and place the lease if needed.

        :param old: the lease before the change
        :param left: the remaining allocations of the reservations that have
            given up allocations
        """
        changed = new.reservations != old.reservations and (
            _needs(new) != _needs(old)
        )
        held = lease_placing.allocations_of(tx.replica, old)
        if new.window == old.window and not changed:
            tx.put_lease(new, old)
            notifier.lease(tx, LEASE_UPDATE, new)
            return LeaseChange(new, old, now, held, held)
        known = old
        settled = _settled(old, new, left)
        leavable_ = _none_leavable(tx)
        with self._clearing_first(tx, new.left(now), now) as cleared:
            placed, displaced = self.place_changed(
                tx.replica, old, new, now, left, cleared
            )
        if old.status == states.LEASE_ACTIVE:
            if changed or _grown(held, placed):
                # The start is due again for all reservations of the lease.
                events = event.start_again(new.events)
                new = dataclasses.replace(new, events=events)
            leaving = lease_rules.leaving(old, new, now)
            if leaving is not None:
                tx.split_lease(leaving)
                end_window(tx, leaving)
                known = tx.lease(old.id)
        elif _grown(held, placed):
            events = event.vacate_again(new.events)
            new = dataclasses.replace(new, events=events)
        tx.put_lease(new, known)
        tx.put_all_allocations(placed, now)
        tx.set_leavable_hosts(leavable_)
        tx.put_instances(displaced)
        self._book(tx, new, new.left(now), settled)
        notifier.lease(tx, LEASE_UPDATE, new)
        return LeaseChange(new, old, now, placed, held)

    def planned(
        self, tx: PlacingTx, old: Lease, new: Lease, now: int,
        left: lease_placing.Allocations,
    ) -> LeaseChange:
        """Place a changed lease as `change` does, but do not write the lease.

        What is not on hosts is booked in the transaction, which is to be
        undone.

        :raises Conflict: if a reservation finds no room
        """
        held = lease_placing.allocations_of(tx.replica, old)
        placed, _ = self.place_changed(tx.replica, old, new, now, left)
        self._book(tx, new, new.left(now), _settled(old, new, left))
        return LeaseChange(new, old, now, placed, held)

    def place_changed(
        self, replica: state.Replica, old: Lease, new: Lease, now: int,
        left: lease_placing.Allocations,
        cleared: Mapping[str, Window] | None = None,
    ) -> tuple[lease_placing.Allocations, list[Instance]]:
        """Return a changed lease's allocations and displaced instances.

        :param left: see `change`
        :param cleared: see `place`
        :raises NotEnoughHostsAvailable: if the lease finds no room
        """
        replica.advance(now)
        _check_hosts_kept(replica, old, new)

        def attempt() -> lease_placing.Allocations:
            return lease_placing.place(
                replica, new, new.left(now),
                lease_placing.allocations_of(replica, old),
                active=old.status == states.LEASE_ACTIVE,
                settled=_settled(old, new, left), options=self.options,
                left=left,
            )

        return displacement.place(
            replica, new, new.left(now), now, self.rules, attempt,
            self.options, cleared, _enough(replica, cleared),
        )

    @property
    def options(self) -> Options:
        """The options of placing, as configured now."""
        return placing_options.read(self._conf.manager)

    @property
    def rules(self) -> Rules | None:
        """The rules of relocation, as configured now."""
        return placing_options.rules(self._conf)

    def free_off_hosts(
        self, source: Reader, lease: Lease, after: int
    ) -> list[FreeOffHosts]:
        """Return what is free for a new lease of what is not on hosts.

        :param after: the time from which on that is asked for
        """
        types = dict.fromkeys(r.resource_type for r in lease.reservations)
        found = (self._drivers[t].free(source, lease, after) for t in types)
        return [each for each in found if each is not None]

    def _book(
        self, tx: PlacingTx, lease: Lease, window: Window,
        settled: Collection[str] = (),
    ) -> None:
        """Have each driver allocate the resources that are not on hosts."""
        for reservation in lease.reservations:
            self._drivers[reservation.resource_type].book(
                tx, lease, reservation, window, reservation.id in settled
            )


def place(
    replica: state.Replica, lease: Lease, now: int, options: Options,
    rules: Rules | None, cleared: Mapping[str, Window] | None = None,
) -> tuple[lease_placing.Allocations, list[Instance]]:
    """Return a new lease's allocations and the displaced instances.

    :param rules: the rules of relocation; None if no instance is relocated
    :param cleared: the hosts that earlier commits have cleared, None on trial
    :raises NotEnoughHostsAvailable: if a reservation finds no room
    """
    replica.advance(now)
    return displacement.place(
        replica, lease, lease.window, now, rules,
        lambda: lease_placing.place(
            replica, lease, lease.window, options=options
        ),
        options, cleared, _enough(replica, cleared),
    )


def _enough(
    replica: state.Replica, cleared: Mapping[str, Window] | None
) -> int:
    """Return how many new paths a commit may have, or a trial."""
    if cleared is None:
        return displacement.most_on_trial(replica)
    return displacement.ENOUGH


def end_window(tx: PlacingTx, lease: Lease) -> None:
    """Release the hosts of a lease that is being deleted.

    The hosts serve other leases however long the removal of the rest from
    other services takes.
    """
    tx.cut_allocations(lease)
    tx.release_instances(lease.ending_with(KEEP))


def _check_hosts_kept(replica: state.Replica, old: Lease, new: Lease) -> None:
    """Refuse another requirement that hosts of an active lease do not meet.

    :raises NotEnoughHostsAvailable: naming the hosts
    """
    if old.status != states.LEASE_ACTIVE:
        return
    known = {r.id: r for r in old.reservations}
    for r in new.reservations:
        held = replica.indexes.allocations(r.id)
        if not held or r.id not in known:
            continue
        if r.demand.requirement() == known[r.id].demand.requirement():
            continue
        unsuited = r.demand.unsuited([replica.hosts[host] for host in held])
        if unsuited:
            names = sorted(host.hypervisor_hostname for host in unsuited)
            raise exception.NotEnoughHostsAvailable(
                f'{", ".join(names)}, in use, '
                f'{plural.is_or_are(len(names))} not as required',
                field='reservations',
            )


def _none_leavable(tx: PlacingTx) -> leavable.Leavable:
    """Return no hosts for the reservations that can leave hosts until now.

    The room to which the leases would move may be reserved now, and
    nova-scheduler must not count on that room: upkeep finds the hosts anew.
    The replica is asked ahead of the writes, which it need not show then.
    """
    return dict.fromkeys(leavable.known(tx.replica), ())


def _needs(lease: Lease) -> list[Reservation]:
    """Return the reservations reduced to what needs room or a start."""
    return [
        dataclasses.replace(r, demand=r.demand.needs, updated_at=None)
        for r in lease.reservations
    ]


def _settled(
    old: Lease, new: Lease, left: lease_placing.Allocations
) -> set[str]:
    """Return the ids of the reservations that ask for no more than before.

    These reservations need no additional room: they are never refused.

    :param left: the remaining allocations of the reservations that have given
        up allocations
    """
    asked = {r.id: r.demand for r in old.reservations}
    if new.start < old.start or old.end < new.end:
        return set()
    return {
        r.id
        for r in new.reservations
        if r.id in asked and r.demand.asks_no_more(asked[r.id], left.get(r.id))
    }


def _grown(
    old: lease_placing.Allocations, new: lease_placing.Allocations
) -> bool:
    """Tell whether any host has a larger allocation than before."""
    before = lease_placing.amounts_by_host(itertools.chain(*old.values()))
    return (
        not lease_placing.amounts_by_host(itertools.chain(*new.values()))
        <= before
    )
