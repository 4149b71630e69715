# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments of the plain-Python timeline index.

Each check raises the exception of ``errors`` for its kind of argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blazar_sched.ext import errors


def check_names(field: str, names: Sequence[str]) -> None:
    """Raise InvalidName for a name that is no string, empty or a duplicate."""
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
    """Return the values of a column as a list of this length."""
    if not isinstance(values, (list, tuple)):
        values = memoryview(values).tolist()
    if len(values) != length:
        raise errors.InvalidColumn(field, len(values), length)
    return list(values)
