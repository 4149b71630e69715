# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for lease requests."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for lease requests."""

    @calls.repeatable('idempotency_key')
    def create_lease_request(
        self, *, values: Values, idempotency_key: str | None = None
    ) -> Values: ...


LEASE_REQUESTS = calls.noun(
    'lease_request', 'lease_requests', 'request_id', delete='cancel'
)
