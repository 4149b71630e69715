# SPDX-License-Identifier: Apache-2.0
"""ExpectedEndWeigher: instances that probably end together, on one host.

With a positive ``expected_end_weight_multiplier``, an unbounded instance goes
to a host that other instances will probably use as long, so that hosts become
empty at once. The weigher only orders hosts that pass all filters: what it
expects may be wrong.
"""

import math

from blazar_sched.domain import window
from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import state
from blazar_sched.weighers import base
from blazar_sched.worker.request import Request


class ExpectedEndWeigher(base.ReplicaWeigher):
    """Weigh hosts by how much longer an instance will probably use the host.

    A host whose room is needed before that has the worst weight. Weights are
    logarithms of seconds. The score is that of NILAS in LAVA: see
    `domain.lifetime_history`.
    """

    OPTION = 'expected_end_weight_multiplier'

    def weigh(
        self,
        replica: state.Replica,
        request: Request,
        host_states: list[HostState],
        now: int,
    ) -> list[float] | None:
        if (
            not self._multiplier or request.preemptible
            or request.end != window.FOREVER
        ):
            return None
        own = request.own
        end = replica.expected_ends.end(
            request.server.project_id, request.server.amounts,
            now if own is None else own.created, now,
        )
        if end == window.FOREVER:
            return None
        latest = replica.expected_ends.latest(
            (h.uuid for h in host_states), now
        )
        horizons = base.horizons(replica, request, host_states, now)
        return [
            -math.log1p(max(0, end - last) if horizon >= end - now
                        else base.FAR)
            for last, horizon in zip(latest, horizons, strict=True)
        ]
