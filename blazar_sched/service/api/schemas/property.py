# SPDX-License-Identifier: Apache-2.0
"""What a client may send about a host property."""

from blazar_sched.service.api import validation

UPDATE = validation.validator(
    {
        'type': 'object',
        'required': ['private'],
        'properties': {'private': {'type': 'boolean'}},
        'additionalProperties': False,
    }
)
