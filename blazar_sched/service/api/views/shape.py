# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of what is shown, for the OpenAPI document.

Each noun's file has one beside its view; a test holds them together.
"""

from typing import Any

from blazar_sched.service.api import validation

TEXT = {'type': 'string'}
TEXT_OR_NULL = {'type': ['string', 'null']}
INTEGER = {'type': 'integer'}
INTEGER_OR_NULL = {'type': ['integer', 'null']}
BOOLEAN = {'type': 'boolean'}


def whole(properties: dict[str, validation.Schema]) -> validation.Schema:
    """Describe an object that has all of `properties`, and no other."""
    return {
        'type': 'object',
        'required': list(properties),
        'properties': properties,
        'additionalProperties': False,
    }


def described(
    meaning: str,
    properties: dict[str, validation.Schema],
    example: dict[str, Any],
) -> validation.Schema:
    """Describe a whole object that the document has under a name."""
    return {
        **whole(properties), 'description': meaning, 'examples': [example]
    }


def many(item: validation.Schema) -> validation.Schema:
    """Describe a list."""
    return {'type': 'array', 'items': item}
