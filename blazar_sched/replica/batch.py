# SPDX-License-Identifier: Apache-2.0
"""A batch of changes of the timeline indexes of all resource classes."""

from collections.abc import Mapping
from typing import Any

from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import MAX_STAYS
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.window import FOREVER
from blazar_sched.replica import accounting
from blazar_sched.replica import packing

# The ids of the entries that close a host are its uuid, this, and a number.
_CLOSED = '-closed-'
# A change of an index; see ext.TimelineIndex.apply.
Change = tuple[Any, ...]
# An instance that counts for itself, and the window in which it does so on all
# of its hosts together.
Lifetime = tuple[Instance, int, int]

# The ids of further entries of an instance are its uuid and a suffix.
_SUFFIX = '+'


class Batch:
    """Changes of all indexes together.

    An entry that is added has to be removed too if an index may already have
    an entry of that id. An entry may be removed that no index has.

    :param known: every host by uuid, as it was before the batch
    :param hosts: the hosts that the batch changes, None for a host that is
        gone
    """

    def __init__(
        self, known: Mapping[str, Host],
        hosts: Mapping[str, Host | None] | None = None,
    ) -> None:
        self.known = known
        self.hosts = hosts or {}
        self.removes: list[str] = []
        # The entries of RESOURCE_CLASSES, and the allocations among these
        # entries.
        self.adds: list[Change] = []
        self.allocations: list[Change] = []
        # All allocations.
        self.allocated: list[Allocation] = []
        # The entries of other resource classes, as (resource class, change).
        self.others: list[tuple[str, Change]] = []
        # The instances among the entries of RESOURCE_CLASSES that count for
        # themselves.
        self.lifetimes: list[Lifetime] = []

    def add_allocation(self, allocation: Allocation) -> None:
        """Add an allocation to the indexes of its resource classes.

        An allocation of other resource classes alone is not in the index of
        RESOURCE_CLASSES.
        """
        self.allocated.append(allocation)
        change = add_allocation(allocation)
        others = inventory.others(allocation.amounts)
        self._add_others(others, *change[1:6])
        if not others or any(change[6]):
            self.adds.append(change)
            self.allocations.append(change)

    def close(self, host: Host) -> None:
        """Take a host whole in its closed windows."""
        nothing = (0,) * packing.WIDTH
        changes = [
            ('add', id_, id_, host.uuid, closed.start, closed.end, nothing,
             True)
            for id_, closed in zip(
                _closing_ids(host), host.closed_windows, strict=True
            )
        ]
        self.adds += changes
        self.allocations += changes

    def open(self, host: Host) -> None:
        """Remove the entries of the closed windows of a host."""
        self.removes += _closing_ids(host)

    def add_instance(
        self, instance: Instance, accounting_: accounting.Accounting,
        overdue: bool,
    ) -> None:
        """Add an instance to the indexes of its resource classes.

        HostState has no figures of the other resource classes, so their
        amounts are added up under either accounting. A class that the host has
        no inventory of is left out: its amount comes from a sharing provider,
        which cannot be reserved.
        """
        uuid, host = instance.uuid, instance.host
        self.adds += [
            ('add', id_, uuid, host, *step, False)
            for id_, step in zip(
                _ids(uuid), accounting_.steps(instance, overdue), strict=False
            )
        ]
        occupied = accounting.occupancy(instance, overdue)
        if occupied is None:
            return
        end = FOREVER if overdue else instance.end
        self.lifetimes.append((instance, occupied[0], end))
        others = inventory.others(instance.countable())
        self._add_stay_of_others(others, uuid, uuid, Stay(host, *occupied))
        amounts = packing.amounts_of(instance.countable())
        for id_, stay in zip(
            _relocation_ids(uuid), instance.relocations, strict=False
        ):
            self.adds.append((
                'add', id_, uuid, stay.host, stay.start, stay.end, amounts,
                False,
            ))
            self._add_stay_of_others(others, id_, uuid, stay)

    def remove_instance(self, uuid: str) -> None:
        """Remove the entries of an instance from the indexes."""
        self.removes += _ids(uuid)
        self.removes += _relocation_ids(uuid)

    def _add_stay_of_others(
        self, others: Mapping[str, int], id_: str, uuid: str, stay: Stay
    ) -> None:
        """Add a stay to the indexes of the classes that its host has."""
        on = self.hosts.get(stay.host, self.known.get(stay.host))
        if others and on is not None:
            others = {c: n for c, n in others.items() if c in on.inventory}
        self._add_others(others, id_, uuid, stay.host, stay.start, stay.end)

    def _add_others(
        self, others: Mapping[str, int], *entry: str | int
    ) -> None:
        """Add an entry of other resource classes than RESOURCE_CLASSES.

        :param entry: the id, the owner, the host, the start and the end
        """
        self.others += [
            (name, ('add', *entry, (amount,), False))
            for name, amount in others.items()
        ]


def add_allocation(allocation: Allocation) -> Change:
    """Return the change that adds an allocation of RESOURCE_CLASSES."""
    return (
        'add', allocation.id, allocation.reservation_id, allocation.host,
        allocation.start, allocation.end,
        packing.amounts_of(allocation.amounts), allocation.whole,
    )


def entity_of(id_: str) -> str:
    """Return the uuid or id of the entity that an index entry belongs to."""
    return id_.partition(_SUFFIX)[0]


def _closing_ids(host: Host) -> list[str]:
    """Return the ids of the entries of the closed windows of a host."""
    return [
        f'{host.uuid}{_CLOSED}{n}' for n in range(len(host.closed_windows))
    ]


def _ids(uuid: str) -> tuple[str, str]:
    """Return the ids of an instance's index entries on its host, at most two.
    """
    return uuid, f'{uuid}{_SUFFIX}'


def _relocation_ids(uuid: str) -> list[str]:
    """Return the ids of an instance's relocation allocations, at most."""
    return [f'{uuid}{_SUFFIX}{n}' for n in range(1, MAX_STAYS)]
