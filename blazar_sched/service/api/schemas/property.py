# SPDX-License-Identifier: Apache-2.0
"""What a client may send about a host property, and ask of a list of them."""

from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning

QUERY = {
    'detail': {'type': 'boolean', 'description': 'With their values'},
    'all': {
        'type': 'boolean',
        'description': 'Private ones too, for an admin',
    },
}
UPDATE = validation.validator(
    {
        'type': 'object',
        'required': ['private'],
        'properties': {
            'private': meaning.said(meaning.PRIVATE, {'type': 'boolean'}),
        },
        'additionalProperties': False,
    }
)
