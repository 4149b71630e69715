# SPDX-License-Identifier: Apache-2.0
"""Shrinking: what an active lease has too much is given up for a change.

In other services first, and then in the ledger, because what the ledger has
free may be another's at once. All of it under the claim of the lease's start,
which is left undone: be it after the commit, or after whatever kept it from
being made, the start makes other services what the ledger says then.
"""

from collections.abc import Callable
import dataclasses
from typing import Any
from typing import TypeVar

from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.placing import lease_placing
from blazar_sched.service import resources
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.manager import claim
from blazar_sched.service.manager.runner import Runner
from blazar_sched.service.resources import base

T = TypeVar('T')


@dataclasses.dataclass(frozen=True, slots=True)
class Shrink:
    """A change for which some of an active lease has to be given up.

    `mine` is the claim of its start; `steps` are the parts that give some up,
    each with its driver.
    """

    lease: Lease
    mine: claim.Held
    steps: list[tuple[base.Resource, base.Part]]


class Shrinker:
    """Has leases give some up."""

    def __init__(
        self, drivers: resources.Drivers, runner: Runner
    ) -> None:
        self._drivers = drivers
        self._runner = runner

    def begin(
        self, tx: PlacingTx, old: Lease, new: Lease
    ) -> Shrink | None:
        """Claim a lease's start if a change has it give some up.

        :param new: as it is to be
        :returns: None if there is nothing to give up
        """
        steps = self._steps(tx, old, new)
        if not steps:
            return None
        return Shrink(new, self._runner.claim_start(tx, old), steps)

    def finish(
        self,
        shrink: Shrink,
        commit: Callable[[Callable[[Any], T]], T],
        work: Callable[[Any, lease_placing.Allocations], T],
    ) -> T:
        """Give up what is too much, and then commit the change.

        :param commit: runs work in a commit
        :param work: writes the change, told which allocations are left
        :raises CantUpdateParameter: if more is in use than is to be left
        :raises Unavailable: if other services do not give it up
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

    def rehearse(
        self, tx: PlacingTx, old: Lease, new: Lease
    ) -> lease_placing.Allocations:
        """Return what reservations would have left that give some up.

        As far as the ledger's records tell what is in use.

        :raises CantUpdateParameter: if more is in use than is to be left
        """
        records = tx.replica.instances
        return {
            part.reservation.id: driver.rehearse_give_up(
                part,
                [
                    records[id_]
                    for id_ in tx.replica.bound.get(part.reservation.id, ())
                ],
            )
            for driver, part in self._steps(tx, old, new)
        }

    def _steps(
        self, tx: PlacingTx, old: Lease, new: Lease
    ) -> list[tuple[base.Resource, base.Part]]:
        """Return what is open and has to give some up for a change."""
        if old.status != states.LEASE_ACTIVE:
            return []
        known = {r.id: r.parameters for r in old.reservations}
        steps = []
        for r in new.reservations:
            driver = self._drivers[r.resource_type]
            if r.id in known and driver.shrinks(known[r.id], r.parameters):
                held = tx.replica.held(r.id)
                hosts = {id_: tx.replica.hosts[id_] for id_ in held}
                part = base.Part(new, r, list(held.values()), hosts)
                steps.append((driver, part))
        return steps
