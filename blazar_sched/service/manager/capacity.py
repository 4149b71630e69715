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
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import FLAVOR_INSTANCE
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.request_group import NO_GROUPS
from blazar_sched.domain.request_group import RequestGroups
from blazar_sched.domain.requirements import Requirement
from blazar_sched.domain.window import Window
from blazar_sched.replica import accounting
from blazar_sched.replica import state
from blazar_sched.replica.catalog import Candidates
from blazar_sched.service import resources
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager import window_capacity

# Seconds of the window that is used if no end is given.
DAY = 86400

Slot = Mapping[str, int]


class Capacity:
    """The capacity of the hosts.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, ledger: Ledger, drivers: resources.Drivers,
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._drivers = drivers
        self._clock = clock

    def get(
        self, project_id: str, start: int | str = lease.NOW,
        end: int | None = None, parts: int = 1, resource_properties: str = '',
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
        window = self.window(start, end, now)
        query = self._query(project_id, resource_properties, flavor_id)

        def read(replica: state.Replica, part: Window) -> _Snapshot:
            return dataclasses.replace(
                query.read(replica, part, now),
                instances=tuple(replica.instances.values()),
            )

        calculator = _Calculator(now, query.slot)
        found = [
            calculator.part(
                self._ledger.read_replica(functools.partial(read, part=part))
            )
            for part in window_capacity.divide(window, parts)
        ]
        return {
            'start': window.start,
            'end': window.end,
            'hosts': calculator.hosts,
            'parts': [dataclasses.asdict(part) for part in found],
        }

    @staticmethod
    def window(start: int | str, end: int | None, now: int) -> Window:
        """Return the window of a request.

        :raises InvalidInput: naming the parameter that is wrong
        """
        start = lease.soon(start, now, 'start_date')
        return Window(start, start + DAY if end is None else end)

    def free(
        self, project_id: str, demand: Demand, window: Window, now: int
    ) -> int:
        """Return how many hosts or instances of a demand are free."""
        query = _of_demand(project_id, demand)
        snapshot = self._ledger.read_replica(
            lambda replica: query.read(replica, window, now)
        )
        part = _Calculator(now, query.slot).part(snapshot)
        return part.hosts if part.instances is None else part.instances

    def _query(
        self, project_id: str, resource_properties: str, flavor_id: str | None
    ) -> '_HostQuery':
        if flavor_id is not None:
            demand = self._drivers[FLAVOR_INSTANCE].validate(
                {
                    'flavor_id': flavor_id,
                    'amount': 1,
                    'resource_properties': resource_properties,
                },
                project_id,
            )
            return _of_demand(project_id, demand)
        return _HostQuery(
            project_id,
            requirements.parse(resource_properties, 'resource_properties'),
            None, NO_GROUPS,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Snapshot:
    """The data read at one revision."""

    candidates: Candidates
    peaks: window_capacity.PartPeaks
    instances: Sequence[Instance] = ()

    def table(self) -> window_capacity.HostTable:
        """Return the hosts, in the order of the peaks."""
        known = self.candidates.hosts
        hosts = (known[uuid] for uuid in self.peaks.hosts)
        return window_capacity.HostTable(hosts)


@dataclasses.dataclass(frozen=True, slots=True)
class _HostQuery:
    """The hosts that a query is about, for a project.

    :param slot: the amounts of an instance of the flavor, None for no flavor
    :param groups: the request groups of such an instance
    """

    project_id: str
    requirement: Requirement
    slot: Slot | None
    groups: RequestGroups

    def read(
        self, replica: state.Replica, window: Window, now: int
    ) -> _Snapshot:
        """Return the hosts, and their peaks in a window."""
        replica.advance(now)
        candidates = replica.catalog.meeting(
            self.requirement, self.project_id, groups=self.groups
        )
        peaks = window_capacity.query(replica.indexes, candidates, window)
        return _Snapshot(candidates, peaks)


def _of_demand(project_id: str, demand: Demand) -> _HostQuery:
    return _HostQuery(
        project_id, demand.requirement(), demand.slot or None,
        demand.request_groups(),
    )


class _Calculator:
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
        return len(self._table.hosts)

    def part(self, snapshot: _Snapshot) -> window_capacity.Part:
        """Compute a part, which begins after the parts before it."""
        if snapshot.candidates is not self._candidates:
            self._candidates = snapshot.candidates
            self._instances = None
            self._table = snapshot.table()
        if snapshot.instances != self._instances:
            self._instances = snapshot.instances
            self._usage = window_capacity.InstanceUsage(
                self._table, _stays(snapshot.instances, self._now)
            )
        used = self._usage.at(snapshot.peaks.window.start)
        return self._table.part(snapshot.peaks, used, self._slot)


def _stays(
    instances: Iterable[Instance], now: int
) -> Iterator[tuple[Stay, Instance]]:
    """Yield the present and later stays of the instances that count."""
    for instance in instances:
        occupied = accounting.occupancy(instance, instance.leaves_at <= now)
        if occupied is not None:
            yield Stay(instance.host, *occupied), instance
            for stay in instance.relocations:
                yield stay, instance
