# SPDX-License-Identifier: Apache-2.0
"""Schemas of queries and request bodies about allocations."""

from blazar_sched.service.api import validation
from blazar_sched.service.api.field import described
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.schemas import text

QUERY = (
    Field('lease_id', 'Only allocations of this lease, past allocations too'),
    Field(
        'reservation_id',
        'Only allocations of this reservation, past allocations too',
    ),
)
_ONE_OF_BOTH: validation.Schema = {
    'oneOf': [{'required': ['lease_id']}, {'required': ['reservation_id']}],
    'x-refusal': 'lease_id or reservation_id must be given, but not both',
}
UPDATE = validation.by_version(
    lambda version: {
        'type': 'object',
        'properties': {
            'lease_id': described(
                'ID of the lease that is moved from the host, in place of '
                '`reservation_id`',
                text.line(64),
            ),
            'reservation_id': described(
                'ID of the reservation that is moved from the host, in place '
                'of `lease_id`',
                text.line(64),
            ),
        },
        'additionalProperties': False,
        'allOf': [_ONE_OF_BOTH],
    }
)
