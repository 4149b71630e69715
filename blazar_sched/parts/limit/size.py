# SPDX-License-Identifier: Apache-2.0
"""A limit on the hosts and instances of a lease, and of a project."""

from collections.abc import Mapping

from blazar_sched.domain.lease import Lease
from blazar_sched.parts.limit.exception import MaxHosts
from blazar_sched.parts.limit.exception import MaxInstances
from blazar_sched.service.enforcement import base

_FIELD = 'reservations'
_HOSTS, _INSTANCES = 'hosts', 'instances'


def _hosts(lease: Lease) -> int:
    """Return how many whole hosts a lease may get."""
    return sum(
        r.demand.most
        for r in lease.reservations
        if r.demand.whole
    )


def _instances(lease: Lease) -> int:
    return sum(
        r.demand.most
        for r in (lease.reservations if lease.is_limited else ())
        if r.demand.slot
    )


def _size(project: base.Project, lease: Lease) -> dict[str, int]:
    return {_HOSTS: _hosts(lease), _INSTANCES: _instances(lease)}


class MaxSizeFilter(base.Filter):
    """A filter that limits the hosts and the instances of leases.

    The limits apply to each lease and to all leases of a project.
    """

    exempt = 'max_size'

    def limits(self, project: base.Project) -> list[base.Limit]:
        used = project.sums(_size)
        return [
            self._limit(project, 'max_hosts_per_lease', _HOSTS),
            self._limit(project, 'max_instances_per_lease', _INSTANCES),
            self._limit(
                project, 'max_hosts_per_project', _HOSTS, used[_HOSTS]
            ),
            self._limit(
                project, 'max_instances_per_project', _INSTANCES,
                used[_INSTANCES],
            ),
        ]

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a lease that asks for too much.

        :raises MaxHosts: if the lease asks for too many hosts
        :raises MaxInstances: if the lease asks for too many instances
        """
        if self.passes(request):
            return
        self._check_lease(request, project)
        hosts, instances = (
            self._most(project, 'max_hosts_per_project'),
            self._most(project, 'max_instances_per_project'),
        )
        if (hosts, instances) != (base.NO_LIMIT, base.NO_LIMIT):
            others = project.sums(_size, request.lease)
            self._check_project(request, others, hosts, instances)

    def _check_lease(
        self, request: base.LeaseChange, project: base.Project
    ) -> None:
        base.limit(
            MaxHosts, self._most(project, 'max_hosts_per_lease'),
            _hosts(request.lease), 'a lease may have at most {most} hosts',
            _FIELD,
        )
        base.limit(
            MaxInstances,
            self._most(project, 'max_instances_per_lease'),
            _instances(request.lease),
            'a lease may have at most {most} instances', _FIELD,
        )

    def _check_project(
        self, request: base.LeaseChange, others: Mapping[str, int],
        most_hosts: int, most_instances: int,
    ) -> None:
        hosts, instances = others[_HOSTS], others[_INSTANCES]
        base.limit(
            MaxHosts, most_hosts, hosts + _hosts(request.lease),
            'the leases of a project may have at most {most} hosts', _FIELD,
            hosts,
        )
        base.limit(
            MaxInstances, most_instances,
            instances + _instances(request.lease),
            'the leases of a project may have at most {most} instances',
            _FIELD, instances,
        )
