# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for calendars."""

from typing import cast
from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for calendars."""

    def create_calendar(self, *, values: Values) -> Values: ...

    @calls.reading
    def list_calendars(
        self, *, project_id: str | None, marker: str | None = None
    ) -> Page: ...

    @calls.reading
    def get_calendar(
        self, *, calendar_id: str, project_id: str | None
    ) -> Values: ...

    def delete_calendar(
        self, *, calendar_id: str, project_id: str | None
    ) -> None: ...

    @calls.reading
    def read_calendar(self, *, digest: str) -> Values: ...


def of(manager: calls.Calls) -> Calls:
    """Return the calls for calendars to a manager."""
    return cast(Calls, manager)
