# SPDX-License-Identifier: Apache-2.0
"""Reasons for refusals in words, computed from the index only on request."""

from blazar_sched import ext
from blazar_sched.domain import duration
from blazar_sched.domain import window
from blazar_sched.replica import present


def no_room(
    index: ext.TimelineIndex,
    headroom: present.Headroom,
    start: int,
    end: int,
    amounts: tuple[int, ...],
) -> str:
    """Say when a host ceases to have room, and of which resource classes.

    :param headroom: of this host only, which has no room by this headroom
    """
    rows, room, ignore = headroom.rows, headroom.room, headroom.ignore
    lasting = index.horizon(
        rows, start, amounts, headroom=room, ignore=ignore
    )[0]
    at = start + lasting
    if at >= end:
        # The replica may change while it is being read.
        return 'the host had no room a moment ago'
    since = 'at once' if at == start else f'from {time(at)} on'
    *used, _, whole = index.peak(rows, at, at + 1, ignore=ignore)
    if whole:
        return (
            f'the whole host is reserved {since}, and requested {until(end)}'
        )
    short = [
        f'{max(0, limit - use)} {name} left, {amount} requested'
        for name, limit, use, amount in zip(
            index.resource_classes, room, used, amounts, strict=True
        )
        if amount > 0 and use + amount > limit
    ]
    return f'{since}: {"; ".join(short)} {until(end)}'


def time(at: int) -> str:
    """Return a time in human-readable form, in UTC."""
    return duration.format_time(at)


def until(end: int) -> str:
    return 'for ever' if end == window.FOREVER else f'until {time(end)}'
