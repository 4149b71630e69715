# SPDX-License-Identifier: Apache-2.0
"""DeviceWeigher: hosts with free devices for instances that need devices.

With a positive ``device_weight_multiplier``, an instance goes to the host on
which devices that the instance does not ask for are free for the shortest part
of its life. A device that is used or reserved meanwhile could serve no other
instance, so the host of such a device is as good as a host without devices.
"""

import math

from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import state
from blazar_sched.weighers import base
from blazar_sched.worker.request import Request


class DeviceWeigher(base.ReplicaWeigher):
    """Weigh hosts by how long devices are free while the instance is there.

    The devices are all resource classes of hosts beside VCPU, MEMORY_MB and
    DISK_GB. Weights are logarithms of seconds.
    """

    OPTION = 'device_weight_multiplier'

    def weigh(
        self, replica: state.Replica, request: Request,
        host_states: list[HostState], now: int,
    ) -> list[float] | None:
        classes = replica.indexes.extra.keys() - request.extra.keys()
        if not classes:
            return None
        life = min(request.end - now, base.FAR)
        free = replica.indexes.free_seconds(
            [h.uuid for h in host_states], now, classes
        )
        return [-math.log1p(max(0, min(each, life))) for each in free]
