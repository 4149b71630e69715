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
# The number of choices of hosts that are remembered of each requirement: those
# of one lease, whose reservations ask for the same hosts.
MAX_CHOICES = 4


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
    # The candidates among some of these hosts, by the uuids of the hosts.
    choices: 'dict[tuple[str, ...], Candidates]' = dataclasses.field(
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
        left_out = [uuid for uuid in self.known(most) if not most[uuid]]
        for uuid in left_out:
            del hosts[uuid]
        return Candidates(
            hosts, self.others(rows(index, left_out)),
            self.closed & hosts.keys(), self.own & hosts.keys(),
            {
                uuid: min(count, self.most.get(uuid, count))
                for uuid, count in {**self.most, **most}.items()
                if uuid in hosts
            },
        )

    def with_first(
        self, index: ext.TimelineIndex, first: Iterable[str]
    ) -> 'list[Candidates]':
        """Return the candidates in up to two parts, some hosts first."""
        names = self.known(first)
        if not names:
            return [self]
        mine = rows(index, names)
        hosts = dict(self.hosts)
        return [
            Candidates(
                {uuid: hosts.pop(uuid) for uuid in names}, mine, self.closed
            ),
            Candidates(hosts, self.others(mine), self.closed),
        ]

    def others(self, rows: 'array.array[int]') -> 'array.array[int]':
        """Return the rows of the candidates, except for the given rows."""
        if not rows:
            return self.rows
        left_out = set(rows)
        return array.array('i', [r for r in self.rows if r not in left_out])

    def parts(
        self, index: ext.TimelineIndex, otherwise: int,
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
        # What is found is kept with the version of all hosts for which it was
        # found: see `candidates`.
        self._known: dict[
            tuple[Requirement, RequestGroups, str | None, bool],
            tuple[int, Candidates],
        ] = {}
        # The hosts that meet a requirement.
        self._met: dict[
            tuple[Requirement, RequestGroups], tuple[int, frozenset[str]]
        ] = {}
        self._version = 0
        # The hosts to which instances may be relocated, by likeness, resource
        # classes and limited amounts.
        self._targets: dict[
            tuple[str, str, str, frozenset[str], tuple[tuple[str, int], ...]],
            tuple[int, Candidates],
        ] = {}
        # Inventories with the different limits of one request.
        self._limits: tuple[int, dict[str, list[Inventory]]] | None = None
        # The projects that hosts are restricted to, and the hosts that may be
        # in `own`.
        self._special: tuple[int, set[str], set[str]] | None = None

    def forget(self) -> None:
        """Forget what is remembered, so that all hosts are matched anew."""
        # The version changes first: a match that is under way is of the
        # version before.
        self._version += 1
        self._known.clear()
        self._met.clear()
        self._targets.clear()

    def candidates(
        self, reservation: Reservation, project_id: str,
        default: Requirement = ANY, kept: Iterable[str] = (),
        spares: bool = False, started: bool = False,
        only: tuple[str, ...] | None = None,
    ) -> Candidates:
        """Return the hosts that a reservation of the project may use.

        Any thread may ask for all of them ahead, because that takes long: they
        are remembered as long as no host changes.

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
            demand.requirement(), project_id, kept, demand.default_of(default),
            demand.request_groups(), spares, started, only,
        )

    def meeting(
        self, requirement: Requirement, project_id: str,
        kept: Iterable[str] = (), default: Requirement = ANY,
        groups: RequestGroups = NO_GROUPS, spares: bool = False,
        started: bool = False, only: tuple[str, ...] | None = None,
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
        version = self._version
        known = self._known.get(key)
        if known is None or known[0] != version:
            hosts = dict(self._hosts)
            met = self._meets(wanted, limiting, hosts.values())
            known = version, self._of({
                uuid: host for uuid, host in hosts.items()
                if uuid in met
                and (host.available if spares else host.takes_leases)
                and (not host.projects or project_id in host.projects)
            })
            if len(self._known) >= MAX_REQUIREMENTS:
                self._known.clear()
            self._known[key] = known
        found = known[1]
        closed = frozenset(
            uuid
            for uuid in kept
            if uuid not in found.hosts
            and self._may_keep(uuid, requirement, groups, started)
        )
        if only is not None:
            found = self._chosen(found, only)
        if not closed:
            return found
        return dataclasses.replace(
            self.among([*found.hosts, *closed]), closed=closed
        )

    def _chosen(
        self, candidates: Candidates, only: tuple[str, ...]
    ) -> Candidates:
        choices = candidates.choices
        if only not in choices:
            if len(choices) >= MAX_CHOICES:
                choices.clear()
            choices[only] = self.among(candidates.known(only))
        return choices[only]

    def visible(
        self, requirement: Requirement, project_id: str | None,
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

        O(hosts) if nothing is remembered. Any thread may ask.

        :param amounts: what the instance takes, by resource class: of the
            classes beside RESOURCE_CLASSES, those that the host has must be
            in the inventory of the other hosts
        """
        needed = frozenset(inventory.others(amounts)).intersection(
            host.inventory
        )
        limited = self._limited(amounts)
        key = *host.likeness, needed, limited
        version = self._version
        known = self._targets.get(key)
        if known is None or known[0] != version:
            known = self._targets[key] = version, self._of({
                uuid: each for uuid, each in dict(self._hosts).items()
                if each.takes_relocated and each.likeness == host.likeness
                and needed.issubset(each.inventory)
                and all(each.allows(*amount) for amount in limited)
            })
        return known[1]

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
        self, wanted: Requirement, groups: RequestGroups,
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
        return self._of({uuid: self._hosts[uuid] for uuid in uuids})

    def _of(self, hosts: Mapping[str, Host]) -> Candidates:
        own = frozenset(self._specials()[1] & hosts.keys())
        return Candidates(hosts, rows(self._index, hosts), own=own)

    def _restricted_to(self, project_id: str) -> str | None:
        """Return the project if a host is restricted to it, else None.

        The same hosts are open to all other projects.
        """
        return project_id if project_id in self._specials()[0] else None

    def _specials(self) -> tuple[set[str], set[str]]:
        """Return the projects with hosts, and the hosts that may be `own`."""
        version = self._version
        found = self._special
        if found is None or found[0] != version:
            hosts = list(self._hosts.values())
            found = self._special = (
                version,
                {project for host in hosts for project in host.projects},
                {
                    host.uuid for host in hosts
                    if host.cleaning_time is not None
                    or inventory.others(host.inventory)
                },
            )
        return found[1:]

    def _may_keep(
        self, uuid: str, requirement: Requirement, groups: RequestGroups,
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


def rows(index: ext.TimelineIndex, names: Iterable[str]) -> 'array.array[int]':
    """Return the rows of the hosts that the index knows."""
    return array.array('i', [r for r in index.rows(names) if r >= 0])
