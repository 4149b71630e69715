# SPDX-License-Identifier: Apache-2.0
"""Times as text, from whole seconds since 1970 UTC: one form per version."""

from collections.abc import Callable
import dataclasses
import datetime
import functools

import microversion_parse

from blazar_sched.domain import window
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning

_EPOCH = datetime.datetime(1970, 1, 1)
# The end that 1.0 shows for no end, in seconds: 2999-12-31. Blazar's clients
# read a date in every field of a date, and add to it.
NO_END = 32503593600
# Cached, because a lease shows most of its times more than once.
_remembering = functools.lru_cache(maxsize=1024)


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """The form of times: `date` is for planned times, `stamp` for past times.

    `date` shows a time that never comes as None, except in 1.0, which shows it
    as NO_END; `stamp` shows a time that has not come as None. `date_schema`
    describes the result of `date`, `stamps_schema` the stamps of any noun. An
    end that a client sends counts as no end from `no_end` on, in seconds.
    """

    date: Callable[[int], str | None]
    stamp: Callable[[int | None], str | None]
    date_schema: validation.Schema
    stamps_schema: dict[str, validation.Schema]
    no_end: int = window.FOREVER


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


def _schema(example: str, **form: str) -> validation.Schema:
    return {
        'type': ['string', 'null'],
        'description': f'UTC, as in {example}',
        **form,
    }


def _stamps(schema: validation.Schema) -> dict[str, validation.Schema]:
    return {
        'created_at': meaning.said('When it was made', schema),
        'updated_at': meaning.said('When it was changed', schema),
    }


_BLAZARS = Form(
    _date,
    _stamp,
    {
        **_schema('2026-01-31T09:30:00.000000'),
        'type': 'string',
        'description': (
            'UTC, as in 2026-01-31T09:30:00.000000; what never comes is '
            '2999-12-31T00:00:00.000000'
        ),
    },
    _stamps(_schema('2026-01-31 09:30:00')),
    # The time shown for no end, or a time that a client has added to it.
    NO_END,
)
_ISO_SCHEMA = _schema('2026-01-31T09:30:00Z', format='date-time')
_ISO = Form(_with_zone, _with_zone, _ISO_SCHEMA, _stamps(_ISO_SCHEMA))


def form(version: microversion_parse.Version) -> Form:
    """Return the form in which a version of the API writes times."""
    return _ISO if version >= microversion.V1_1 else _BLAZARS


def _utc(seconds: int) -> datetime.datetime:
    """Return a time without a zone; a caller that shows the zone adds it."""
    return _EPOCH + datetime.timedelta(seconds=seconds)
