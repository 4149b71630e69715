# SPDX-License-Identifier: Apache-2.0
"""The report of what reservations have reserved and used."""

from blazar_sched_client.osc import verb
from blazar_sched_client.osc.verb import moment
from blazar_sched_client.osc.verb import text


class ListUsage(verb.List):
    """List what reservations have reserved and used, in amount x hours.

    The report has the days that start in the window. With ``-f csv`` it is
    one for a spreadsheet.
    """

    plural = 'usage'
    columns = (
        'project_id', 'lease_id', 'reservation_id', 'resource_type', 'flavor',
        'product', 'day', 'resource_class', 'reserved', 'used', 'idle',
        'no_show', 'late', 'refused',
    )
    options = (
        moment('--start-date', 'Start of the report, 30 days by default'),
        moment('--end-date', 'End of the report, now by default'),
        text(
            '--group-by',
            'Columns by which the sums are grouped, separated by commas, as '
            'in project_id,day',
        ),
        text('--project-id', 'ID of one project, for administrators'),
    )
