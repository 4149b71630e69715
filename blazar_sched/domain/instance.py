# SPDX-License-Identifier: Apache-2.0
"""A Nova server on a reservable host, with what the ledger knows of it."""

from collections.abc import Mapping
import dataclasses

from blazar_sched.domain import inventory
from blazar_sched.domain import window

# The most stays of a relocation path, the present stay included.
MAX_STAYS = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Stay:
    """The window in which an instance has room on a host, by its path.

    `host` is the host's uuid; the window is from `start` to `end`, which is
    FOREVER for the last stay of an unbounded instance.
    """

    host: str
    start: int
    end: int


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

    `path` is the relocation path of an instance that must leave its host
    before its end: the present stay, on `host`, and the later stays, for which
    the instance has relocation allocations on other hosts. Each stay begins
    before the previous one ends, so that the instance can be live-migrated in
    the meantime; the last stay ends with the instance. Empty for an instance
    that has room on its host to its end. `movable` is how the instance is
    moved: see domain.way. Only an instance that is moved has a path.

    `building` tells that nova-scheduler has chosen the host, and that Nova
    does not name the host of the server yet.
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
    path: tuple[Stay, ...] = ()
    movable: str = ''
    building: bool = False

    @property
    def leaves_at(self) -> int:
        """The end of the present stay: of the path's first, or its own."""
        return self.path[0].end if self.path else self.end

    @property
    def relocations(self) -> tuple[Stay, ...]:
        """The stays for which the instance has relocation allocations."""
        return self.path[1:]

    def ending_at(self, end: int) -> 'Instance':
        """Return the instance with another end, and its path until then.

        A later end is possible only where the host has room until then, so
        that the instance needs no path any more.
        """
        if end >= self.end:
            return dataclasses.replace(self, end=end, path=())
        path: list[Stay] = []
        for stay in self.path:
            if not path or path[-1].end < end:
                path.append(dataclasses.replace(stay, end=min(stay.end, end)))
        return dataclasses.replace(
            self, end=end, path=tuple(path) if len(path) > 1 else ()
        )

    def countable(self) -> Mapping[str, int]:
        """Return the amounts as the timeline index counts them."""
        return _countable(self.amounts)

    def countable_use(self) -> Mapping[str, int]:
        """Return Nova's amounts as the timeline index counts them."""
        return _countable(self.amounts if self.used is None else self.used)


def _countable(amounts: Mapping[str, int]) -> Mapping[str, int]:
    if max(amounts.values(), default=0) <= inventory.MAX_AMOUNT:
        return amounts
    return {
        resource_class: inventory.countable(amount)
        for resource_class, amount in amounts.items()
    }
