# SPDX-License-Identifier: Apache-2.0
"""The base class of filters, and the data that filters decide on."""

from collections import Counter
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from fractions import Fraction
import functools
import itertools
from typing import Any

from oslo_config import cfg

from blazar_sched.conf import enforcement as enforcement_conf
from blazar_sched.domain import exception
from blazar_sched.domain.demand import Addresses
from blazar_sched.domain.floating_ip import FloatingIP
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.product import units
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.placing.lease_placing import Allocations
from blazar_sched.service.ledger import reader

# The resources of each reservation of a lease, by the reservation's id: a host
# for each whole host and for each slot, or floating IPs.
Resources = Mapping[str, Sequence[Host | FloatingIP]]

NO_LIMIT = -1
_DAY = 86400

# Returns the numbers of a lease of a project, by name.
Counted = Callable[['Project', Lease], Mapping[str, int]]
# Reads the amounts x seconds that a project has reserved between two times.
Reserved = Callable[[Any, str, int, int], Counter[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    """A limit, with what a project uses of it.

    :param name: the name of the option, or of a limit that is no option
    :param unit: what is counted, or the resource class
    :param limit: the largest number, NO_LIMIT for any
    :param used: the number as a commit counts it, None for a limit of each
        lease
    """

    name: str
    unit: str
    limit: int
    used: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseChange:
    """A lease to be written, new or changed.

    `lease` is the lease as it is to be.

    :param current: the lease as it is, None if the lease is new
    :param now: the time in epoch seconds
    :param placed: the allocations that the lease gets, none if the lease is
        not placed yet
    :param held: the allocations that the lease has
    :param asked_at: when the project has asked for the lease, by a lease
        request or a held offer, in epoch seconds; None for now
    :param lifted: whether the limits of approval filters are lifted
    :param granted: what the project may have already, by default `current`
    """

    lease: Lease
    current: Lease | None
    now: int
    placed: Allocations = dataclasses.field(default_factory=dict)
    held: Allocations = dataclasses.field(default_factory=dict)
    asked_at: int | None = None
    lifted: bool = False
    granted: Lease | None = None

    @property
    def project_id(self) -> str:
        return self.lease.project_id

    @property
    def is_unchanged(self) -> bool:
        """Return whether the window and the reservations stay the same."""
        return self.current is not None and (
            self.lease.window == self.current.window
            and self.lease.reservations == self.current.reservations
        )

    @property
    def is_within(self) -> bool:
        """Return whether the lease is to be no more than was granted."""
        granted = self.granted or self.current
        return granted is not None and self.lease.is_within(granted)


class Project:
    """The leases of a project that are not over, with their whole hosts.

    Held offers are leases, also while they wait for approval.
    They and the past are read from the ledger at most once, on the first use.

    :param source: the ledger or a commit
    :param now: the time in epoch seconds
    :ivar limits: the limits that Keystone has for the project, by the names of
        the options in whose place they apply
    :param leaving: the ids of leases that do not count
    :param reserved: reads what the project has reserved; see `past_seconds`
    """

    def __init__(
        self, source: reader.Reader, project_id: str,
        limits: Mapping[str, int] | None = None, now: int = 0,
        leaving: Collection[str] = (), reserved: Reserved | None = None,
    ) -> None:
        self._source = source
        self._now = now
        self._leaving = frozenset(leaving)
        self._reserved = reserved
        self.id = project_id
        self.limits = limits or {}
        # The leases that the commit has placed since, and their hosts.
        self._new: dict[str, Lease] = {}
        self._added: dict[str, Sequence[str]] = {}
        self._known_hosts: dict[str, Host] = {}
        self._amounts: dict[str, Counter[str]] = {}
        self._sums: dict[Counted, Counter[str]] = {}
        self._past: tuple[int, Counter[str]] | None = None

    def add(self, lease: Lease, placed: Allocations) -> None:
        """Count a lease that the commit is yet to write."""
        self._new[lease.id] = lease
        # The leases of the project are read once they are asked for only.
        if '_leases' in vars(self):
            self._leases[lease.id] = lease
        self._added[lease.id] = _whole(placed)
        for counted, sums in self._sums.items():
            sums.update(counted(self, lease))

    def others(self, lease: Lease | None = None) -> list[Lease]:
        """Return the leases of the project, but the given one if any."""
        return [
            each for each in self._leases.values()
            if lease is None or each.id != lease.id
        ]

    def sums(self, counted: Counted, but: Lease | None = None) -> Counter[str]:
        """Return sums over the leases of the project, but one if given.

        Each lease is counted once, however often the sums are asked for, as
        for each of many leases that are booked together.
        """
        known = self._sums.get(counted)
        if known is None:
            known = self._sums[counted] = Counter()
            for lease in self.others():
                known.update(counted(self, lease))
        found = known.copy()
        own = but and self._leases.get(but.id)
        if own:
            found.subtract(counted(self, own))
        return found

    def booked(self, product: str, lease: Lease) -> list[tuple[Window, int]]:
        """Return the units of a product in the window of a lease.

        The units of the other leases of all projects are returned.
        """
        booked = self._source.units(product, lease.window)
        booked += [
            (each.id, each.window, units(each)[product])
            for each in self._new.values()
            if each.start < lease.end and lease.start < each.end
        ]
        return [
            (window, count)
            for id_, window, count in booked
            if id_ != lease.id and id_ not in self._leaving
            and window.overlaps(lease.window)
        ]

    def past_seconds(self, days: int) -> tuple[int, Counter[str]]:
        """Return the amounts x seconds that were reserved, by class.

        :param days: the last days, up to now
        :returns: now, 0 for no days, and the seconds
        """
        if self._past is None:
            self._past = 0, Counter()
            if days and self._reserved is not None:
                first = max(0, self._now - days * _DAY)
                self._past = self._now, self._source.run(
                    self._reserved, self.id, first, self._now
                )
        return self._past

    def capacities(self) -> Mapping[str, tuple[int, int]]:
        """Return what all hosts have, see `ledger.host.capacities`."""
        return self._source.capacities()

    def most_at_once(self, lease: Lease) -> Counter[str]:
        """Return the most that the others reserve at once beside a lease."""
        there = [
            each for each in self.others(lease)
            if each.window.overlaps(lease.window)
        ]
        now, most = Counter[str](), Counter[str]()
        for _, sign, each in sorted(
            [(each.end, -1, each) for each in there]
            + [(each.start, 1, each) for each in there],
            key=lambda change: change[:2],
        ):
            for name, amount in self.amounts(each).items():
                now[name] += sign * amount
            most |= now
        return most

    def amounts(self, lease: Lease) -> Counter[str]:
        """Return what one of the project's leases reserves, as `amounts`."""
        known = self._amounts.get(lease.id)
        if known is None:
            known = amounts(lease, self.hosts(lease))
            self._amounts[lease.id] = known
        return known

    def hosts(self, lease: Lease) -> list[Host]:
        """Return the whole hosts of one of the project's leases."""
        if lease.id in self._added:
            return self._hosts(self._added[lease.id])
        return self._hosts(self._whole_hosts.get(lease.id, ()))

    def hosts_of(self, placed: Allocations) -> list[Host]:
        """Return the hosts that the allocations of a lease take whole."""
        return self._hosts(_whole(placed))

    @functools.cached_property
    def _leases(self) -> dict[str, Lease]:
        return {
            lease.id: lease for lease in self._source.open_leases(self.id)
            if lease.id not in self._leaving
        } | self._new

    @functools.cached_property
    def _whole_hosts(self) -> dict[str, list[str]]:
        found = defaultdict(list)
        for lease_id, host in self._source.whole_hosts(self.id):
            found[lease_id].append(host)
        # All at once, rather than the hosts of each lease.
        self._hosts([host for hosts in found.values() for host in hosts])
        return found

    def _hosts(self, uuids: Sequence[str]) -> list[Host]:
        known = self._known_hosts
        unknown = set(uuids) - known.keys()
        if unknown:
            known |= {h.uuid: h for h in self._source.hosts(unknown)}
        # Outside a commit, a host may have been removed meanwhile.
        return [known[uuid] for uuid in uuids if uuid in known]


class Filter:
    """The base class of filters, which refuses nothing.

    :param conf: the configuration of the service
    """

    # Whether the filter implements `check_external` or `on_commit`, and
    # `on_end`.
    is_external = False
    handles_end = False
    # The beginning of the name of the option with the projects that the
    # filter never refuses.
    exempt = ''

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf[enforcement_conf.GROUP]

    def check(self, request: LeaseChange, project: Project) -> None:
        """Refuse a lease, in the commit that would write the lease.

        What `project` has is exact: no other lease is written in between. The
        lease itself may be among the leases of `project` by then, or not yet.
        No other service may be called here, because all other commits wait.

        :raises BlazarSchedError: if the lease is refused
        """

    def limits(self, project: Project) -> Iterable[Limit]:
        """Return the limits by which `check` refuses leases of a project.

        A filter without figures has none. Projects that are exempt are not
        considered.
        """
        return ()

    def first_start(self, project: Project, now: int) -> int:
        """Return the first start that `check` allows, asked for now.

        A lease request waits for no earlier start.
        """
        return now

    def passes(self, request: LeaseChange) -> bool:
        """Return whether no limit applies to a lease.

        So a lease that was admitted before a limit was lowered, or that was
        approved, can be made smaller.
        """
        return request.is_within or self.exempts(request.project_id)

    def exempts(self, project_id: str) -> bool:
        """Return whether the filter never refuses leases of a project."""
        return bool(self.exempt) and project_id in getattr(
            self._conf, f'{self.exempt}_exempt_project_ids'
        )

    def _most(self, project: Project, name: str) -> int:
        """Return the limit of an option for a project."""
        most: int = project.limits.get(name, getattr(self._conf, name))
        return most

    def _limit(
        self, project: Project, name: str, unit: str, used: float | None = None
    ) -> Limit:
        """Return the limit of an option, with what the project uses."""
        return Limit(name, unit, self._most(project, name), used)

    def check_external(
        self, request: LeaseChange, held: Resources, current: Resources
    ) -> None:
        """Refuse a lease, ahead of that commit; this may take some time.

        :param held: the resources of the lease if the lease is placed now; the
            real placement later may be different
        :param current: the resources that the lease has
        :raises BlazarSchedError: if the lease is refused
        """

    def on_commit(
        self, request: LeaseChange, held: Resources, current: Resources
    ) -> None:
        """Note that a lease was written; an exception is logged.

        :param held: the resources that the lease has got
        :param current: the resources that the lease had
        """

    def on_end(self, lease: Lease, held: Resources) -> None:
        """Note that a lease is over; an exception raised here is logged."""


def resources_of(source: reader.Reader, lease: Lease) -> Resources:
    """Return the resources of a lease, read from the ledger or a commit."""
    allocations = [a for a, _ in source.allocations(lease_id=lease.id)]
    hosts = {h.uuid: h for h in source.hosts({a.host for a in allocations})}
    return {
        r.id: source.floating_ips(r.id)
        if isinstance(r.demand, Addresses)
        else [
            hosts[a.host]
            for a in allocations
            if a.reservation_id == r.id
            for _ in range(r.demand.slots_in(a.amounts))
        ]
        for r in lease.reservations
    }


def amounts(lease: Lease, hosts: Iterable[Host]) -> Counter[str]:
    """Return what a lease reserves, by resource class.

    Instances count with the slots that the lease asks for. A whole host counts
    with all of its inventory.

    :param hosts: the whole hosts that the lease has
    """
    found: Counter[str] = Counter()
    if not lease.is_limited:
        return found
    for reservation in lease.reservations:
        for name, amount in reservation.demand.slot.items():
            found[name] += amount * reservation.demand.most
    for host in hosts:
        for name in host.inventory:
            found[name] += host.capacity(name)
    return found


def _whole(placed: Allocations) -> list[str]:
    """Return the UUIDs of the hosts that allocations take whole."""
    return [a.host for a in itertools.chain(*placed.values()) if a.whole]


def endless(lease: Lease, what: str) -> str:
    """Return a refusal of an end, which also tells that there is none."""
    return f'the lease has no end: {what}' if lease.end == FOREVER else what


def limit(
    refusal: type[exception.LimitExceeded], most: int, value: int | Fraction,
    what: str, field: str, beside: int | Fraction = 0,
) -> None:
    """Refuse a value beyond the limit.

    :param what: the error message, in which ``{most}`` is the limit
    :param beside: the value without the lease: a lease that adds nothing is
        not refused because the other leases are beyond the limit
    :raises LimitExceeded: as the subclass `refusal`
    """
    if most != NO_LIMIT and value > max(most, beside):
        raise refusal(what.format(most=most), field=field)
