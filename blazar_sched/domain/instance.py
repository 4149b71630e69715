# SPDX-License-Identifier: Apache-2.0
"""A Nova server on a reservable host, with what the ledger knows of it."""

from collections.abc import Mapping
import dataclasses

from blazar_sched.domain import inventory
from blazar_sched.domain import window


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """A Nova server on a reservable host.

    `host` is the host's uuid; `end` is FOREVER for an unbounded instance.

    `claim` is the reservation that the instance draws on. `reservation_id` is
    the same reservation where the reservation has the host, so that the
    instance counts inside the reservation; None where the reservation has left
    the host, so that the instance counts for itself.

    `amounts` are the amounts that Placement counts, by resource class. `used`
    are the amounts that Nova counts in the figures of HostState, see
    domain.flavor; None where both are the same.
    """

    uuid: str
    host: str
    project_id: str
    amounts: Mapping[str, int]
    end: int = window.FOREVER
    reservation_id: str | None = None
    preemptible: bool = False
    claim: str | None = None
    used: Mapping[str, int] | None = None

    def countable(self) -> Mapping[str, int]:
        """Return the amounts as the timeline index counts them."""
        return _countable(self.amounts)

    def countable_use(self) -> Mapping[str, int]:
        """Return Nova's amounts as the timeline index counts them."""
        return _countable(self.amounts if self.used is None else self.used)


def _countable(amounts: Mapping[str, int]) -> Mapping[str, int]:
    if max(amounts.values(), default=0) <= inventory.MOST:
        return amounts
    return {
        resource_class: inventory.countable(amount)
        for resource_class, amount in amounts.items()
    }
