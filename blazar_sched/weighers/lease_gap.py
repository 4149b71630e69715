# SPDX-License-Identifier: Apache-2.0
"""LeaseGapWeigher: short lives into short gaps, long ones far from leases.

With a positive ``lease_gap_weight_multiplier``, a bounded instance goes where
the time between its end and the next need for its room is the shortest, so
that long gaps stay whole; any other one goes where the next need is the
farthest. A negative multiplier turns both around. A host may be weighed
otherwise by the metadata of its aggregates.
"""

import math
from typing import Any

from blazar_sched.domain import window
from blazar_sched.replica import state
from blazar_sched.weighers import base
from blazar_sched.worker import magnetic
from blazar_sched.worker import request

# More than any gap.
_BEST = 1 + math.log1p(base.FAR)


class LeaseGapWeigher(base.ReplicaWeigher):
    """Weigh hosts by the gap before the next lease.

    Weights are logarithms of seconds: an hour more counts next to a gap of
    an hour, not next to one of a month.
    """

    OPTION = 'lease_gap_weight_multiplier'

    def weigh(
        self,
        replica: state.Replica,
        asked: request.Request,
        host_states: list[Any],
        now: int,
    ) -> list[float]:
        horizons = base.horizons(replica, asked, host_states, now)
        if asked.preemptible or asked.end == window.FOREVER:
            found = [math.log1p(h) for h in horizons]
        else:
            lives = asked.end - now
            found = [
                # Too short a gap is the worst, were it let through.
                -math.log1p(h - lives if h >= lives else base.FAR)
                for h in horizons
            ]
        # What is reserved is used before what is not.
        own = {id(h) for h in magnetic.drawn(replica, asked, host_states, now)}
        if not own:
            return found
        return [
            _BEST if id(h) in own else weight
            for h, weight in zip(host_states, found, strict=True)
        ]
