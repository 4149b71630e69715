# SPDX-License-Identifier: Apache-2.0
"""VacateCostWeigher: preemptible instances where few have to be vacated.

With a positive ``vacate_cost_weight_multiplier``, a preemptible instance goes
to the host with the least memory of preemptible instances that have to be
vacated when the next lease needs the host's room. For other instances the
weigher has no weights: such an instance does not pass on a host that it would
have to vacate.
"""

import math

from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import state
from blazar_sched.weighers import base
from blazar_sched.worker.request import Request


class VacateCostWeigher(base.ReplicaWeigher):
    """Weigh hosts by the memory to be vacated at the next need.

    Weights are logarithms of MB: an additional 1 GB matters beside 1 GB, but
    not beside 100 GB.
    """

    OPTION = 'vacate_cost_weight_multiplier'

    def weigh(
        self, replica: state.Replica, request: Request,
        host_states: list[HostState], now: int,
    ) -> list[float] | None:
        if not request.preemptible:
            return None
        horizons = base.horizons(replica, request, host_states, now)
        return [
            -math.log1p(max(0, replica.preemptible_mb[h.uuid]))
            if horizon < base.FAR
            else 0.0
            for h, horizon in zip(host_states, horizons, strict=True)
        ]
