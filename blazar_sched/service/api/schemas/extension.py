# SPDX-License-Identifier: Apache-2.0
"""The schema of a query about how far a lease can be prolonged."""

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.schemas.lease import DATE

QUERY = (
    Field(
        'end_date', 'Latest end that is of interest, any end if absent',
        type=DATE,
    ),
)
