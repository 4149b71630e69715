# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for floating IPs."""

from typing import cast
from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for floating IPs."""

    def create_floating_ip(
        self, *, network_id: str, address: str
    ) -> Values: ...

    @calls.reading
    def list_floating_ips(self, *, marker: str | None = None) -> Page: ...

    @calls.reading
    def get_floating_ip(self, *, floating_ip_id: str) -> Values: ...

    def delete_floating_ip(self, *, floating_ip_id: str) -> None: ...


def of(manager: calls.Calls) -> Calls:
    """Return the calls for floating IPs to a manager."""
    return cast(Calls, manager)
