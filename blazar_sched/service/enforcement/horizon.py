# SPDX-License-Identifier: Apache-2.0
"""Limits on how far ahead a lease must start, and may start and end."""

from blazar_sched.domain import exception
from blazar_sched.service.enforcement import base


class MaxHorizonFilter(base.Filter):
    """A filter that limits the seconds from now to a lease's start and end.

    A lease must start at least ``min_start_lead`` seconds after the project
    has asked for the lease.
    """

    exempt = 'max_horizon'

    def limits(self, project: base.Project) -> list[base.Limit]:
        return [
            self._limit(project, name, 'seconds') for name in (
                'min_start_lead', 'max_start_horizon', 'max_end_horizon',
            )
        ]

    def first_start(self, project: base.Project, now: int) -> int:
        if self.exempts(project.id):
            return now
        return now + self._most(project, 'min_start_lead')

    def check(self, request: base.LeaseChange, project: base.Project) -> None:
        """Refuse a lease that is too far ahead.

        :raises MinStartLead: naming start_date
        :raises MaxStartHorizon: naming start_date
        :raises MaxEndHorizon: naming end_date
        """
        if self.passes(request):
            return
        lease, current, now = request.lease, request.current, request.now
        asked_at = now if request.asked_at is None else request.asked_at
        # The start of a lease may stay, or become later; but that which was
        # approved for another lease.
        if lease.start < self.first_start(project, asked_at) and not (
            current and lease.start >= current.start
            and (current.approved_by is None or current.start <= now)
        ):
            least = self._most(project, 'min_start_lead')
            raise exception.MinStartLead(
                f'a lease must start at least {least} seconds from now',
                field='start_date',
            )
        base.limit(
            exception.MaxStartHorizon,
            self._most(project, 'max_start_horizon'), lease.start - now,
            'a lease may start at most {most} seconds from now', 'start_date',
        )
        base.limit(
            exception.MaxEndHorizon, self._most(project, 'max_end_horizon'),
            lease.end - now,
            base.endless(
                lease, 'a lease may end at most {most} seconds from now'
            ),
            'end_date',
        )
