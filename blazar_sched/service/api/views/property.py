# SPDX-License-Identifier: Apache-2.0
"""The view of a host property, and its schema."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views import shape

# A property in the form of the manager; the document has the detailed view.
EXAMPLE = {'property': 'gpu', 'private': False, 'values': ['a100', 'h100']}


def brief(host_property: dict[str, Any]) -> dict[str, Any]:
    """Show the name of a host property."""
    return {'property': host_property['property']}


def detail(host_property: dict[str, Any]) -> dict[str, Any]:
    """Show a host property with its privacy and the values that hosts have."""
    return {
        'property': host_property['property'],
        'private': host_property['private'],
        'values': host_property['values'],
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe both views: a brief host property has only a name."""
    both = shape.described(
        'A capability of hosts, which a requirement can name',
        {
            'property': meaning.said(meaning.NAME),
            'private': meaning.said(meaning.PRIVATE, shape.BOOLEAN),
            'values': meaning.said(
                'The values that hosts have for it', shape.many(shape.TEXT)
            ),
        },
        detail(EXAMPLE),
    )
    return {**both, 'required': ['property']}
