# SPDX-License-Identifier: Apache-2.0
"""Durations, times, and the policy for instances without an end.

All text is read strictly, by ASCII digits only: a text that looks right to one
reader and wrong to another is refused.
"""

import dataclasses
import datetime
import re
from typing import NoReturn

from blazar_sched.domain import exception
from blazar_sched.domain import window

UNITS = {'': 1, 's': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400}
# A hundred years of 365.25 days, in seconds.
MAX_DURATION = 36525 * 86400

_DURATION = re.compile(r'([0-9]{1,10})([smhdw]?)')
_TIME = re.compile(
    r'([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})'
    r'[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.[0-9]{1,9})?)?'
    r'(?: ?(?:Z|UTC|([+-])([0-9]{2}):?([0-9]{2})))?'
)
_EPOCH = datetime.datetime(1970, 1, 1)

FOREVER = 'forever'
NEVER = 'never'
_ASSUME = 'assume:'
# The policy that lets an instance in where it has room to its end, or for the
# present and, by a relocation path, on other hosts afterwards.
RELOCATE = 'relocate'
_SHARE = 'share:'
_FRACTION = re.compile(r'0(\.[0-9]{1,6})?|1(\.0{1,6})?')


def parse_duration(text: object, field: str) -> int:
    """Return the seconds in '3600', '90s', '15m', '2h', '1d' or '1w'.

    :raises InvalidInput: naming `field`, unless 0 < seconds <= MAX_DURATION
    """
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        _refuse(text, field, 'must be a duration: digits and s, m, h, d or w')
    seconds = int(match[1]) * UNITS[match[2]]
    if not 0 < seconds <= MAX_DURATION:
        _refuse(text, field, 'must be more than 0 s and at most 100 years')
    return seconds


def parse_time(text: object, field: str, no_end: int = window.FOREVER) -> int:
    """Return the epoch seconds of 'YYYY-MM-DD HH:MM[:SS[.fffffffff]][zone]'.

    'T' may stand for the space; the zone is 'Z', 'UTC', '+HH:MM' or '+HHMM',
    UTC if absent. A number may have one digit, except for the year, as in
    Blazar. A fraction of a second is cut off.

    :param no_end: the time from which on FOREVER is returned
    :raises InvalidInput: naming `field`, if the text is not such a time, or
        the time does not exist or is out of the index's range
    """
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        # The message has the words of Blazar, which tests of clients look for.
        shown = repr(str(text)[:64])[1:-1]
        raise exception.InvalidInput(
            f'{field} {shown} is an invalid date. Required format: '
            '%Y-%m-%d %H:%M, as in 2030-01-31 09:30 or '
            '2030-01-31T09:30:00+01:00',
            field=field,
        )
    year, month, day, hour, minute, second, ahead_h, ahead_m = (
        int(part or 0) for part in match.group(1, 2, 3, 4, 5, 6, 8, 9)
    )
    try:
        local = datetime.datetime(year, month, day, hour, minute, second)
        zone = datetime.time(ahead_h, ahead_m)
    except ValueError:
        _refuse(text, field, 'is not a time that exists')
    ahead = datetime.timedelta(hours=zone.hour, minutes=zone.minute)
    since = local - _EPOCH + (ahead if match[7] == '-' else -ahead)
    at = since // datetime.timedelta(seconds=1)
    if at >= no_end:
        return window.FOREVER
    if not 0 <= at < window.TIME_LIMIT:
        _refuse(text, field, 'is out of range')
    return at


def format_time(at: int) -> str:
    """Return a time as 'YYYY-MM-DDTHH:MM:SSZ'."""
    return f'{(_EPOCH + datetime.timedelta(seconds=at)).isoformat()}Z'


def end_after(start: int, duration: int) -> int:
    """Return the end of a span of `duration` seconds from `start` on.

    The end is FOREVER if the index has no time that late.
    """
    end = start + duration
    return end if end < window.TIME_LIMIT else window.FOREVER


@dataclasses.dataclass(frozen=True, slots=True)
class Unbounded:
    """The policy for an instance that declares no end.

    `duration` is how long the instance is taken to live: FOREVER, or seconds,
    or None for an instance that is never let in. `relocates` tells whether the
    instance needs room on its host only until other hosts have room: see
    placing.relocation. `share` is the share of the capacity of all hosts that
    the instances under the policy may hold, None for any share.
    """

    duration: int | None
    relocates: bool = False
    share: float | None = None

    def end(self, now: int) -> int | None:
        """Return the end until which room is needed; None for no admission."""
        if self.duration is None:
            return None
        return end_after(now, self.duration)


def parse_unbounded(text: object, field: str) -> Unbounded:
    """Return the policy in a text.

    The text is 'forever', 'never', 'relocate' or 'assume:<duration>'.

    :raises InvalidInput: naming `field`
    """
    if text == FOREVER:
        return Unbounded(window.FOREVER)
    if text == NEVER:
        return Unbounded(None)
    if text == RELOCATE:
        return Unbounded(window.FOREVER, relocates=True)
    if isinstance(text, str) and text.startswith(_ASSUME):
        return Unbounded(parse_duration(text.removeprefix(_ASSUME), field))
    _refuse(
        text, field, 'must be forever, never, relocate or assume:<duration>'
    )


def parse_fixed(text: object, field: str) -> Unbounded:
    """Return the policy for instances that cannot be moved.

    The text is 'forever', 'never', 'assume:<duration>' or 'share:<fraction>'.

    :raises InvalidInput: naming `field`
    """
    if isinstance(text, str) and text.startswith(_SHARE):
        match = _FRACTION.fullmatch(text.removeprefix(_SHARE))
        if match is not None:
            return Unbounded(window.FOREVER, share=float(match[0]))
    elif text != RELOCATE:
        return parse_unbounded(text, field)
    _refuse(
        text, field, 'must be forever, never, assume:<duration> or '
        'share:<fraction>, such as share:0.6',
    )


def _refuse(text: object, field: str, what: str) -> NoReturn:
    raise exception.InvalidInput(
        f'{field} {str(text)[:64]!r} {what}', field=field
    )
