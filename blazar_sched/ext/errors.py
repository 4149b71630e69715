# SPDX-License-Identifier: Apache-2.0
"""The named refusals and the limits of the timeline index.

Shared by the plain-Python index and its compiled twin. Imports nothing.
"""

from __future__ import annotations

FOREVER = 2**63 - 1
"""An end that never comes, and a horizon without one."""

TIME_LIMIT = 2**32 - 1
"""A finite time ``t`` satisfies ``0 <= t < TIME_LIMIT``."""

AMOUNT_LIMIT = 2**31 - 1
"""No amount, capacity or sum of a lane is larger than this in magnitude."""

FIGURE_LIMIT = 2**48
"""A figure of a HostState satisfies ``abs(figure) <= FIGURE_LIMIT``."""

CLASSES_LIMIT = 30
"""No index has more resource classes."""


class TimelineError(ValueError):
    """A refusal of the timeline index; the index is as it was before."""


class InvalidField(TimelineError):
    """A field of a call or change holds what it cannot hold."""

    def __init__(self, field: str, value: object) -> None:
        super().__init__(field, value)
        self.field = field
        self.value = value

    def __str__(self) -> str:
        return f'invalid {self.field}: {self.value!r}'


class InvalidName(InvalidField):
    """A host, id, owner or resource class is no usable name."""


class InvalidWindow(InvalidField):
    """A time is no integer or out of range, or the window is empty."""


class InvalidAmount(InvalidField):
    """An amount is no integer, is out of range, or one too few or too many."""


class InvalidChange(TimelineError):
    """A change is none of the five that a batch may hold."""

    def __init__(self, change: object) -> None:
        super().__init__(change)
        self.change = change

    def __str__(self) -> str:
        return f'unknown change: {self.change!r}'


class InvalidColumn(TimelineError):
    """A column of a bulk load is not as long as the column of ids."""

    def __init__(self, field: str, length: int, expected: int) -> None:
        super().__init__(field, length, expected)
        self.field = field
        self.length = length
        self.expected = expected

    def __str__(self) -> str:
        return (
            f'column {self.field} holds {self.length} values, '
            f'not {self.expected}'
        )


class DamagedSnapshot(TimelineError):
    """Bytes are no packed columns, or no longer all of them."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f'damaged snapshot: {self.reason}'


class UnknownHost(TimelineError):
    """A host, or a row number, is not in the index."""

    def __init__(self, host: object) -> None:
        super().__init__(host)
        self.host = host

    def __str__(self) -> str:
        return f'unknown host: {self.host!r}'


class UnknownEntry(TimelineError):
    """No entry has this id."""

    def __init__(self, id: object) -> None:
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return f'unknown entry: {self.id!r}'


class EntryExists(TimelineError):
    """An id is used twice for different things."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return f'entry exists with other content: {self.id!r}'


class HostInUse(TimelineError):
    """A host that still has entries cannot be dropped."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host

    def __str__(self) -> str:
        return f'host has entries: {self.host!r}'


class AmountOverflow(TimelineError):
    """A sum of a lane would leave ``AMOUNT_LIMIT`` behind."""

    def __init__(self, host: str, lane: str, at: int) -> None:
        super().__init__(host, lane, at)
        self.host = host
        self.lane = lane
        self.at = at

    def __str__(self) -> str:
        return (
            f'the sum of {self.lane} on host {self.host!r} '
            f'overflows at {self.at}'
        )


class OverCapacity(TimelineError):
    """A batch would take more of a host than there is.

    ``at`` is the first such instant, ``short`` how much is missing then.
    """

    def __init__(self, host: str, lane: str, at: int, short: int) -> None:
        super().__init__(host, lane, at, short)
        self.host = host
        self.lane = lane
        self.at = at
        self.short = short

    def __str__(self) -> str:
        return (
            f'host {self.host!r} is short of {self.short} {self.lane} '
            f'at {self.at}'
        )
