# SPDX-License-Identifier: Apache-2.0
"""Schemas of a host property's request body, and of the query of a list."""

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
