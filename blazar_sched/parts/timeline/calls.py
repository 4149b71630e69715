# SPDX-License-Identifier: Apache-2.0
"""The call of the API to the manager for the timeline."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The call for the timeline."""

    @calls.reading
    def get_timeline(
        self, *, known: list[str], project_id: str, names: bool, group_by: str,
        start: int | None, end: int | None, resource_properties: str,
        resource_class: str | None, parts: int | None, limit: int | None,
        marker: str | None,
    ) -> Values: ...
