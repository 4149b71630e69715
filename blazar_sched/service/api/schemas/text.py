# SPDX-License-Identifier: Apache-2.0
"""Texts that people read, and that end up in logs and terminals."""

from typing import Any


def line(longest: int) -> dict[str, Any]:
    """Describe a text of one line, not empty."""
    return {
        'type': 'string',
        'minLength': 1,
        'maxLength': longest,
        'allOf': [
            {
                # C0, DEL, C1, and Unicode's own line ends.
                'not': {'pattern': '[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]'},
                'x-refusal': 'must not have control characters',
            }
        ],
    }


def asked(longest: int, description: str) -> dict[str, Any]:
    """Describe a text in a query, not empty."""
    return {
        'type': 'string',
        'minLength': 1,
        'maxLength': longest,
        'description': description,
    }
