# SPDX-License-Identifier: Apache-2.0
"""The call of the API to the manager for the products."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Page


@calls.declared
class Calls(Protocol):
    """The call for the products."""

    @calls.reading
    def list_products(
        self, *, project_id: str, start: int | str, end: int | None
    ) -> Page: ...
