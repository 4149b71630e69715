# SPDX-License-Identifier: Apache-2.0
"""The catalog: which hosts a reservation may use, room or no room."""

import array
from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import operator

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain.host import Host
from blazar_sched.domain.requirements import Requirement
from blazar_sched.domain.reservation import FLAVOR_INSTANCE
from blazar_sched.domain.reservation import INSTANCE_LIFETIME
from blazar_sched.domain.reservation import PHYSICAL_HOST
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import VIRTUAL_INSTANCE

# So many requirements are remembered; each takes a few bytes a host.
MAX_REQUIREMENTS = 256

# The parameters that hold a requirement, by resource type.
_REQUIREMENTS = {
    PHYSICAL_HOST: (
        'hypervisor_properties',
        'resource_properties',
    ),
    VIRTUAL_INSTANCE: ('resource_properties',),
    FLAVOR_INSTANCE: ('resource_properties',),
    INSTANCE_LIFETIME: ('resource_properties',),
}
# The one of them that a default stands in for, as it was asked for.
_ASKED = {
    PHYSICAL_HOST: 'resource_properties',
    VIRTUAL_INSTANCE: 'resource_properties',
    FLAVOR_INSTANCE: 'asked_properties',
    INSTANCE_LIFETIME: 'resource_properties',
}
# Any host meets it.
ANY = requirements.all_of()


@dataclasses.dataclass(frozen=True, slots=True)
class Candidates:
    """Hosts to choose from, by uuid, and their rows in the index.

    A host that the index does not know has no row and is never chosen. Those
    in `closed` may keep what they have, and take nothing more. Those in `own`
    have a cleaning time of their own.
    """

    hosts: Mapping[str, Host]
    rows: 'array.array[int]'
    closed: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    # What `parts` has answered, by what it was asked.
    _parts: dict[int, 'list[tuple[int, Candidates]]'] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def known(self, names: Iterable[str]) -> list[str]:
        """Return the names that are candidates, once each."""
        return [name for name in dict.fromkeys(names) if name in self.hosts]

    def others(self, rows: 'array.array[int]') -> 'array.array[int]':
        """Return the rows but for some."""
        if not rows:
            return self.rows
        left_out = set(rows)
        return array.array('i', (r for r in self.rows if r not in left_out))

    def parts(
        self, index: ext.TimelineIndex, otherwise: int
    ) -> 'list[tuple[int, Candidates]]':
        """Return them by cleaning time in seconds, the shortest first.

        Each part is in the order of all. O(1) if none has a time of its own,
        or if it was asked for before.

        :param otherwise: of those that have none of their own
        """
        if not self.own:
            return [(otherwise, self)]
        if otherwise not in self._parts:
            parts: dict[int, dict[str, Host]] = defaultdict(dict)
            for uuid, host in self.hosts.items():
                parts[host.apart(otherwise)][uuid] = host
            self._parts[otherwise] = [
                (
                    seconds,
                    Candidates(hosts, rows(index, hosts), self.closed),
                )
                for seconds, hosts in sorted(
                    parts.items(), key=operator.itemgetter(0)
                )
            ]
        return self._parts[otherwise]


class Catalog:
    """The candidates of each requirement, remembered until `forget`.

    To look through every host costs a hundred times what placing does.

    :param hosts: every host by uuid; whoever changes it must `forget`
    """

    def __init__(
        self, index: ext.TimelineIndex, hosts: Mapping[str, Host]
    ) -> None:
        self._index = index
        self._hosts = hosts
        self._known: dict[
            tuple[Requirement, str | None], Candidates
        ] = {}
        # The hosts that meet a requirement, with the version of all hosts
        # that was looked at.
        self._met: dict[
            Requirement, tuple[int, frozenset[str]]
        ] = {}
        self._version = 0
        # The projects that hosts are restricted to, None if not looked at.
        self._restricted: set[str] | None = None
        # The hosts with a cleaning time of their own, the same.
        self._own: set[str] | None = None

    def forget(self) -> None:
        """Look at the hosts anew from now on."""
        # Before anything else: what is being matched is of the version before.
        self._version += 1
        self._known.clear()
        self._met.clear()
        self._restricted = None
        self._own = None

    def match(
        self,
        reservation: Reservation,
        default: Requirement = ANY,
    ) -> None:
        """Match a reservation's requirement ahead, because it takes long.

        Any thread may do so at any time: what it finds holds for as long as
        no host changes.

        :param default: as in `candidates`
        :raises InvalidInput: if the resource type or a requirement is wrong
        """
        wanted = requirements.all_of(
            requirement(reservation), _default(reservation, default)
        )
        self._meets(wanted, list(self._hosts.values()))

    def candidates(
        self,
        reservation: Reservation,
        project_id: str,
        default: Requirement = ANY,
        kept: Iterable[str] = (),
    ) -> Candidates:
        """Return the hosts that a reservation of the project may use.

        :param default: what those have to meet too that it does not hold
            now, if it asks for no `resource_properties`
        :param kept: the hosts that it holds now
        :raises InvalidInput: if the resource type or a requirement is wrong
        """
        return self.meeting(
            requirement(reservation), project_id, kept,
            _default(reservation, default),
        )

    def meeting(
        self,
        requirement: Requirement,
        project_id: str,
        kept: Iterable[str] = (),
        default: Requirement = ANY,
    ) -> Candidates:
        """Return the hosts that meet the requirement, for the project.

        Those that are available, open to it and meet the default too; and
        those of `kept`, which it holds now, as long as they are reservable.

        O(hosts) for a requirement that is not remembered.
        """
        wanted = requirements.all_of(requirement, default)
        key = wanted, self._restricted_to(project_id)
        found = self._known.get(key)
        if found is None:
            met = self._meets(wanted, self._hosts.values())
            found = self.among(
                uuid
                for uuid, host in self._hosts.items()
                if uuid in met
                and host.available
                and (not host.projects or project_id in host.projects)
            )
            if len(self._known) >= MAX_REQUIREMENTS:
                self._known.clear()
            self._known[key] = found
        closed = frozenset(
            uuid
            for uuid in kept
            if uuid not in found.hosts and self._may_keep(uuid, requirement)
        )
        if not closed:
            return found
        return dataclasses.replace(
            self.among([*found.hosts, *closed]), closed=closed
        )

    def _meets(
        self,
        wanted: Requirement,
        hosts: Collection[Host],
    ) -> frozenset[str]:
        """Return the hosts that meet a requirement, and remember them."""
        version = self._version
        known = self._met.get(wanted)
        if known is not None and known[0] == version:
            return known[1]
        met = frozenset(
            host.uuid for host in hosts if wanted.matches(host.properties())
        )
        if len(self._met) >= MAX_REQUIREMENTS:
            self._met.clear()
        self._met[wanted] = version, met
        return met

    def among(self, uuids: Iterable[str]) -> Candidates:
        """Return these hosts as candidates."""
        hosts = {uuid: self._hosts[uuid] for uuid in uuids}
        if self._own is None:
            self._own = {
                uuid
                for uuid, host in self._hosts.items()
                if host.cleaning_time is not None
            }
        own = frozenset(self._own & hosts.keys())
        return Candidates(hosts, rows(self._index, hosts), own=own)

    def _restricted_to(self, project_id: str) -> str | None:
        """Return the project if some host is restricted to it.

        To all other projects the same hosts are open.
        """
        if self._restricted is None:
            self._restricted = {
                project
                for host in self._hosts.values()
                for project in host.projects
            }
        return project_id if project_id in self._restricted else None

    def _may_keep(
        self, uuid: str, requirement: Requirement
    ) -> bool:
        host = self._hosts.get(uuid)
        return (
            host is not None
            and host.reservable
            and requirement.matches(host.properties())
        )


def requirement(
    reservation: Reservation,
) -> Requirement:
    """Return what a host must meet to be used by the reservation.

    :raises InvalidInput: if the resource type or a requirement is wrong
    """
    fields = _REQUIREMENTS.get(reservation.resource_type)
    if fields is None:
        raise exception.InvalidInput(
            f'resource_type {reservation.resource_type!r} is not supported',
            field='resource_type',
        )
    return requirements.all_of(
        *(
            requirements.parse(reservation.parameters.get(field), field)
            for field in fields
        )
    )


def rows(
    index: ext.TimelineIndex, names: Iterable[str]
) -> 'array.array[int]':
    """Return the rows of the hosts that the index knows."""
    return array.array('i', (r for r in index.rows(names) if r >= 0))


def check_size(
    reservations: Iterable[Reservation],
) -> None:
    """Refuse a lease whose requirements are too large together.

    :raises InvalidInput: naming `reservations`
    """
    requirements.check_together(
        (
            str(reservation.parameters.get(field) or '')
            for reservation in reservations
            for field in (
                'hypervisor_properties',
                _ASKED.get(reservation.resource_type, ''),
            )
        ),
        'reservations',
    )


def _default(
    reservation: Reservation, default: Requirement
) -> Requirement:
    """Return the default if it is for the reservation, else ANY."""
    if default == ANY or not _takes_default(reservation):
        return ANY
    return default


def _takes_default(reservation: Reservation) -> bool:
    """Tell whether it may have a default, and asks for nothing itself."""
    field = _ASKED.get(reservation.resource_type)
    if field is None:
        return False
    asked = requirements.parse(reservation.parameters.get(field), field)
    return asked == ANY
