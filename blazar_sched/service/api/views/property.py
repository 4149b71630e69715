# SPDX-License-Identifier: Apache-2.0
"""How a host property is shown."""

from typing import Any


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
