# SPDX-License-Identifier: Apache-2.0
"""Labels: texts by key, by which users find their leases and reservations."""

import re

MAX_LABELS = 32
# The most labels of the reservations of one lease, all of which every replica
# keeps.
MAX_OF_RESERVATIONS = 100
# No key has a colon or equals sign, which end the key in a query and in a
# hint, nor a character that JSON escapes.
KEY = '[A-Za-z0-9][A-Za-z0-9._/-]{0,63}'
MAX_VALUE = 255
_HINT = 'label:'


def parse(text: str, separator: str) -> tuple[str, str] | None:
    """Return the key and the value of a label, None if it is none."""
    key, _, value = text.partition(separator)
    if re.fullmatch(KEY, key) and 0 < len(value) <= MAX_VALUE:
        return key, value
    return None


def hinted(hint: str | None) -> tuple[str, str] | None:
    """Return the label in a hint ``label:key=value``, None if it has none."""
    if hint is None or not hint.startswith(_HINT):
        return None
    return parse(hint.removeprefix(_HINT), '=')
