# SPDX-License-Identifier: Apache-2.0
"""Slices of work that would keep others waiting as a whole."""

from collections.abc import Iterable
from collections.abc import Iterator
import itertools
from typing import TypeVar

T = TypeVar('T')

# The hosts that one commit writes: in a failure there are very many.
HOSTS = 10


def of(items: Iterable[T], length: int) -> Iterator[list[T]]:
    """Yield lists of `length` items; the last list may be shorter."""
    remaining = iter(items)
    while some := list(itertools.islice(remaining, length)):
        yield some
