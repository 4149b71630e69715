# SPDX-License-Identifier: Apache-2.0
"""Reasons for refusals in words, computed from the index only on request."""

from collections.abc import Mapping
from collections.abc import Sequence

from blazar_sched import ext
from blazar_sched.domain import duration
from blazar_sched.domain import window
from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import Host
from blazar_sched.domain.host import MAINTENANCE
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.window import Window
from blazar_sched.placing.relocation import Path
from blazar_sched.replica import present


def no_room(
    index: ext.TimelineIndex, headroom: present.Headroom, start: int, end: int,
    amounts: tuple[int, ...], host: Host | None,
) -> str:
    """Say when a host ceases to have room, and of which resource classes.

    :param headroom: of this host only, which has no room by this headroom
    :param host: this host
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
    closings = () if host is None else host.closed_in(Window(at, at + 1))
    if closings:
        return f'{closed(closings[0])}, and requested {until(end)}'
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


def closed(by: ClosedWindow) -> str:
    """Return a closed window of a host in words."""
    if by.kind == MAINTENANCE:
        return (
            f'the host is closed for maintenance {by.name!r} from '
            f'{time(by.start)} {until(by.end)}'
        )
    if by.end == window.FOREVER:
        return f'the host is available until {time(by.start)}'
    return f'the host is available from {time(by.end)} on'


def path(stays: Path, hosts: Mapping[str, Host]) -> str:
    """Return the stays of a relocation path in words.

    :param hosts: every host by uuid
    """
    return ', then '.join(
        f'{hosts[stay.host].hypervisor_hostname} {until(stay.end)}'
        for stay in stays
    )


def not_looked_for(path: str) -> str:
    """Say why a host did not pass by a path that there is.

    :param path: in words, see `path`
    """
    return (
        'no relocation path was looked for, as enough other hosts passed: '
        f'{path}'
    )


def no_path(
    first: Stay, following: Sequence[Stay | None], rules: Rules, movable: str,
    hosts: Mapping[str, Host],
) -> str:
    """Say why there is no relocation path to the end.

    :param following: the stays that were found after the first stay, one
        after the other; None where no host has room. The last stay ends no
        later than the one before, or one move too few.
    :param movable: how the instance is moved
    :param hosts: every host by uuid
    """
    if not following:
        return (
            f'the host has room for {first.end - first.start} s, and an '
            'instance that has to be moved is started for '
            f'{rules.least_stay(movable)} s at least'
        )
    *later, last = following
    if last is not None and len(following) == rules.most_moves:
        stays = first, *filter(None, following)
        return (
            f'{path(stays, hosts)}, and more than {rules.most_moves} moves '
            'would be necessary'
        )
    stays = first, *filter(None, later)
    left_at = stays[-1].end
    return (
        f'{path(stays, hosts)}, then no other host has room from '
        f'{time(left_at - rules.lead_of(movable))} '
        f'until after {time(left_at)}'
    )


def time(at: int) -> str:
    """Return a time in human-readable form, in UTC."""
    return duration.format_time(at)


def until(end: int) -> str:
    return 'for ever' if end == window.FOREVER else f'until {time(end)}'
