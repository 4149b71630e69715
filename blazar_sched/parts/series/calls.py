# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for series."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for series."""

    @calls.repeatable('idempotency_key', 'dry_run')
    def create_series(
        self, *, values: Values, idempotency_key: str | None = None,
        dry_run: bool = False, names: bool = False,
    ) -> Values: ...

    @calls.repeatable('dry_run')
    def update_series(
        self, *, series_id: str, project_id: str | None, values: Values,
        since: str | None = None, dry_run: bool = False,
        names: bool | None = None,
    ) -> Values: ...


ALL_SERIES = calls.noun('series', 'series', 'series_id')
