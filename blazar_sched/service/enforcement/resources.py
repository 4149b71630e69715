# SPDX-License-Identifier: Apache-2.0
"""Limits on the amounts of resource classes of a lease, and of a project."""

from collections import Counter
from collections.abc import Mapping
import dataclasses
from fractions import Fraction

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.service.enforcement import base

_FIELD = 'reservations'
_HOUR = 3600
# The seconds for which a lease that is let in is compared with known hosts.
_HOSTS_KEPT = 60
# What is counted, where a limit is not of a resource class.
_WEIGHT, _WEIGHT_HOURS = 'weight', 'weight x hours'


@dataclasses.dataclass(frozen=True, slots=True)
class _Size:
    """The amounts of some leases, and the amounts times seconds.

    :param since: from when on the seconds of further leases count
    """

    since: int = 0
    amounts: Counter[str] = dataclasses.field(default_factory=Counter)
    seconds: Counter[str] = dataclasses.field(default_factory=Counter)

    def plus(self, lease: Lease, amounts: Mapping[str, int]) -> '_Size':
        """Return the size with one lease more."""
        more = _Size(self.since, self.amounts.copy(), self.seconds.copy())
        more.amounts.update(amounts)
        more.seconds.update(_seconds(lease, amounts, self.since))
        return more


def _share(percent: int, capacity: int, largest: int) -> int:
    """Return the share of all hosts, which is at least one host."""
    return max(percent * capacity // 100, largest)


def _amounts(project: base.Project, lease: Lease) -> Counter[str]:
    return project.amounts(lease)


def _seconds(
    lease: Lease, amounts: Mapping[str, int], since: int
) -> dict[str, int]:
    """Return the amounts of a lease times its seconds from a time on."""
    seconds = max(0, lease.end - max(lease.start, since))
    return {name: amount * seconds for name, amount in amounts.items()}


class MaxResourcesFilter(base.Filter):
    """A filter that limits the amounts of resource classes, and their weight.

    The limits apply to each lease and to all leases of a project, or to those
    at one time.
    """

    exempt = 'max_resources'

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        # When the hosts were read, in epoch seconds, and what they have.
        self._hosts: tuple[int, Mapping[str, tuple[int, int]]] = 0, {}

    def limits(self, project: base.Project) -> list[base.Limit]:
        used = self._used(project)
        weight = float(self._weight(used.amounts))
        hours = float(self._weight(used.seconds) / _HOUR)
        return [
            *self._by_class(project, 'max_resources_per_lease', None),
            *self._by_class(
                project, 'max_resources_per_project', used.amounts
            ),
            self._limit(project, 'max_percent_per_project', 'percent'),
            self._limit(project, 'max_weight_per_lease', _WEIGHT),
            self._limit(project, 'max_weight_per_project', _WEIGHT, weight),
            self._limit(
                project, 'max_weight_hours_per_project', _WEIGHT_HOURS, hours
            ),
        ]

    def _by_class(
        self, project: base.Project, name: str, used: Counter[str] | None
    ) -> list[base.Limit]:
        return [
            base.Limit(name, unit, most, None if used is None else used[unit])
            for unit, most in self._resources(project, name).items()
        ]

    def _resources(self, project: base.Project, name: str) -> dict[str, int]:
        """Return the limits of an option for a project, by resource class.

        Keystone has one limit for each class, as in
        ``max_resources_per_lease:VCPU``.
        """
        found: dict[str, int] = dict(getattr(self._conf, name))
        prefix = f'{name}:'
        for each, most in project.limits.items():
            if each.startswith(prefix):
                found[each.removeprefix(prefix)] = most
        return found

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a lease that asks for too much.

        :raises MaxResources: if the lease asks for too much of a class
        :raises MaxWeight: if the lease asks for too much weight
        :raises MaxWeightHours: if the lease asks for too much weight x hours
        """
        if self.exempts(request.project_id):
            return
        lease, current = request.lease, request.current
        new = base.amounts(lease, project.hosts_of(request.placed))
        # Fewer hosts may be larger ones.
        if current is not None and request.is_within and new <= base.amounts(
            current, project.hosts_of(request.held)
        ):
            return
        nothing = _Size()
        self._check(
            nothing.plus(lease, new), nothing,
            self._resources(project, 'max_resources_per_lease'),
            self._most(project, 'max_weight_per_lease'), base.NO_LIMIT,
            'a lease',
        )
        self._check_percent(request, project, new)
        limits = (
            self._resources(project, 'max_resources_per_project'),
            self._most(project, 'max_weight_per_project'),
            self._most(project, 'max_weight_hours_per_project'),
        )
        if limits == ({}, base.NO_LIMIT, base.NO_LIMIT):
            return
        used = self._used(project, lease)
        self._check(
            used.plus(lease, new), used, *limits, 'the leases of a project'
        )

    def _check_percent(
        self, request: base.LeaseChange, project: base.Project,
        new: Counter[str],
    ) -> None:
        """Refuse a lease with which a project has too much at a time.

        The hosts are read for a refusal, and now and then: they are many.
        """
        percent = self._most(project, 'max_percent_per_project')
        if percent == base.NO_LIMIT or not request.lease.is_limited:
            return
        beside = project.most_at_once(request.lease)
        at, hosts = self._hosts
        if not 0 <= request.now - at < _HOSTS_KEPT or any(
            new[name] + beside[name] > _share(percent, *hosts[name])
            for name in hosts
        ):
            hosts = project.capacities()
            self._hosts = request.now, hosts
        for name, held in hosts.items():
            base.limit(
                exception.MaxResources, _share(percent, *held),
                new[name] + beside[name],
                f'the leases of a project may reserve at most {{most}} of '
                f'{name} at a time, {percent} % of all hosts',
                _FIELD, beside[name],
            )

    def _used(self, project: base.Project, but: Lease | None = None) -> _Size:
        """Return the size of the leases of a project, but one if given.

        What follows the last measurement counts as booked.
        """
        since, past = self._past(project)
        return _Size(
            since, project.sums(_amounts, but),
            project.sums(self._seconds, but) + past,
        )

    def _seconds(self, project: base.Project, lease: Lease) -> dict[str, int]:
        since, _ = self._past(project)
        return _seconds(lease, project.amounts(lease), since)

    def _past(self, project: base.Project) -> tuple[int, Counter[str]]:
        return project.past_seconds(self._conf.max_weight_hours_days)

    def _check(
        self, new: _Size, beside: _Size, resources: Mapping[str, int],
        weight: int, weight_hours: int, whose: str,
    ) -> None:
        """Refuse a size beyond the limits.

        :param beside: the size without the lease
        :param resources: the limits by resource class
        """
        for name, most in resources.items():
            base.limit(
                exception.MaxResources, most, new.amounts[name],
                f'{whose} may reserve at most {{most}} of {name}', _FIELD,
                beside.amounts[name],
            )
        base.limit(
            exception.MaxWeight, weight, self._weight(new.amounts),
            f'{whose} may have a weight of at most {{most}}', _FIELD,
            self._weight(beside.amounts),
        )
        base.limit(
            exception.MaxWeightHours, weight_hours,
            self._weight(new.seconds) / _HOUR,
            f'{whose} may have at most {{most}} weight x hours', _FIELD,
            self._weight(beside.seconds) / _HOUR,
        )

    def _weight(self, amounts: Mapping[str, int]) -> Fraction:
        """Return an exact sum, unlike one of floating-point numbers."""
        return sum(
            (
                Fraction(str(each)) * amounts[name]
                for name, each in self._conf.resource_weights.items()
            ),
            Fraction(0),
        )
