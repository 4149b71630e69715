# SPDX-License-Identifier: Apache-2.0
"""The schema of a query for the report of usage."""

from blazar_sched.domain.usage import DEFAULT_DAYS
from blazar_sched.domain.usage import GROUPS
from blazar_sched.domain.usage import MAX_DAYS
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.schemas.lease import DATE

MAX_TEXT = 255
QUERY = (
    Field(
        'start_date',
        f'Start of the report, {DEFAULT_DAYS} days before the end if absent; '
        f'at most {MAX_DAYS} days before the end',
        type=DATE,
    ),
    Field('end_date', 'End of the report, now if absent', type=DATE),
    Field(
        'group_by',
        'What the sums are grouped by, beside the resource class: some of '
        + ', '.join(f'`{name}`' for name in GROUPS)
        + ', separated by commas',
        type=text.up_to(MAX_TEXT),
    ),
    Field(
        'project_id',
        'ID of the project, by default the project of the caller, or all '
        'projects for an administrator; ignored unless the caller is an '
        'administrator',
        type=text.up_to(MAX_TEXT),
    ),
)
