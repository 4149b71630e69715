# SPDX-License-Identifier: Apache-2.0
"""A limit on the hosts and instances of a lease, and of a project."""

from collections.abc import Iterable

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.service.enforcement import base

_FIELD = 'reservations'


def _hosts(*leases: Lease | None) -> int:
    """Return how many whole hosts leases may get."""
    return sum(
        r.demand.most
        for lease in leases if lease
        for r in lease.reservations
        if r.demand.whole
    )


def _instances(*leases: Lease | None) -> int:
    return sum(
        r.demand.most
        for lease in leases if lease and lease.is_limited
        for r in lease.reservations
        if r.demand.slot
    )


class MaxSizeFilter(base.Filter):
    """A filter that limits the hosts and the instances of leases.

    The limits apply to each lease and to all leases of a project.
    """

    exempt = 'max_size'

    def limits(self, project: base.Project) -> list[base.Limit]:
        leases = project.others()
        return [
            self._limit(project, 'max_hosts_per_lease', 'hosts'),
            self._limit(project, 'max_instances_per_lease', 'instances'),
            self._limit(
                project, 'max_hosts_per_project', 'hosts', _hosts(*leases)
            ),
            self._limit(
                project, 'max_instances_per_project', 'instances',
                _instances(*leases),
            ),
        ]

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a lease that asks for too much.

        :raises MaxHosts: if the lease asks for too many hosts
        :raises MaxInstances: if the lease asks for too many instances
        """
        if self.exempts(request.project_id):
            return
        self._check_lease(request, project)
        hosts, instances = (
            self._most(project, 'max_hosts_per_project'),
            self._most(project, 'max_instances_per_project'),
        )
        if (hosts, instances) != (base.NO_LIMIT, base.NO_LIMIT):
            others = project.others(request.lease)
            self._check_project(request, others, hosts, instances)

    def _check_lease(
        self, request: base.LeaseChange, project: base.Project
    ) -> None:
        base.limit(
            exception.MaxHosts,
            self._most(project, 'max_hosts_per_lease'),
            _hosts(request.lease),
            _hosts(request.current),
            'a lease may have at most {most} hosts',
            _FIELD,
        )
        base.limit(
            exception.MaxInstances,
            self._most(project, 'max_instances_per_lease'),
            _instances(request.lease),
            _instances(request.current),
            'a lease may have at most {most} instances',
            _FIELD,
        )

    def _check_project(
        self,
        request: base.LeaseChange,
        others: Iterable[Lease],
        most_hosts: int,
        most_instances: int,
    ) -> None:
        hosts = _hosts(*others)
        instances = _instances(*others)
        base.limit(
            exception.MaxHosts,
            most_hosts,
            hosts + _hosts(request.lease),
            hosts + _hosts(request.current),
            'the leases of a project may have at most {most} hosts',
            _FIELD,
        )
        base.limit(
            exception.MaxInstances,
            most_instances,
            instances + _instances(request.lease),
            instances + _instances(request.current),
            'the leases of a project may have at most {most} instances',
            _FIELD,
        )
