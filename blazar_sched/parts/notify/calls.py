# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for webhooks."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for webhooks."""

    def create_webhook(self, *, values: Values) -> Values: ...


WEBHOOKS = calls.noun('webhook', 'webhooks', 'webhook_id')
