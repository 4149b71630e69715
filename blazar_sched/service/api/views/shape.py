# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of responses, for the OpenAPI document.

The file of each noun has a schema beside its view; a test checks that the two
agree.
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
    """Describe a whole object that has a name in the document."""
    return {
        **whole(properties), 'description': meaning, 'examples': [example]
    }


def many(item: validation.Schema) -> validation.Schema:
    """Describe a list of items."""
    return {'type': 'array', 'items': item}
