# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for lease requests."""

from typing import cast
from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for lease requests."""

    @calls.repeatable('idempotency_key')
    def create_lease_request(
        self, *, values: Values, idempotency_key: str | None = None
    ) -> Values: ...

    @calls.reading
    def list_lease_requests(
        self, *, project_id: str | None, marker: str | None = None
    ) -> Page: ...

    @calls.reading
    def get_lease_request(
        self, *, request_id: str, project_id: str | None
    ) -> Values: ...

    def cancel_lease_request(
        self, *, request_id: str, project_id: str | None
    ) -> None: ...


def of(manager: calls.Calls) -> Calls:
    """Return the calls for lease requests to a manager."""
    return cast(Calls, manager)
