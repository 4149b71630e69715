# SPDX-License-Identifier: Apache-2.0
"""How a host property is shown."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views import shape

# As the manager answers it; the document has it in detail.
EXAMPLE = {'property': 'gpu', 'private': False, 'values': ['a100', 'h100']}


def brief(host_property: dict[str, Any]) -> dict[str, Any]:
    """Show its name."""
    return {'property': host_property['property']}


def detail(host_property: dict[str, Any]) -> dict[str, Any]:
    """Show its name, whether it is private, and the values hosts have."""
    return {
        'property': host_property['property'],
        'private': host_property['private'],
        'values': host_property['values'],
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe both: brief ones have a name only."""
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
