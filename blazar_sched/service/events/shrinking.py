# SPDX-License-Identifier: Apache-2.0
"""Shrinking: giving up the excess resources of a lease.

The excess of an active lease is given up in other services first, and then in
the ledger, because capacity that is free in the ledger may be given to another
lease at once. All of this is done under the claim of the lease's start, which
is left undone: after the commit, or after a failure that prevented the commit,
the start makes the other services match the ledger.

A lease that has not started has nothing in other services. It keeps a part of
its allocations, even if its hosts have too little by now: asking for less is
never refused for lack of capacity.
"""

from collections.abc import Callable
import dataclasses
from typing import Any
from typing import TypeVar

from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.placing import lease_placing
from blazar_sched.placing import overload
from blazar_sched.replica import state
from blazar_sched.service import resources
from blazar_sched.service.events import claim
from blazar_sched.service.events.runner import Runner
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.resources import base

T = TypeVar('T')


@dataclasses.dataclass(frozen=True, slots=True)
class Shrink:
    """A change for which an active lease has to give up resources.

    `mine` is the claim of the lease's start; `steps` are the parts that give
    up resources, each part with its driver.
    """

    lease: Lease
    mine: claim.HeldClaim
    steps: list[tuple[base.Resource, base.Part]]


class Shrinker:
    """The shrinker, which has leases give up resources."""

    def __init__(self, drivers: resources.Drivers, runner: Runner) -> None:
        self._drivers = drivers
        self._runner = runner

    def begin(
        self, tx: PlacingTx, old: Lease, new: Lease, now: int
    ) -> Shrink | None:
        """Claim a lease's start if other services have to give up resources.

        :param new: the lease as it is to be
        :returns: None if there is nothing to give up in other services
        """
        if old.status != states.LEASE_ACTIVE:
            return None
        steps = self._steps(tx.replica, old, new, now)
        if not steps:
            return None
        return Shrink(new, self._runner.claim_start(tx, old), steps)

    def finish(
        self, shrink: Shrink, commit: Callable[[Callable[[Any], T]], T],
        work: Callable[[Any, lease_placing.Allocations], T],
    ) -> T:
        """Give up the excess resources, and then commit the change.

        :param commit: runs a function in a commit
        :param work: writes the change, given the remaining allocations
        :raises CantUpdateParameter: if more is in use than is to remain
        :raises Unavailable: if other services do not give up the excess
        """
        with self._runner.ahead_of_start(shrink.mine):
            left = {
                part.reservation.id: driver.give_up(part)
                for driver, part in shrink.steps
            }

            def last(tx: PlacingTx) -> T:
                self._runner.release_start(tx, shrink.mine)
                return work(tx, left)

            return commit(last)

    def remaining(
        self, replica: state.Replica, old: Lease, new: Lease, now: int
    ) -> lease_placing.Allocations:
        """Return the allocations that shrinking reservations would keep.

        No other service is called: the use is known as far as the ledger's
        records show it.

        :raises CantUpdateParameter: if more is in use than is to remain
        """
        return {
            part.reservation.id: driver.dry_run_give_up(
                part,
                [
                    replica.instances[id_]
                    for id_ in replica.bound.get(part.reservation.id, ())
                ],
            )
            for driver, part in self._steps(replica, old, new, now)
        }

    def _steps(
        self, replica: state.Replica, old: Lease, new: Lease, now: int
    ) -> list[tuple[base.Resource, base.Part]]:
        """Return the parts that give up some for a change, with drivers."""
        known = {r.id: r.demand for r in old.reservations}
        steps = []
        for r in new.reservations:
            if r.id in known and r.demand.shrinks(known[r.id]):
                held = replica.indexes.allocations(r.id)
                hosts = {id_: replica.hosts[id_] for id_ in held}
                part = base.Part(
                    new, r, list(held.values()), hosts,
                    overload.failing_hosts(replica, r, new.left(now), now),
                )
                steps.append((self._drivers[r.resource_type], part))
        return steps
