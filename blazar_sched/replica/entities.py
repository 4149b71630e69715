# SPDX-License-Identifier: Apache-2.0
"""The entities of the ledger by key, and the groups that are asked for."""

from collections import Counter
from collections import defaultdict
from collections.abc import Hashable
from collections.abc import Iterator
import heapq
import itertools
from typing import Any
from typing import cast
from typing import TypeVar

from blazar_sched.domain import duration
from blazar_sched.domain import host
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import record

K = TypeVar('K', bound=Hashable)

# The number of ends up to which the ends are not pruned.
MIN_ENDS = 100

# Entities by the kind and key of their records; None for an entity that is
# gone.
Image = dict[record.Key, record.Entity | None]


class Entities:
    """The hosts, reservations and instances by key.

    Allocations, of which there are very many, are kept in the indexes alone.
    """

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.reservations: dict[str, record.Reservation] = {}
        self.instances: dict[str, Instance] = {}
        # The dedicated hosts, the hosts with a policy of their own for
        # unbounded instances, those whose policy is to relocate them, and the
        # hosts with closed windows.
        self.dedicated: set[str] = set()
        self.with_policy: set[str] = set()
        self.with_relocation: set[str] = set()
        self.closing: set[str] = set()
        # The reservations of whole hosts by project, and the magnetic ones
        # among these reservations by project.
        self.whole: dict[str, set[str]] = defaultdict(set)
        self.magnetic: dict[str, set[str]] = defaultdict(set)
        # The reservations with a label, by project, key and value.
        self.labelled: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        # The reservations that wait for preemptible servers to leave hosts.
        self.waiting: set[str] = set()
        # The reservations that can leave a host, by host.
        self.leavable: dict[str, set[str]] = defaultdict(set)
        # The preemptible instances that no reservation has, by host.
        self.preemptible: dict[str, set[str]] = defaultdict(set)
        # Memory of the preemptible instances in MB, by host.
        self.preemptible_mb: Counter[str] = Counter()
        # The bound instances, by reservation.
        self.bound: dict[str, set[str]] = defaultdict(set)
        # The instances with relocation allocations, by host of these.
        self.arriving: dict[str, set[str]] = defaultdict(set)
        # The instances with amounts of other resource classes, by host of
        # their present and later stays.
        self.with_others: dict[str, set[str]] = defaultdict(set)
        self._by_kind: dict[str, dict[str, Any]] = {
            record.HOST: self.hosts,
            record.RESERVATION: self.reservations,
            record.INSTANCE: self.instances,
        }
        # The latest time that advance() was given. As of that time: the
        # instances past the end of their present stay, and a heap with the
        # ends of the other stays as (end, uuid). The heap also has outdated
        # ends, of instances that have another end by now or are gone.
        self._now = 0
        self._overdue: set[str] = set()
        self._ends: list[tuple[int, str]] = []

    def entities(self) -> Iterator[record.Entity]:
        """Yield the entities, kind by kind, the hosts first."""
        return itertools.chain.from_iterable(
            entities.values() for entities in self._by_kind.values()
        )

    def entity(self, kind: str, key: str) -> record.Entity | None:
        """Return an entity that is no allocation, None if unknown."""
        found: record.Entity | None = self._by_kind[kind].get(key)
        return found

    def keep(self, image: Image) -> None:
        """Replace the entities that an image names."""
        for (kind, key), entity in image.items():
            self._keep(kind, key, entity)

    def closing_hosts(self) -> Iterator[Host]:
        """Yield the hosts that have closed windows."""
        return map(self.hosts.__getitem__, self.closing)

    def is_closed(self, host_uuid: str, now: int) -> bool:
        """Tell whether a host is known, and nothing may be on it now."""
        found = self.hosts.get(host_uuid)
        return found is not None and found.is_closed(now)

    def is_overdue(self, instance: Instance) -> bool:
        """Tell whether an instance is past the end of its present stay."""
        return instance.leaves_at <= self._now

    def due(self, now: int) -> Iterator[Instance]:
        """Yield the instances that have become overdue; O(1) if none has.

        A clock that is set back changes nothing.
        """
        self._now = max(self._now, now)
        while self._ends and self._ends[0][0] <= self._now:
            end, uuid = heapq.heappop(self._ends)
            instance = self.instances.get(uuid)
            if (
                instance is not None
                and instance.leaves_at == end
                and uuid not in self._overdue
            ):
                self._overdue.add(uuid)
                yield instance

    def _keep(self, kind: str, key: str, entity: record.Entity | None) -> None:
        if kind == record.ALLOCATION:
            return
        # Replaced in place: a reader must not find an entity gone while the
        # entity only changes.
        old = self._by_kind[kind].get(key)
        if entity is not None:
            self._by_kind[kind][key] = entity
        else:
            self._by_kind[kind].pop(key, None)
        if kind == record.HOST:
            self._keep_host(key, cast(Host, entity))
        elif kind == record.INSTANCE:
            self._keep_instance(key, old, cast(Instance, entity))
        elif kind == record.RESERVATION:
            _move(self.whole, key, _project_of_whole(old),
                  _project_of_whole(cast(record.Reservation, entity)))
            _move(self.magnetic, key, _drawn_project(old),
                  _drawn_project(cast(record.Reservation, entity)))
            _move_all(self.labelled, key, _labels(old),
                      _labels(cast(record.Reservation, entity)))
            if entity is not None and cast(record.Reservation, entity).waits:
                self.waiting.add(key)
            else:
                self.waiting.discard(key)
            _move_all(self.leavable, key, _leavable_hosts(old),
                      _leavable_hosts(cast(record.Reservation, entity)))

    def _keep_host(self, uuid: str, new: Host | None) -> None:
        policy = None if new is None else new.unbounded
        for group, belongs in (
            (self.dedicated, new is not None and new.hold == host.DEDICATED),
            (self.with_policy, policy is not None),
            (self.with_relocation, policy == duration.RELOCATE),
            (self.closing, new is not None and bool(new.closed_windows)),
        ):
            if belongs:
                group.add(uuid)
            else:
                group.discard(uuid)

    def _keep_instance(
        self, uuid: str, old: Instance | None, new: Instance | None
    ) -> None:
        self._overdue.discard(uuid)
        for entity, sign in ((old, -1), (new, 1)):
            if entity is not None and entity.preemptible:
                self.preemptible_mb[entity.host] += (
                    sign * entity.amounts.get(inventory.MEMORY_MB, 0)
                )
        _move(
            self.bound, uuid, None if old is None else old.reservation_id,
            None if new is None else new.reservation_id,
        )
        _move(
            self.preemptible, uuid, _host_of_preemptible(old),
            _host_of_preemptible(new),
        )
        _move_all(self.arriving, uuid, _later_hosts(old), _later_hosts(new))
        _move_all(
            self.with_others, uuid, _hosts_of_others(old),
            _hosts_of_others(new),
        )
        if new is None:
            return
        if self.is_overdue(new):
            self._overdue.add(uuid)
        elif new.leaves_at != window.FOREVER:
            heapq.heappush(self._ends, (new.leaves_at, uuid))
            self._prune_ends()

    def _prune_ends(self) -> None:
        """Rebuild the heap of ends once most ends in it are out of date.

        O(1) for each end on average.
        """
        if len(self._ends) > 2 * len(self.instances) + MIN_ENDS:
            self._ends = [
                (instance.leaves_at, uuid)
                for uuid, instance in self.instances.items()
                if instance.leaves_at != window.FOREVER
                and uuid not in self._overdue
            ]
            heapq.heapify(self._ends)


def _move(
    groups: dict[K, set[str]], uuid: str, was: K | None, now: K | None
) -> None:
    """Move a uuid from one group to another; None stands for no group."""
    if now is not None:
        groups[now].add(uuid)
    if was is not None and was != now:
        groups[was].discard(uuid)
        if not groups[was]:
            del groups[was]


def _move_all(
    groups: dict[K, set[str]], uuid: str, was: set[K], now: set[K]
) -> None:
    """Move a uuid from some groups to others."""
    for group in now - was:
        _move(groups, uuid, None, group)
    for group in was - now:
        _move(groups, uuid, group, None)


def _host_of_preemptible(instance: Instance | None) -> str | None:
    if (
        instance is None or not instance.preemptible
        or instance.reservation_id is not None
    ):
        return None
    return instance.host


def _later_hosts(instance: Instance | None) -> set[str]:
    """Return the hosts on which an instance has relocation allocations."""
    if instance is None:
        return set()
    return {stay.host for stay in instance.relocations}


def _hosts_of_others(instance: Instance | None) -> set[str]:
    """Return the hosts of an instance with amounts of other classes."""
    if instance is None or not inventory.others(instance.amounts):
        return set()
    return {instance.host, *_later_hosts(instance)}


def _leavable_hosts(entity: record.Reservation | None) -> set[str]:
    return set() if entity is None else set(entity.leavable)


def _labels(entity: record.Reservation | None) -> set[tuple[str, str, str]]:
    """Return the labels of a reservation, each with the project."""
    if entity is None or not entity.labels:
        return set()
    return {(entity.project_id, *label) for label in entity.labels.items()}


def _project_of_whole(entity: record.Reservation | None) -> str | None:
    """Return the project of a reservation of whole hosts."""
    if entity is None or entity.resource_type != PHYSICAL_HOST:
        return None
    return entity.project_id


def _drawn_project(reservation: record.Reservation | None) -> str | None:
    """Return the project whose servers draw on a reservation without a hint.

    A server of another project draws on a reservation only by a hint, which
    is that project's consent.
    """
    if reservation is None or not reservation.magnetic:
        return None
    return reservation.project_id
