# SPDX-License-Identifier: Apache-2.0
"""Times in Blazar's two forms, from whole seconds since 1970 UTC."""

import datetime

from blazar_sched.domain import window


def date(seconds: int) -> str | None:
    """``2026-01-31T09:30:00.000000``, None for one that never comes."""
    if seconds == window.FOREVER:
        return None
    return _utc(seconds).strftime('%Y-%m-%dT%H:%M:%S.%f')


def stamp(seconds: int | None) -> str | None:
    """``2026-01-31 09:30:00``, None for what has not been."""
    if seconds is None:
        return None
    return _utc(seconds).strftime('%Y-%m-%d %H:%M:%S')


def _utc(seconds: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
