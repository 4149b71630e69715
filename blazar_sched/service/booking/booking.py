# SPDX-License-Identifier: Apache-2.0
"""The booking of leases: what all kinds of bookings have in common.

A booker drafts a lease. In its commit, the lease is placed, checked, written
and notified of; after the commit, the runner of events is woken. A booker adds
to this only what is its own.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import dataclasses

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.service import resources
from blazar_sched.service.booking.draft import Drafts
from blazar_sched.service.booking.idempotency import Key
from blazar_sched.service.booking.lease_writer import LeaseWriter
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import LEASE_DELETE
from blazar_sched.service.enforcement.admission import Admission
from blazar_sched.service.enforcement.admission import Enforcement
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.events.runner import Runner
from blazar_sched.service.events.trust import Trusts
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx

# A function to call after a commit that has removed a lease.
Removed = Callable[[], None]


class Bookings:
    """The parts of a booking, and the order in which they are used.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, drivers: resources.Drivers,
        runner: Runner, enforcement: Enforcement, trusts: Trusts,
        clock: Callable[[], float],
    ) -> None:
        self.conf = conf
        self.ledger = ledger
        self.drivers = drivers
        self.runner = runner
        self.enforcement = enforcement
        self.clock = clock
        self.drafts = Drafts(conf, drivers)
        self.writer = LeaseWriter(conf, drivers, self.drafts)
        self._trusts = trusts
        #: Called with each new lease that a project does not get.
        self.on_refusal: list[Callable[[Lease], object]] = []

    def now(self) -> int:
        """Return the time in whole epoch seconds."""
        return int(self.clock())

    @contextlib.contextmanager
    def counting(self, lease: Lease, dry_run: bool) -> Iterator[None]:
        """Tell of a new lease if the block refuses the lease."""
        try:
            yield
        except (exception.NotEnoughHostsAvailable, exception.LimitExceeded):
            if not dry_run:
                self.refuse(lease)
            raise

    def refuse(self, lease: Lease) -> None:
        """Tell of a lease that a project does not get."""
        for tell in self.on_refusal:
            tell(lease)

    def once(
        self, key: Key, book: Callable[[PlacingTx], Lease],
        admission: Admission,
    ) -> Lease:
        """Commit a booking, unless its request has made a lease before.

        :param book: books a lease in the commit
        :raises IdempotencyKeyReused: if the key has created another lease
        """

        def work(tx: PlacingTx) -> tuple[Lease, bool]:
            made = key.lease(tx)
            if made is not None:
                return made, False
            lease = book(tx)
            key.put(tx, lease.id, self.now())
            return lease, True

        lease, is_new = admission.commit(work)
        if is_new and not admission.is_dry_run:
            self.runner.wake()
        return lease

    def add(
        self, tx: PlacingTx, lease: Lease, now: int,
        admission: Admission | None = None, asked_at: int | None = None,
        lifted: bool = False,
    ) -> Lease:
        """Place a new lease, check the lease and write it.

        Nothing is written if the lease is refused for lack of room or, without
        an admission, by a limit.

        :param admission: asks the filters that query other services, too
        :param asked_at: see `LeaseChange`
        :param lifted: whether the limits of approval filters are lifted
        :returns: the lease, with the refusals that are lifted
        :raises NotEnoughHostsAvailable: if a reservation finds no room
        :raises BlazarSchedError: the refusal of a filter
        """
        placed, displaced = self.writer.place_in_commit(tx, lease, now)
        change = LeaseChange(
            lease, None, now, placed, asked_at=asked_at, lifted=lifted
        )
        if admission is None:
            lease = dataclasses.replace(
                lease, needs_approval=self.enforcement.check_limits(tx, change)
            )
            if lease.is_waiting:
                # Nobody has let the project have this room yet.
                tx.add_lease(lease, ())
                return lease
        self.writer.write(tx, [(lease, placed, displaced)])
        if admission is not None:
            admission.check(tx, change)
        return lease

    def remove(self, tx: PlacingTx, *leases: Lease) -> Removed:
        """Remove leases that have nothing in other services but trusts.

        The rows of all leases are deleted by the same statements.

        :returns: the function that notifies the filters of the removal, and
            deletes the trusts; to be called after the commit
        """
        now = self.now()
        ended = [self.enforcement.ending(tx, lease) for lease in leases]
        for lease in leases:
            tx.discard_trust(lease.trust_id)
        for tell in self.ledger.on_deletion:
            tell(tx, leases, now)
        tx.delete_leases([lease.id for lease in leases])
        for lease in leases:
            notifier.lease(tx, LEASE_DELETE, lease)

        def removed() -> None:
            for tell in ended:
                tell()
            for lease in leases:
                self._trusts.delete(lease.trust_id)

        return removed
