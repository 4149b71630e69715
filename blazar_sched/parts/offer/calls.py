# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for offers."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for offers."""

    @calls.reading
    def search_offers(self, *, values: Values) -> Values: ...

    def hold_offer(
        self, *, values: Values, seconds: int, approval: bool | None = None
    ) -> Values: ...

    @calls.repeatable('idempotency_key', 'dry_run')
    def accept_offer(
        self, *, values: Values, idempotency_key: str, dry_run: bool = False
    ) -> Values: ...

    def update_offer(
        self, *, offer_id: str, project_id: str | None, values: Values
    ) -> Values: ...


OFFERS = calls.noun('offer', 'offers', 'offer_id')
