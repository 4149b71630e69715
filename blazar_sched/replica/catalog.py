# SPDX-License-Identifier: Apache-2.0
"""The catalog: which hosts a reservation may use, whether free or not."""

import array
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import operator

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain import requirements
from blazar_sched.domain.demand import suits
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.inventory import RESOURCE_CLASSES
from blazar_sched.domain.request_group import NO_GROUPS
from blazar_sched.domain.request_group import RequestGroups
from blazar_sched.domain.requirements import ANY
from blazar_sched.domain.requirements import Requirement
from blazar_sched.domain.reservation import Reservation

Classes = frozenset[str]
# The number of requirements that are remembered; each one takes a few bytes
# per host.
MAX_REQUIREMENTS = 256


@dataclasses.dataclass(frozen=True, slots=True)
class Candidates:
    """Hosts to choose from, by uuid, and their rows in the index.

    A host that the index does not know has no row and is never chosen. The
    hosts in `closed` may keep what they have, and take nothing more. The hosts
    in `own` have a cleaning time of their own, or other resource classes than
    RESOURCE_CLASSES. The hosts in `most` take so many instances at most.
    """

    hosts: Mapping[str, Host]
    rows: 'array.array[int]'
    closed: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    most: Mapping[str, int] = dataclasses.field(default_factory=dict)
    # The answers of `remembered`, by its key.
    _remembered: dict[Hashable, str | None] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    # The answers of `parts`, by its arguments.
    _parts: 'dict[tuple[int, Classes | None], Parts]' = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def remembered(
        self, key: Hashable, ask: Callable[[], str | None]
    ) -> str | None:
        """Return the answer about the hosts that `ask` gave under a key."""
        if key not in self._remembered:
            if len(self._remembered) >= MAX_REQUIREMENTS:
                self._remembered.clear()
            self._remembered[key] = ask()
        return self._remembered[key]

    def known(self, names: Iterable[str]) -> list[str]:
        """Return the names that are candidates, without duplicates."""
        return [name for name in dict.fromkeys(names) if name in self.hosts]

    def limited(
        self, index: ext.TimelineIndex, most: Mapping[str, int]
    ) -> 'Candidates':
        """Return candidates that take at most so many instances.

        :param most: the numbers of some hosts, 0 for a host to leave out
        """
        hosts = dict(self.hosts)
        left_out = [
            uuid for uuid in self.known(most) if not most[uuid]
        ]
        for uuid in left_out:
            del hosts[uuid]
        return Candidates(
            hosts, self.others(rows(index, left_out)),
            self.closed & hosts.keys(),
            self.own & hosts.keys(),
            {
                uuid: min(count, self.most.get(uuid, count))
                for uuid, count in {**self.most, **most}.items()
                if uuid in hosts
            },
        )

    def others(self, rows: 'array.array[int]') -> 'array.array[int]':
        """Return the rows of the candidates, except for the given rows."""
        if not rows:
            return self.rows
        left_out = set(rows)
        return array.array('i', (r for r in self.rows if r not in left_out))

    def parts(
        self,
        index: ext.TimelineIndex,
        otherwise: int,
        asked: Classes | None = None,
    ) -> 'Parts':
        """Return the candidates by cleaning time in seconds, shortest first.

        With `asked`, the hosts with the fewest units of other resource classes
        come first: a reservation leaves GPUs to those that ask for GPUs.

        Each part keeps the order of all candidates. O(1) if no host is in
        `own`, or if the parts were asked for before.

        :param otherwise: seconds for hosts that have no cleaning time of
            their own
        :param asked: the resource classes that the reservation asks for
        """
        if not self.own:
            return [(otherwise, self)]
        key = otherwise, asked
        if key not in self._parts:
            parts: dict[tuple[int, int], dict[str, Host]] = defaultdict(dict)
            for uuid, host in self.hosts.items():
                unasked = 0 if asked is None else _unasked(host, asked)
                seconds = host.cleaning_seconds(otherwise)
                parts[unasked, seconds][uuid] = host
            self._parts[key] = [
                (
                    seconds,
                    Candidates(hosts, rows(index, hosts), self.closed),
                )
                for (_, seconds), hosts in sorted(
                    parts.items(), key=operator.itemgetter(0)
                )
            ]
        return self._parts[key]


# Candidates by cleaning time in seconds.
Parts = list[tuple[int, Candidates]]


class Catalog:
    """The candidates of each requirement, remembered until `forget`.

    A look through every host costs a hundred times as much as placing does.

    :param hosts: every host by uuid; the caller that changes a host must call
        `forget`
    """

    def __init__(
        self, index: ext.TimelineIndex, hosts: Mapping[str, Host]
    ) -> None:
        self._index = index
        self._hosts = hosts
        self._known: dict[
            tuple[Requirement, RequestGroups, str | None, bool], Candidates
        ] = {}
        # The hosts that meet a requirement, with the version of all hosts
        # for which that was found.
        self._met: dict[
            tuple[Requirement, RequestGroups], tuple[int, frozenset[str]]
        ] = {}
        self._version = 0
        # The hosts to which instances may be relocated, by likeness, resource
        # classes and limited amounts.
        self._targets: dict[
            tuple[str, str, str, frozenset[str], tuple[tuple[str, int], ...]],
            Candidates,
        ] = {}
        # Inventories with the different limits of one request, with the
        # version of all hosts.
        self._limits: tuple[int, dict[str, list[Inventory]]] | None = None
        # The projects that hosts are restricted to, None if not known yet.
        self._restricted: set[str] | None = None
        # The hosts that may be in `own`, None if not known yet.
        self._own: set[str] | None = None

    def forget(self) -> None:
        """Forget what is remembered, so that all hosts are matched anew."""
        # The version changes first: a match that is under way is of the
        # version before.
        self._version += 1
        self._known.clear()
        self._met.clear()
        self._targets.clear()
        self._restricted = None
        self._own = None

    def match(
        self,
        reservation: Reservation,
        default: Requirement = ANY,
    ) -> None:
        """Match a reservation's requirement ahead, because it takes long.

        Any thread may do so at any time: the result is valid as long as no
        host changes.

        :param default: as in `candidates`
        :raises InvalidInput: if a requirement is wrong
        """
        demand = reservation.demand
        wanted = requirements.all_of(
            demand.requirement(), demand.default_of(default)
        )
        self._meets(
            wanted, self._limiting(demand.request_groups()),
            list(self._hosts.values()),
        )

    def candidates(
        self,
        reservation: Reservation,
        project_id: str,
        default: Requirement = ANY,
        kept: Iterable[str] = (),
        spares: bool = False,
        started: bool = False,
        only: Collection[str] | None = None,
    ) -> Candidates:
        """Return the hosts that a reservation of the project may use.

        :param default: the requirement that hosts not held now have to meet
            too, if the reservation asks for no `resource_properties`
        :param kept: the hosts that the reservation holds now
        :param spares: whether the reservation may use spare hosts
        :param started: whether the reservation has started, and therefore
            keeps its hosts whatever they have become
        :param only: the hosts to choose from, None for all hosts
        :raises InvalidInput: if a requirement is wrong
        """
        demand = reservation.demand
        return self.meeting(
            demand.requirement(), project_id, kept,
            demand.default_of(default), demand.request_groups(), spares,
            started, only,
        )

    def meeting(
        self,
        requirement: Requirement,
        project_id: str,
        kept: Iterable[str] = (),
        default: Requirement = ANY,
        groups: RequestGroups = NO_GROUPS,
        spares: bool = False,
        started: bool = False,
        only: Collection[str] | None = None,
    ) -> Candidates:
        """Return the hosts that meet a requirement, for a project.

        These are the hosts that are available, are open to the project and
        meet the default too; and the hosts in `kept`, which the reservation
        holds now, as long as they are reservable.

        O(hosts) for a requirement that is not remembered.

        :param groups: the request groups that the hosts have to suit
        :param spares: whether the hosts may be spare
        :param started: whether the hosts in `kept` need not meet the
            requirement
        :param only: the hosts to choose from, None for all hosts
        """
        wanted = requirements.all_of(requirement, default)
        limiting = self._limiting(groups)
        key = wanted, limiting, self._restricted_to(project_id), spares
        found = self._known.get(key)
        if found is None:
            met = self._meets(wanted, limiting, self._hosts.values())
            found = self.among(
                uuid
                for uuid, host in self._hosts.items()
                if uuid in met
                and (host.available if spares else host.takes_leases)
                and (not host.projects or project_id in host.projects)
            )
            if len(self._known) >= MAX_REQUIREMENTS:
                self._known.clear()
            self._known[key] = found
        closed = frozenset(
            uuid
            for uuid in kept
            if uuid not in found.hosts
            and self._may_keep(uuid, requirement, groups, started)
        )
        if not closed and only is None:
            return found
        open_ = found.hosts if only is None else found.known(only)
        return dataclasses.replace(
            self.among([*open_, *closed]), closed=closed
        )

    def visible(
        self,
        requirement: Requirement,
        project_id: str | None,
        groups: RequestGroups = NO_GROUPS,
    ) -> list[Host]:
        """Return the hosts that meet a requirement, in service or not.

        O(hosts).

        :param project_id: the project that the hosts are open to, None for
            all hosts
        :param groups: the request groups that the hosts have to suit
        """
        met = self._meets(
            requirement, self._limiting(groups), self._hosts.values()
        )
        return [
            host
            for uuid, host in self._hosts.items()
            if uuid in met
            and (
                project_id is None
                or not host.projects
                or project_id in host.projects
            )
        ]

    def relocation_targets(
        self, host: Host, amounts: Mapping[str, int]
    ) -> Candidates:
        """Return the hosts to which an instance of a host may be relocated.

        O(hosts) if nothing is remembered.

        :param amounts: what the instance takes, by resource class: of the
            classes beside RESOURCE_CLASSES, those that the host has must be
            in the inventory of the other hosts
        """
        needed = frozenset(inventory.others(amounts)).intersection(
            host.inventory
        )
        limited = self._limited(amounts)
        key = *host.likeness, needed, limited
        found = self._targets.get(key)
        if found is None:
            found = self._targets[key] = self.among(
                uuid for uuid, each in self._hosts.items()
                if each.takes_relocated and each.likeness == host.likeness
                and needed.issubset(each.inventory)
                and all(each.allows(*amount) for amount in limited)
            )
        return found

    def _limited(
        self, amounts: Mapping[str, int]
    ) -> tuple[tuple[str, int], ...]:
        """Return the amounts of RESOURCE_CLASSES that not all hosts allow."""
        version = self._version
        if self._limits is None or self._limits[0] != version:
            self._limits = version, _limits(list(self._hosts.values()))
        return tuple(
            (name, amount)
            for name, limits in self._limits[1].items()
            if (amount := amounts.get(name, 0))
            and not all(held.allows(amount) for held in limits)
        )

    def _limiting(self, groups: RequestGroups) -> RequestGroups:
        """Return request groups, or NO_GROUPS if all hosts suit them.

        Nearly all hosts suit nearly all flavors without devices, so that the
        hosts of few requirements and groups have to be remembered.
        """
        amounts = groups.amounts()
        if inventory.others(amounts) or self._limited(amounts):
            return groups
        return NO_GROUPS

    def _meets(
        self,
        wanted: Requirement,
        groups: RequestGroups,
        hosts: Collection[Host],
    ) -> frozenset[str]:
        """Return the hosts that meet a requirement, and remember them.

        :param groups: as `_limiting` returns
        """
        version = self._version
        known = self._met.get((wanted, groups))
        if known is not None and known[0] == version:
            return known[1]
        met = frozenset(
            host.uuid for host in hosts
            if suits(host, wanted, groups)
        )
        if len(self._met) >= MAX_REQUIREMENTS:
            self._met.clear()
        self._met[wanted, groups] = version, met
        return met

    def among(self, uuids: Iterable[str]) -> Candidates:
        """Return the hosts with the given uuids as candidates."""
        hosts = {uuid: self._hosts[uuid] for uuid in uuids}
        if self._own is None:
            self._own = {
                uuid
                for uuid, host in self._hosts.items()
                if host.cleaning_time is not None
                or inventory.others(host.inventory)
            }
        own = frozenset(self._own & hosts.keys())
        return Candidates(hosts, rows(self._index, hosts), own=own)

    def _restricted_to(self, project_id: str) -> str | None:
        """Return the project if a host is restricted to it, else None.

        The same hosts are open to all other projects.
        """
        if self._restricted is None:
            self._restricted = {
                project
                for host in self._hosts.values()
                for project in host.projects
            }
        return project_id if project_id in self._restricted else None

    def _may_keep(
        self,
        uuid: str,
        requirement: Requirement,
        groups: RequestGroups,
        started: bool,
    ) -> bool:
        host = self._hosts.get(uuid)
        return (
            host is not None
            and host.reservable
            and (started or suits(host, requirement, groups))
        )


def _unasked(host: Host, asked: Classes) -> int:
    """Return how many units a host has of classes that are not asked for."""
    return sum(
        host.capacity(name) for name in inventory.others(host.inventory)
        if name not in asked
    )


def _limits(hosts: Iterable[Host]) -> dict[str, list[Inventory]]:
    """Return inventories with the different limits of one request.

    Hosts of one kind have equal limits.

    :returns: by the RESOURCE_CLASSES
    """
    found: dict[str, dict[tuple[int, int | None, int], Inventory]] = (
        defaultdict(dict)
    )
    for host in hosts:
        for name in RESOURCE_CLASSES:
            held = host.inventory.get(name)
            if held is not None:
                limits = held.min_unit, held.max_unit, held.step_size
                found[name].setdefault(limits, held)
    return {name: list(held.values()) for name, held in found.items()}


def rows(
    index: ext.TimelineIndex, names: Iterable[str]
) -> 'array.array[int]':
    """Return the rows of the hosts that the index knows."""
    return array.array('i', (r for r in index.rows(names) if r >= 0))
