# SPDX-License-Identifier: Apache-2.0
"""Slices of work that would keep other commits waiting as a whole."""

from collections.abc import Iterator
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar('T')


def of(all_: Sequence[T], length: int) -> Iterator[Sequence[T]]:
    """Yield all items of a sequence, so many at a time."""
    for first in range(0, len(all_), length):
        yield all_[first:first + length]
