# SPDX-License-Identifier: Apache-2.0
"""The call of the API to the manager for the report of the usage."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Page


@calls.declared
class Calls(Protocol):
    """The call for the report."""

    @calls.reading
    def list_usage(
        self, *, project_id: str | None, start: int | None, end: int | None,
        group_by: list[str],
    ) -> Page: ...
