# SPDX-License-Identifier: Apache-2.0
"""Limits on the amounts of resource classes of a lease, and of a project."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from fractions import Fraction
import functools
from typing import Any

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.parts.limit.exception import MaxWeight
from blazar_sched.parts.limit.exception import MaxWeightHours
from blazar_sched.service import parts
from blazar_sched.service.enforcement import base
from blazar_sched.service.enforcement.base import Project
from blazar_sched.service.enforcement.resources import FIELD
from blazar_sched.service.enforcement.resources import MaxResourcesFilter

_DAY, _HOUR = 86400, 3600
# What is counted, where a limit is not of a resource class.
_WEIGHT, _WEIGHT_HOURS = 'weight', 'weight x hours'

# Reads the amounts x seconds that a project has reserved between two times.
Reserved = Callable[[Any, str, int, int], Counter[str]]


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


def _seconds(
    lease: Lease, amounts: Mapping[str, int], since: int
) -> dict[str, int]:
    """Return the amounts of a lease times its seconds from a time on."""
    seconds = max(0, lease.end - max(lease.start, since))
    return {name: amount * seconds for name, amount in amounts.items()}


class MaxAmountsFilter(MaxResourcesFilter):
    """A filter that also limits amounts of resource classes, and their weight.

    The limits apply to each lease and to all leases of a project.

    :raises ValueError: if no part knows what was reserved, but is asked
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        if self._conf.max_weight_hours_days and self._reserved is None:
            raise ValueError(
                '[enforcement] max_weight_hours_days: no part that runs '
                'knows what was reserved, as the part report does'
            )

    @functools.cached_property
    def _reserved(self) -> Reserved | None:
        reserved = parts.each('models', 'reserved', parts.running(self._all))
        return next(reserved, None)

    def limits(self, project: base.Project) -> list[base.Limit]:
        used = self._used(project)
        weight = float(self._weight(used.amounts))
        hours = float(self._weight(used.seconds) / _HOUR)
        return [
            *self._by_class(project, 'max_resources_per_lease', None),
            *self._by_class(
                project, 'max_resources_per_project', used.amounts
            ),
            *super().limits(project),
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

    def _check(
        self, request: base.LeaseChange, project: base.Project,
        new: Counter[str],
    ) -> None:
        """Refuse a lease that asks for too much.

        :raises MaxResources: if the lease asks for too much of a class
        :raises MaxWeight: if the lease asks for too much weight
        :raises MaxWeightHours: if the lease asks for too much weight x hours
        """
        lease = request.lease
        nothing = _Size()
        self._check_size(
            nothing.plus(lease, new), nothing,
            self._resources(project, 'max_resources_per_lease'),
            self._most(project, 'max_weight_per_lease'), base.NO_LIMIT,
            'a lease',
        )
        super()._check(request, project, new)
        limits = (
            self._resources(project, 'max_resources_per_project'),
            self._most(project, 'max_weight_per_project'),
            self._most(project, 'max_weight_hours_per_project'),
        )
        if limits == ({}, base.NO_LIMIT, base.NO_LIMIT):
            return
        used = self._used(project, lease)
        self._check_size(
            used.plus(lease, new), used, *limits, 'the leases of a project'
        )

    def _used(self, project: base.Project, but: Lease | None = None) -> _Size:
        """Return the size of the leases of a project, but one if given.

        What follows the last measurement counts as booked.
        """
        since, past = self._past(project)
        return _Size(
            since, project.sums(Project.amounts, but),
            project.sums(self._seconds, but) + past,
        )

    def _seconds(self, project: base.Project, lease: Lease) -> dict[str, int]:
        since, _ = self._past(project)
        return _seconds(lease, project.amounts(lease), since)

    def _past(self, project: base.Project) -> tuple[int, Counter[str]]:
        """Return the amounts x seconds that were reserved, by class.

        They are read at most once for a project.

        :returns: now, 0 without such a budget, and the seconds
        """
        past: tuple[int, Counter[str]] | None = project.kept.get('past')
        if past is None:
            past = 0, Counter()
            days = self._conf.max_weight_hours_days
            if days and self._reserved is not None:
                first = max(0, project.now - days * _DAY)
                past = project.now, project.source.run(
                    self._reserved, project.id, first, project.now
                )
            project.kept['past'] = past
        return past

    def _check_size(
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
                f'{whose} may reserve at most {{most}} of {name}', FIELD,
                beside.amounts[name],
            )
        base.limit(
            MaxWeight, weight, self._weight(new.amounts),
            f'{whose} may have a weight of at most {{most}}', FIELD,
            self._weight(beside.amounts),
        )
        base.limit(
            MaxWeightHours, weight_hours,
            self._weight(new.seconds) / _HOUR,
            f'{whose} may have at most {{most}} weight x hours', FIELD,
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


FILTERS = {MaxResourcesFilter.__name__: MaxAmountsFilter}
