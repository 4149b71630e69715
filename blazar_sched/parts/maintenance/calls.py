# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for maintenances."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for maintenances, beside those of the noun."""

    @calls.repeatable('dry_run')
    def create_maintenance(
        self, *, values: Values, force: bool = False, dry_run: bool = False
    ) -> Values: ...

    @calls.repeatable('dry_run')
    def update_maintenance(
        self, *, maintenance_id: str, values: Values, force: bool = False,
        dry_run: bool = False,
    ) -> Values: ...


MAINTENANCES = calls.noun(
    'maintenance', 'maintenances', 'maintenance_id', owned=False
)
