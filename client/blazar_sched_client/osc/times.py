# SPDX-License-Identifier: Apache-2.0
"""Times as text, in the time zone that the user has chosen."""

from __future__ import annotations

import argparse
import datetime
import re
from typing import Optional
import zoneinfo

import iso8601

VARIABLE = 'OS_RESERVATION_TIMES'
# dateparser reads more words, some as another time than a user expects.
_WORDS = re.compile(
    r'(?:(?:next |this )?(?P<day>today|tomorrow|'
    r'(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*|\d\d? [a-z]{3,9}))?'
    r'(?: ?(?:at )?(?P<hour>(?:[01]?\d|2[0-3])(?P<minute>:[0-5]\d)?))?'
)
_LATER = re.compile(r'(?:\+|in )\d+ ?[a-z]+')
_SHOWN = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ')

# A time zone, None for that of the machine.
Zone = Optional[datetime.tzinfo]


class Time(str):
    """A time that the user has written."""

    __slots__ = ()


def zone(name: str) -> Zone:
    """Return the time zone of a name.

    :raises argparse.ArgumentTypeError: if there is none
    """
    if name.lower() == 'local':
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):
        raise argparse.ArgumentTypeError(
            f'{name} is no time zone: UTC, local, or as Europe/Berlin'
        ) from None


def read(text: Time, of: Zone) -> str | None:
    """Return a time of the user as the API reads it, None for `none`.

    A time is in ISO 8601, or in words: `tomorrow 9:00`, `next monday`, `+2h`.
    A text in another form is left for the API to refuse.
    """
    if text == 'none':
        return None
    try:
        found = iso8601.parse_date(text, default_timezone=None)
    except iso8601.ParseError:
        in_words = _in_words(text, of)
        if in_words is None:
            return str(text)
        found = in_words
    if found.tzinfo is None:
        found = found.replace(tzinfo=of) if of else found.astimezone()
    return found.isoformat()


def _in_words(text: str, of: Zone) -> datetime.datetime | None:
    """Return a time that is said in words, None if there is none."""
    text = text.lower()
    if _LATER.fullmatch(text):
        # An hour is an hour when the clocks are changed, too.
        now = datetime.datetime.now(datetime.timezone.utc)
    else:
        said = _WORDS.fullmatch(text)
        if not said or not said['day'] and not said['minute']:
            return None
        text = f'{said["day"] or "today"} {said["hour"] or "0"}'
        text += '' if said['minute'] else ':00'
        now = datetime.datetime.now(of)
    # Few commands need dateparser, whose import takes long.
    import dateparser

    found = dateparser.parse(text, languages=['en'], settings={
        'RELATIVE_BASE': now.replace(tzinfo=None),
        'PREFER_DATES_FROM': 'future',
    })
    return found and found.replace(tzinfo=now.tzinfo)


def has_year(text: str) -> bool:
    """Tell whether a time begins with a year, and so is not in words."""
    return re.match(r'\d{4}', text) is not None


def parse(text: str, of: Zone) -> datetime.datetime:
    """Return a time of the API."""
    return iso8601.parse_date(text).astimezone(of)


def is_time(text: str) -> bool:
    """Tell whether a text of the API is a time."""
    return _SHOWN.fullmatch(text) is not None


def show(text: str, of: Zone) -> str:
    """Return a time of the API for people, with its zone."""
    found = parse(text, of)
    seconds = f':{found.second:02}' if found.second else ''
    return f'{found:%Y-%m-%d %H:%M}{seconds} {found:%Z}'
