# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to the manager for floating IPs."""

from typing import Protocol

from blazar_sched.service.bus import calls
from blazar_sched.service.bus.calls import Values


@calls.declared
class Calls(Protocol):
    """The calls for floating IPs."""

    def create_floating_ip(
        self, *, network_id: str, address: str
    ) -> Values: ...


FLOATING_IPS = calls.noun(
    'floating_ip', 'floating_ips', 'floating_ip_id', owned=False
)
