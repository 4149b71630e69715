# SPDX-License-Identifier: Apache-2.0
"""Alignment of starts: the times at which people want a lease to start.

An alignment is a duration, such as '1h', for the multiples of the duration
since the epoch in UTC; or a time of day with a time zone, such as
'09:00 Europe/Berlin', for that time on each day. A time of day that a day
skips, because the clocks are set ahead, stands for the end of the gap; of a
time that a day has twice, the first one counts.
"""

from collections.abc import Callable
import datetime
import re
import zoneinfo

from blazar_sched.domain import duration
from blazar_sched.domain import exception

# Returns the first aligned time at or after a time, in epoch seconds.
Alignment = Callable[[int], int]

_DAILY = re.compile(r'([01][0-9]|2[0-3]):([0-5][0-9]) ([A-Za-z0-9_+/-]{1,64})')
_DAY = datetime.timedelta(days=1)


def parse(text: str, field: str) -> Alignment:
    """Return the alignment in a text.

    :raises InvalidInput: naming `field`
    """
    match = _DAILY.fullmatch(text)
    if match is None:
        step = duration.parse_duration(text, field)
        return lambda at: -(-at // step) * step
    time = datetime.time(int(match[1]), int(match[2]))
    known = zone(match[3], field)
    return lambda at: _next(at, time, known)


def zone(name: str, field: str) -> zoneinfo.ZoneInfo:
    """Return the time zone of a name.

    :raises InvalidInput: naming `field`
    """
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):
        raise exception.InvalidInput(
            f'{field}: there is no time zone {name}', field=field
        ) from None


def instant(local: datetime.datetime, zone: datetime.tzinfo) -> int:
    """Return the epoch seconds of a local time.

    :param local: without a time zone
    """
    early, late = (
        _seconds(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1)
    )
    if late >= early:
        return early
    # The local time is in a gap: `late` is before the gap, `early` after it.
    # Find the instant at which the clocks are set ahead.
    while early - late > 1:
        middle = (early + late) // 2
        shown = datetime.datetime.fromtimestamp(middle, zone)
        if shown.replace(tzinfo=None) < local:
            late = middle
        else:
            early = middle
    return early


def _next(at: int, time: datetime.time, zone: datetime.tzinfo) -> int:
    day = datetime.datetime.fromtimestamp(at, zone).date() - _DAY
    while True:
        found = instant(datetime.datetime.combine(day, time), zone)
        if found >= at:
            return found
        day += _DAY


def _seconds(at: datetime.datetime) -> int:
    return int(at.timestamp())
