# SPDX-License-Identifier: Apache-2.0
"""How a host property is shown."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.views import shape


def brief(noun: dict[str, Any]) -> dict[str, Any]:
    """Show its name."""
    return {'property': noun['property']}


def detail(noun: dict[str, Any]) -> dict[str, Any]:
    """Show its name, whether it is private, and the values hosts have."""
    return {
        'property': noun['property'],
        'private': noun['private'],
        'values': noun['values'],
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe both: brief ones have a name only."""
    return {
        **shape.whole(
            {
                'property': shape.TEXT,
                'private': shape.BOOLEAN,
                'values': shape.many(shape.TEXT),
            }
        ),
        'required': ['property'],
    }
