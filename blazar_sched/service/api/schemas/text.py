# SPDX-License-Identifier: Apache-2.0
"""Schemas of texts that people read, and that end up in logs and terminals."""

from blazar_sched.service.api.field import Type
from blazar_sched.service.api.validation import Schema

# The characters C0, DEL, C1, and Unicode's own line ends.
_CONTROLS = r'\x00-\x1f\x7f-\x9f\u2028\u2029'
# Unicode's category Cf: these characters are invisible, or change how other
# characters are shown.
_FORMATS = (
    r'\xad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180e'
    r'\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff'
    r'\ufff9-\ufffb'
    # Characters of other planes are not escaped: readers of JSON Schema
    # differ in how they read the escapes.
    '\U000110bd\U000110cd\U00013430-\U0001343f'
    '\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001'
    '\U000e0020-\U000e007f'
)


def line(longest: int) -> Schema:
    """Describe a non-empty text of one line."""
    return {
        'type': 'string',
        'minLength': 1,
        'maxLength': longest,
        'allOf': [
            {
                'not': {'pattern': f'[{_CONTROLS}{_FORMATS}]'},
                'x-refusal': (
                    'must not have control characters or invisible '
                    'characters'
                ),
            }
        ],
    }


def up_to(longest: int) -> Type:
    """Return the type of a non-empty text."""
    return Type({'type': 'string', 'minLength': 1, 'maxLength': longest})
