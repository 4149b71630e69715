# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for maintenances."""

from typing import cast
from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for maintenances."""

    @calls.repeatable('dry_run')
    def create_maintenance(
        self, *, values: Values, force: bool = False, dry_run: bool = False
    ) -> Values: ...

    @calls.reading
    def list_maintenances(self, *, marker: str | None = None) -> Page: ...

    @calls.reading
    def get_maintenance(self, *, maintenance_id: str) -> Values: ...

    @calls.repeatable('dry_run')
    def update_maintenance(
        self, *, maintenance_id: str, values: Values, force: bool = False,
        dry_run: bool = False,
    ) -> Values: ...

    def delete_maintenance(self, *, maintenance_id: str) -> None: ...


def of(manager: calls.Calls) -> Calls:
    """Return the calls for maintenances to a manager."""
    return cast(Calls, manager)
