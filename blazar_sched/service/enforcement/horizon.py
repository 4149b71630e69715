# SPDX-License-Identifier: Apache-2.0
"""A limit on how far ahead a lease may start and end."""

from blazar_sched.domain import exception
from blazar_sched.service.enforcement import base


class MaxHorizonFilter(base.Filter):
    """A filter that limits the seconds from now to a lease's start and end."""

    exempt = 'max_horizon'

    def limits(self, project: base.Project) -> list[base.Limit]:
        return [
            self._limit('max_start_horizon', 'seconds'),
            self._limit('max_end_horizon', 'seconds'),
        ]

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a lease that is too far ahead.

        :raises MaxStartHorizon: naming start_date
        :raises MaxEndHorizon: naming end_date
        """
        if self.exempts(request.project_id):
            return
        lease, current, now = request.lease, request.current, request.now
        base.limit(
            exception.MaxStartHorizon,
            self._conf.max_start_horizon,
            lease.start - now,
            current.start - now if current else 0,
            'a lease may start at most {most} seconds from now',
            'start_date',
        )
        base.limit(
            exception.MaxEndHorizon,
            self._conf.max_end_horizon,
            lease.end - now,
            current.end - now if current else 0,
            base.endless(
                lease, 'a lease may end at most {most} seconds from now'
            ),
            'end_date',
        )
