# SPDX-License-Identifier: Apache-2.0
"""Capacity: the hosts that a project could reserve in a window."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from blazar_sched.domain import lease
from blazar_sched.domain import requirements
from blazar_sched.domain import reservation
from blazar_sched.domain.catalog import Candidates
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.requirements import Requirement
from blazar_sched.domain.window import Window
from blazar_sched.placing import capacity
from blazar_sched.replica import accounting
from blazar_sched.replica import state
from blazar_sched.service import resources
from blazar_sched.service.ledger.ledger import Ledger

# Seconds of the window that is used if no end is given.
DAY = 86400

Slot = Mapping[str, int]


class Capacity:
    """The capacity of the hosts.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        ledger: Ledger,
        drivers: resources.Drivers,
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._drivers = drivers
        self._clock = clock

    def get(
        self,
        project_id: str,
        start: int | str = lease.NOW,
        end: int | None = None,
        parts: int = 1,
        resource_properties: str = '',
        flavor_id: str | None = None,
    ) -> dict[str, Any]:
        """Return the capacity in each part of a window.

        Each part is read at a revision of its own: commits wait for one part
        at a time.

        :param end: None for a day after the start
        :param resource_properties: the requirement that the hosts have to meet
        :param flavor_id: the flavor whose instances are counted, on hosts that
            also meet the requirements of the flavor
        :raises InvalidInput: naming the parameter that is wrong
        """
        now = int(self._clock())
        start = lease.soon(start, now, 'start_date')
        window = Window(start, start + DAY if end is None else end)
        requirement, slot = self._asked(
            project_id, resource_properties, flavor_id
        )

        def see(replica: state.Replica, part: Window) -> _Sight:
            replica.advance(now)
            candidates = replica.catalog.meeting(requirement, project_id)
            return _Sight(
                candidates,
                tuple(replica.instances.values()),
                capacity.look(replica.indexes, candidates, part),
            )

        reckoner = _Reckoner(now, slot)
        found = [
            reckoner.part(
                self._ledger.look(functools.partial(see, part=part))
            )
            for part in capacity.parts(window, parts)
        ]
        return {
            'start': window.start,
            'end': window.end,
            'hosts': reckoner.hosts,
            'parts': [dataclasses.asdict(part) for part in found],
        }

    def _asked(
        self, project_id: str, resource_properties: str, flavor_id: str | None
    ) -> tuple[Requirement, Slot | None]:
        """Return the requirement for hosts, and the slot of an instance."""
        slot = None
        if flavor_id is not None:
            parameters = self._drivers[reservation.FLAVOR_INSTANCE].validate(
                {
                    'flavor_id': flavor_id,
                    'amount': 1,
                    'resource_properties': resource_properties,
                },
                project_id,
            )
            resource_properties = parameters['resource_properties']
            slot = parameters['resources']
        return (
            requirements.parse(resource_properties, 'resource_properties'),
            slot,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Sight:
    """The data read at one revision."""

    candidates: Candidates
    instances: Sequence[Instance]
    look: capacity.Look


class _Reckoner:
    """A calculator of the capacity of one part after another.

    The results that depend on hosts and instances are kept for as long as the
    hosts and the instances are the same: both may be very many.
    """

    def __init__(self, now: int, slot: Slot | None) -> None:
        self._now = now
        self._slot = slot
        self._candidates: Candidates | None = None
        self._instances: Sequence[Instance] | None = None

    @property
    def hosts(self) -> int:
        """Return the number of hosts at the last part."""
        return len(self._site.hosts)

    def part(self, sight: _Sight) -> capacity.Part:
        """Compute a part, which begins after the parts before it."""
        if sight.candidates is not self._candidates:
            self._candidates = sight.candidates
            self._instances = None
            known = sight.candidates.hosts
            self._site = capacity.Site(
                known[uuid] for uuid in sight.look.hosts
            )
        if sight.instances != self._instances:
            self._instances = sight.instances
            self._use = capacity.Use(
                self._site, _occupying(sight.instances, self._now)
            )
        used = self._use.at(sight.look.window.start)
        return self._site.part(sight.look, used, self._slot)


def _occupying(
    instances: Iterable[Instance], now: int
) -> Iterator[tuple[Instance, int]]:
    """Yield the instances that count on their hosts, each with its end."""
    for instance in instances:
        occupied = accounting.occupancy(instance, instance.end <= now)
        if occupied is not None:
            _, end = occupied
            yield instance, end
