# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of what is shown, for the OpenAPI document.

Each noun's file has one beside its view; a test holds them together.
"""

from blazar_sched.service.api import validation

TEXT = {'type': 'string'}
TEXT_OR_NULL = {'type': ['string', 'null']}
INTEGER = {'type': 'integer'}
BOOLEAN = {'type': 'boolean'}


def whole(properties: dict[str, validation.Schema]) -> validation.Schema:
    """Describe an object that has all of `properties`, and no other."""
    return {
        'type': 'object',
        'required': list(properties),
        'properties': properties,
        'additionalProperties': False,
    }


def many(item: validation.Schema) -> validation.Schema:
    """Describe a list."""
    return {'type': 'array', 'items': item}
