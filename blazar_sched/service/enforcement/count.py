# SPDX-License-Identifier: Apache-2.0
"""A limit on the number of leases of a project."""

from blazar_sched.domain import exception
from blazar_sched.service.enforcement import base


class MaxLeasesFilter(base.Filter):
    """A filter that limits the leases of a project that are not over.

    The leases of servers' own lifetimes do not count once they have started.
    """

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a new lease that exceeds the limit.

        :raises MaxLeases: if the lease exceeds the limit
        """
        most = self._conf.max_leases_per_project
        if (
            request.current is not None
            or most == base.NO_LIMIT
            or request.project_id in self._conf.max_leases_exempt_project_ids
        ):
            return
        base.limit(
            exception.MaxLeases,
            most,
            1 + sum(
                lease.is_limited
                for lease in project.others(request.lease)
            ),
            0,
            'a project may have {most} leases at most',
            'project_id',
        )
