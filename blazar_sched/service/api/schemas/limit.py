# SPDX-License-Identifier: Apache-2.0
"""The schema of a query about the limits."""

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.schemas import text

MAX_PROJECT_ID = 255

QUERY = (
    Field(
        'project_id',
        'ID of the project, by default the project of the caller; ignored '
        'unless the caller is an administrator',
        type=text.up_to(MAX_PROJECT_ID),
    ),
)
