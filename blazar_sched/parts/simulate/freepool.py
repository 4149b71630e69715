# SPDX-License-Identifier: Apache-2.0
"""Blazar's rule: a host that is kept for leases is closed to other requests.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping

from nova.scheduler import filters

from blazar_sched.domain import hints
from blazar_sched.ext.host_state import HostState
from blazar_sched.worker.nova_objects import RequestSpec

# The ids of the reservations that have a host now, by the uuid of each host of
# the pool. Blazar keeps them as aggregates.
Held = Mapping[str, Collection[str]]


class FreepoolFilter(filters.BaseHostFilter):
    """Pass a request on the hosts of its reservation, or of no lease.

    A request that names a reservation passes only on hosts that the
    reservation has now; any other request passes only on hosts outside the
    pool. The filter answers as BlazarFilter does without `allow_preemptibles`.
    """

    RUN_ON_REBUILD = False

    def __init__(self, held: Held) -> None:
        self._held = held

    def filter_all(
        self, filter_obj_list: Iterable[HostState], spec_obj: RequestSpec
    ) -> list[HostState]:
        held = self._held
        asked = spec_obj.get_scheduler_hint(hints.RESERVATION)
        if asked is None:
            return [h for h in filter_obj_list if h.uuid not in held]
        return [h for h in filter_obj_list if asked in held.get(h.uuid, ())]
