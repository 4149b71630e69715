# SPDX-License-Identifier: Apache-2.0
"""A limit on the share of all hosts that a project has at a time."""

from collections import Counter
from collections.abc import Mapping

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.service.enforcement import base

FIELD = 'reservations'
# The seconds for which a lease that is let in is compared with known hosts.
_HOSTS_KEPT = 60


class MaxResourcesFilter(base.Filter):
    """A filter that limits what the leases of a project reserve at one time.
    """

    exempt = 'max_resources'

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        # When the hosts were read, in epoch seconds, and what they have.
        self._hosts: tuple[int, Mapping[str, tuple[int, int]]] = 0, {}

    def limits(self, project: base.Project) -> list[base.Limit]:
        return [self._limit(project, 'max_percent_per_project', 'percent')]

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a lease that asks for too much.

        :raises LimitExceeded: naming reservations
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
        self._check(request, project, new)

    def _check(
        self, request: base.LeaseChange, project: base.Project,
        new: Counter[str],
    ) -> None:
        """Refuse a lease with which a project has too much at a time.

        The hosts are read for a refusal, and now and then: they are many.

        :param new: the amounts of the lease
        :raises MaxResources: if a project has too large a share
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
            hosts = project.source.capacities()
            self._hosts = request.now, hosts
        for name, held in hosts.items():
            base.limit(
                exception.MaxResources, _share(percent, *held),
                new[name] + beside[name],
                f'the leases of a project may reserve at most {{most}} of '
                f'{name} at a time, {percent} % of all hosts',
                FIELD, beside[name],
            )


def _share(percent: int, capacity: int, largest: int) -> int:
    """Return the share of all hosts, which is at least one host."""
    return max(percent * capacity // 100, largest)
