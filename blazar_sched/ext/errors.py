# SPDX-License-Identifier: Apache-2.0
"""The exceptions and the limits of the timeline index.

The plain-Python index and its compiled twin share them. This module imports
nothing.
"""

from __future__ import annotations

FOREVER = 2**63 - 1
"""The end of a window without an end, and a horizon without a limit."""

TIME_LIMIT = 2**32 - 1
"""A finite time ``t`` satisfies ``0 <= t < TIME_LIMIT``."""

AMOUNT_LIMIT = 2**31 - 1
"""The largest magnitude of an amount, a capacity or a sum of a lane."""

FIGURE_LIMIT = 2**48
"""A figure of a HostState satisfies ``abs(figure) <= FIGURE_LIMIT``."""

CLASSES_LIMIT = 30
"""The largest number of resource classes of an index."""


class TimelineError(ValueError):
    """The timeline index refused a call and did not change."""


class InvalidField(TimelineError):
    """A field of a call or a change has an invalid value."""

    def __init__(self, field: str, value: object) -> None:
        super().__init__(field, value)
        self.field = field
        self.value = value

    def __str__(self) -> str:
        return f'invalid {self.field}: {self.value!r}'


class InvalidName(InvalidField):
    """The name of a host, entry, owner or resource class is invalid."""


class InvalidWindow(InvalidField):
    """A time is not an integer or out of range, or a window is empty."""


class InvalidAmount(InvalidField):
    """An amount is not an integer or out of range, or the number is wrong."""


class InvalidChange(TimelineError):
    """A change of a batch is none of the five kinds of changes."""

    def __init__(self, change: object) -> None:
        super().__init__(change)
        self.change = change

    def __str__(self) -> str:
        return f'unknown change: {self.change!r}'


class InvalidColumn(TimelineError):
    """The length of a column of a bulk load differs from that of the ids."""

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
    """Bytes are not packed columns, or are incomplete."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f'damaged snapshot: {self.reason}'


class UnknownHost(TimelineError):
    """A host or a row number is not in the index."""

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
    """An entry with this id and other content exists."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id

    def __str__(self) -> str:
        return f'entry exists with other content: {self.id!r}'


class HostInUse(TimelineError):
    """A host with entries cannot be dropped."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host

    def __str__(self) -> str:
        return f'host has entries: {self.host!r}'


class AmountOverflow(TimelineError):
    """A sum of a lane would exceed ``AMOUNT_LIMIT``."""

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
    """A batch would exceed the capacity of a host.

    ``at`` is the first time at which it does, ``short`` the excess then.
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
