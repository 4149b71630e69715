# SPDX-License-Identifier: Apache-2.0
"""The refusals about calendars."""

from blazar_sched.domain import exception


class MaxCalendars(exception.LimitExceeded):
    """The project would have too many calendars."""


class CalendarNotFound(exception.NotFound):
    """There is no such calendar, or it belongs to another project."""


EXCEPTIONS = (MaxCalendars, CalendarNotFound)
