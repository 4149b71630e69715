# SPDX-License-Identifier: Apache-2.0
"""Times as text, from whole seconds since 1970 UTC: one form per version."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import datetime
import functools
from operator import itemgetter
from typing import Any

from microversion_parse import Version

from blazar_sched.domain import duration
from blazar_sched.domain import window
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.validation import Schema

_EPOCH = datetime.datetime(1970, 1, 1)
# The end that 1.0 shows for no end, in seconds: 2999-12-31. Blazar's clients
# read a date in every field of a date, and add to it.
NO_END = 32503593600
# Cached, because a lease shows most of its times more than once.
_remembering = functools.lru_cache(maxsize=1024)


@_remembering
def _date(seconds: int) -> str:
    """Return a time in the form ``2026-01-31T09:30:00.000000``."""
    return _utc(min(seconds, NO_END)).isoformat(timespec='microseconds')


@_remembering
def _stamp(seconds: int | None) -> str | None:
    """Return a time in the form ``2026-01-31 09:30:00``."""
    return None if seconds is None else _utc(seconds).isoformat(' ')


@_remembering
def _with_zone(seconds: int | None) -> str | None:
    """Return a time in the form ``2026-01-31T09:30:00Z``."""
    if seconds is None or seconds == window.FOREVER:
        return None
    return f'{_utc(seconds).isoformat()}Z'


def read_time(body: Mapping[str, Any], name: str) -> int | None:
    """Return a time of a request in epoch seconds, None if absent.

    :raises InvalidInput: naming the field
    """
    text = body.get(name)
    return None if text is None else duration.parse_time(text, name)


def read_duration(body: Mapping[str, Any], name: str) -> int | None:
    """Return a duration of a request in seconds, None if absent.

    :raises InvalidInput: naming the field
    """
    value = body.get(name)
    return None if value is None else duration.parse_duration(str(value), name)


def _utc(seconds: int) -> datetime.datetime:
    """Return a time without a zone; a caller that shows the zone adds it."""
    return _EPOCH + datetime.timedelta(seconds=seconds)


class _Time(Type):
    """A time in ISO 8601, or None for a time that never comes.

    1.0 has a form of its own, Blazar's.

    :param or_null: whether the time may be None
    """

    def __init__(
        self, blazars: Callable[[int], str | None], schema: Schema,
        or_null: bool = True,
    ) -> None:
        super().__init__(schema)
        self._blazars = blazars
        types = ['string', 'null'] if or_null else 'string'
        self._iso: Schema = {
            'type': types,
            'description': 'UTC, as in 2026-01-31T09:30:00Z',
            'format': 'date-time',
        }

    def schema(self, version: Version) -> Schema:
        return self._iso if version >= microversion.V1_1 else self._schema

    def show(self, value: int, version: Version) -> str | None:
        show = _with_zone if version >= microversion.V1_1 else self._blazars
        return show(value)


_PLANNED: Schema = {
    'type': 'string',
    'description': (
        'UTC, as in 2026-01-31T09:30:00.000000; '
        '2999-12-31T00:00:00.000000 means never'
    ),
}
# A planned time; 1.0 shows NO_END for a time that never comes.
DATE = _Time(_date, _PLANNED, or_null=False)
DATE_OR_NULL = _Time(_date, _PLANNED)
# A past time, None if it has not come.
STAMP = _Time(
    _stamp,
    {
        'type': ['string', 'null'],
        'description': 'UTC, as in 2026-01-31 09:30:00',
    },
)
_START = Field(
    'start_date', meaning.START, 1767229200, DATE, itemgetter('start')
)
_END = Field('end_date', meaning.END, 1767232800, DATE, itemgetter('end'))
WINDOW = (_START, dataclasses.replace(_END, type=DATE_OR_NULL))
# A window that has an end.
BOUNDED = (_START, _END)
CREATED_AT = Field('created_at', 'Time of creation', 1767225600, STAMP)
UPDATED_AT = Field('updated_at', 'Time of the last change', None, STAMP)
STAMPS = (CREATED_AT, UPDATED_AT)


def no_end(version: Version) -> int:
    """Return the end, in seconds, from which on a sent end counts as no end.

    In 1.0, that is the shown time, or a later time that a client has made of
    it.
    """
    return window.FOREVER if version >= microversion.V1_1 else NO_END
