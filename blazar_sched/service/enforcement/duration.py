# SPDX-License-Identifier: Apache-2.0
"""A limit on the duration of a lease."""

from blazar_sched.domain import exception
from blazar_sched.service.enforcement import base


class MaxLeaseDurationFilter(base.Filter):
    """A filter that limits the seconds from a lease's start to its end."""

    exempt = 'max_lease_duration'

    def limits(self, project: base.Project) -> list[base.Limit]:
        return [self._limit(project, 'max_lease_duration', 'seconds')]

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a lease that lasts too long.

        :raises MaxLeaseDuration: naming end_date
        """
        if self.passes(request):
            return
        base.limit(
            exception.MaxLeaseDuration,
            self._most(project, 'max_lease_duration'),
            request.lease.window.duration,
            base.endless(
                request.lease, 'a lease may last at most {most} seconds'
            ),
            'end_date',
        )
