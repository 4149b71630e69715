# SPDX-License-Identifier: Apache-2.0
"""A limit on the hosts and instances of a lease, and of a project."""

from collections.abc import Iterable

from blazar_sched.domain import exception
from blazar_sched.domain import reservation
from blazar_sched.domain.lease import Lease
from blazar_sched.service.enforcement import base
from blazar_sched.service.ledger import reader

_FIELD = 'reservations'


def _hosts(lease: Lease | None) -> int:
    """Return how many whole hosts a lease may get."""
    return sum(
        r.parameters['max']
        for r in (lease.reservations if lease else ())
        if r.resource_type == reservation.PHYSICAL_HOST
    )


def _instances(lease: Lease | None) -> int:
    return sum(
        r.parameters['amount']
        for r in (lease.reservations if lease and lease.is_limited else ())
        if r.has_slots
    )


class MaxSizeFilter(base.Filter):
    """A filter that limits the hosts and the instances of leases.

    The limits apply to each lease and to all leases of a project.
    """

    def check(self, asked: base.Asked, source: reader.Reader) -> None:
        """Refuse a lease that asks for too much.

        :raises MaxHosts: if the lease asks for too many hosts
        :raises MaxInstances: if the lease asks for too many instances
        """
        if asked.project_id in self._conf.max_size_exempt_project_ids:
            return
        self._check_lease(asked)
        limits = (
            self._conf.max_hosts_per_project,
            self._conf.max_instances_per_project,
        )
        if limits != (base.NO_LIMIT, base.NO_LIMIT):
            self._check_project(asked, source.open_leases(asked.project_id))

    def _check_lease(self, asked: base.Asked) -> None:
        base.limit(
            exception.MaxHosts,
            self._conf.max_hosts_per_lease,
            _hosts(asked.lease),
            _hosts(asked.current),
            'a lease may have at most {most} hosts',
            _FIELD,
        )
        base.limit(
            exception.MaxInstances,
            self._conf.max_instances_per_lease,
            _instances(asked.lease),
            _instances(asked.current),
            'a lease may have at most {most} instances',
            _FIELD,
        )

    def _check_project(
        self, asked: base.Asked, leases: Iterable[Lease]
    ) -> None:
        others = [lease for lease in leases if lease.id != asked.lease.id]
        hosts = sum(map(_hosts, others))
        instances = sum(map(_instances, others))
        base.limit(
            exception.MaxHosts,
            self._conf.max_hosts_per_project,
            hosts + _hosts(asked.lease),
            hosts + _hosts(asked.current),
            'the leases of a project may have at most {most} hosts',
            _FIELD,
        )
        base.limit(
            exception.MaxInstances,
            self._conf.max_instances_per_project,
            instances + _instances(asked.lease),
            instances + _instances(asked.current),
            'the leases of a project may have at most {most} instances',
            _FIELD,
        )
