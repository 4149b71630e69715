# SPDX-License-Identifier: Apache-2.0
"""The ways in which an instance is moved to another host."""

from collections.abc import Iterable

from oslo_utils import strutils

# Not at all; while it is stopped, by Nova's cold migration; or while it runs.
# A later way is the better one.
NOT, COLD, LIVE = WAYS = '', 'cold', 'live'


def weakest(ways: Iterable[str]) -> str:
    """Return the way of some ways that allows least."""
    return min(ways, key=WAYS.index)


def read_way(text: str | None) -> str | None:
    """Return the way in a text: live, cold, or a boolean.

    :returns: None if the text is none of these
    """
    if text is None:
        return None
    said = text.strip().lower()
    if said in (LIVE, COLD):
        return said
    if not strutils.is_valid_boolstr(said):
        return None
    return LIVE if strutils.bool_from_string(said) else NOT
