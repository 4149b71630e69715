# SPDX-License-Identifier: Apache-2.0
"""Times in Blazar's two forms, from whole seconds since 1970 UTC."""

import datetime
import functools

from blazar_sched.domain import window

_EPOCH = datetime.datetime(1970, 1, 1)
# A lease shows most of its times more than once.
_remembering = functools.lru_cache(maxsize=1024)


@_remembering
def date(seconds: int) -> str | None:
    """``2026-01-31T09:30:00.000000``, None for one that never comes."""
    if seconds == window.FOREVER:
        return None
    return _utc(seconds).isoformat(timespec='microseconds')


@_remembering
def stamp(seconds: int | None) -> str | None:
    """``2026-01-31 09:30:00``, None for what has not been."""
    if seconds is None:
        return None
    return _utc(seconds).isoformat(' ')


def _utc(seconds: int) -> datetime.datetime:
    """Return a time without a zone: none of the two forms shows it."""
    return _EPOCH + datetime.timedelta(seconds=seconds)
