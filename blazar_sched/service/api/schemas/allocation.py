# SPDX-License-Identifier: Apache-2.0
"""Schemas of queries and request bodies about allocations."""

from blazar_sched.service.api import validation
from blazar_sched.service.api.field import described
from blazar_sched.service.api.schemas import text

QUERY = {
    'lease_id': {
        'type': 'string',
        'description': 'Only those of this lease, past ones too',
    },
    'reservation_id': {
        'type': 'string',
        'description': 'Only those of this reservation, past ones too',
    },
}

UPDATE = validation.validator(
    {
        'type': 'object',
        'properties': {
            'lease_id': described(
                'The lease that is to leave the host', text.line(64)
            ),
            'reservation_id': described(
                'The reservation that is to leave the host', text.line(64)
            ),
        },
        'additionalProperties': False,
        'minProperties': 1,
        'maxProperties': 1,
    }
)
