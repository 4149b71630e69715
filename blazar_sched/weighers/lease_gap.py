# SPDX-License-Identifier: Apache-2.0
"""LeaseGapWeigher: short lifetimes into short gaps, long ones far from leases.

With a positive ``lease_gap_weight_multiplier``, a bounded instance goes to
the host with the shortest time between the end of the instance and the next
need for its room, so that long gaps stay whole; any other instance goes to
the host with the farthest next need. Where instances are relocated, of the
instances that outlast ``relocation_notice`` those that cannot be moved share
hosts, and the others use other hosts. A negative multiplier reverses the
orders. The metadata of a host's aggregates may override the multiplier.
"""

from collections.abc import Iterable
import math

from oslo_config import cfg

from blazar_sched.domain import window
from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import state
from blazar_sched.weighers import base
from blazar_sched.worker import magnetic
from blazar_sched.worker.request import Request

CONF = cfg.CONF

# A weight greater than the weight of any gap.
_BEST = 1 + math.log1p(base.FAR)


class LeaseGapWeigher(base.ReplicaWeigher):
    """Weigh hosts by the gap before the next lease.

    Weights are logarithms of seconds: an additional hour matters beside a gap
    of an hour, but not beside a gap of a month.
    """

    OPTION = 'lease_gap_weight_multiplier'

    def weigh(
        self, replica: state.Replica, request: Request,
        host_states: list[HostState], now: int,
    ) -> list[float]:
        horizons = base.horizons(replica, request, host_states, now)
        if request.preemptible or request.end == window.FOREVER:
            found = [math.log1p(h) for h in horizons]
        else:
            lives = request.end - now
            found = [
                # A gap that is too short gets the worst weight, in case a
                # filter lets the host pass.
                -math.log1p(h - lives if h >= lives else base.FAR)
                for h in horizons
            ]
        # Reserved hosts are used before hosts that are not reserved.
        own = {
            id(h)
            for h in magnetic.hosts_of_project(
                replica, request, host_states, now
            )
        }
        packed = _with_alike(replica, request, host_states, now)
        if not own and not packed:
            return found
        return [
            _BEST if id(h) in own
            else weight + _BEST if id(h) in packed else weight
            for h, weight in zip(host_states, found, strict=True)
        ]


def _with_alike(
    replica: state.Replica, request: Request, host_states: Iterable[HostState],
    now: int,
) -> set[int]:
    """Return the id() of the hosts that suit a fixed or a movable request.

    A fixed request suits the hosts with fixed instances, and a movable request
    the others: a lease of whole hosts can have a host without fixed instances.
    """
    total = replica.indexes.total
    beyond = now + replica.settings.rules.notice
    if (
        total is None or not total.fixed.latest or request.preemptible
        or request.end <= beyond
    ):
        return set()
    latest, fixed = total.fixed.latest, not request.movable
    return {
        id(h) for h in host_states
        if (latest.get(h.uuid, 0) > beyond) is fixed
    }
