# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for calendars."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for calendars."""

    def create_calendar(self, *, values: Values) -> Values: ...

    @calls.reading
    def read_calendar(self, *, digest: str) -> Values: ...


CALENDARS = calls.noun('calendar', 'calendars', 'calendar_id')
