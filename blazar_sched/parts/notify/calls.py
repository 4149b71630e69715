# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for webhooks."""

from typing import cast
from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for webhooks."""

    def create_webhook(self, *, values: Values) -> Values: ...

    @calls.reading
    def list_webhooks(
        self, *, project_id: str | None, marker: str | None = None
    ) -> Page: ...

    @calls.reading
    def get_webhook(
        self, *, webhook_id: str, project_id: str | None
    ) -> Values: ...

    def delete_webhook(
        self, *, webhook_id: str, project_id: str | None
    ) -> None: ...


def of(manager: calls.Calls) -> Calls:
    """Return the calls for webhooks to a manager."""
    return cast(Calls, manager)
