# SPDX-License-Identifier: Apache-2.0
"""A limit on the number of leases of a project."""

from blazar_sched.domain.lease import Lease
from blazar_sched.parts.limit.exception import MaxLeases
from blazar_sched.service.enforcement import base

_LEASES = 'leases'


class MaxLeasesFilter(base.Filter):
    """A filter that limits the leases of a project that are not over.

    The leases of servers' own lifetimes do not count once they have started.
    """

    exempt = 'max_leases'

    def limits(self, project: base.Project) -> list[base.Limit]:
        used = project.sums(_count)[_LEASES]
        return [self._limit(project, 'max_leases_per_project', _LEASES, used)]

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a lease that exceeds the limit.

        :raises MaxLeases: if the lease exceeds the limit
        """
        most = self._most(project, 'max_leases_per_project')
        if (
            most == base.NO_LIMIT
            or self.passes(request)
            # There are no more leases than before, but one that was approved.
            or request.current and request.current.approved_by is None
        ):
            return
        base.limit(
            MaxLeases, most,
            1 + project.sums(_count, request.lease)[_LEASES],
            'a project may have {most} leases at most', 'project_id',
        )


def _count(project: base.Project, lease: Lease) -> dict[str, int]:
    return {_LEASES: int(lease.is_limited)}
