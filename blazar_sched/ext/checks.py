# SPDX-License-Identifier: Apache-2.0
"""What the plain-Python timeline index lets in: names, times, columns.

Each check raises the named refusal of its kind and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blazar_sched.ext import errors


def check_names(field: str, names: Sequence[str]) -> None:
    """Refuse what is no string, or empty, or there twice."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name or name in seen:
            raise errors.InvalidName(field, name)
        seen.add(name)


def check_time(field: str, value: int) -> None:
    if type(value) is not int or not 0 <= value < errors.TIME_LIMIT:
        raise errors.InvalidWindow(field, value)


def check_window(start: int, end: int) -> None:
    check_time('start', start)
    if end != errors.FOREVER:
        check_time('end', end)
    if end <= start:
        raise errors.InvalidWindow('end', end)


def check_duration(duration: int) -> None:
    if duration != errors.FOREVER:
        check_time('duration', duration)
    if duration == 0:
        raise errors.InvalidWindow('duration', duration)


def check_count(field: str, count: int) -> None:
    if type(count) is not int or not 0 <= count <= errors.AMOUNT_LIMIT:
        raise errors.InvalidAmount(field, count)


def column(field: str, values: Any, length: int) -> list[Any]:
    """Return a column's values as Python objects, ``length`` of them."""
    if not isinstance(values, (list, tuple)):
        values = memoryview(values).tolist()
    if len(values) != length:
        raise errors.InvalidColumn(field, len(values), length)
    return list(values)
