# SPDX-License-Identifier: Apache-2.0
"""Times as text, in the time zone that the user has chosen."""

import argparse
import datetime
import re
import zoneinfo

VARIABLE = 'OS_RESERVATION_TIMES'
_SHOWN = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ')

# A time zone, None for that of the machine.
Zone = datetime.tzinfo | None


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

    A text in another form is left for the API to refuse.
    """
    if text == 'none':
        return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return str(text)
    if found.tzinfo is None:
        found = found.replace(tzinfo=of) if of else found.astimezone()
    return found.isoformat()


def parse(text: str, of: Zone) -> datetime.datetime:
    """Return a time of the API."""
    return datetime.datetime.fromisoformat(text).astimezone(of)


def is_time(text: str) -> bool:
    """Tell whether a text of the API is a time."""
    return _SHOWN.fullmatch(text) is not None


def show(text: str, of: Zone) -> str:
    """Return a time of the API for people, with its zone."""
    found = parse(text, of)
    seconds = f':{found.second:02}' if found.second else ''
    return f'{found:%Y-%m-%d %H:%M}{seconds} {found:%Z}'
