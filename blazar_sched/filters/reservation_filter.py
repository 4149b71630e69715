# SPDX-License-Identifier: Apache-2.0
"""ReservationFilter: who may use what a reservation holds."""

from collections.abc import Iterable
from typing import Any

from nova.scheduler import filters

from blazar_sched.domain import allocation
from blazar_sched.domain import host
from blazar_sched.domain import inventory
from blazar_sched.filters import decision
from blazar_sched.replica import request
from blazar_sched.replica import state
from blazar_sched.replica import worker


class ReservationFilter(filters.BaseHostFilter):
    """Pass a bound request where its reservation has room, and only there.

    What is neither bound nor preemptible keeps off dedicated hosts.
    """

    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        worker.prepare()

    def filter_all(
        self, filter_obj_list: Iterable[Any], spec_obj: Any
    ) -> list[Any]:
        return decision.decide(
            'ReservationFilter', _passing, list(filter_obj_list), spec_obj
        )


def _passing(
    replica: state.Replica,
    asked: request.Request,
    host_states: list[Any],
    now: int,
) -> list[Any]:
    if asked.reservation_id is not None:
        return _holding(replica, asked, host_states, now)
    if asked.preemptible:
        return host_states
    return [
        h for h in host_states
        if (known := replica.hosts.get(h.uuid)) is None
        or known.hold != host.DEDICATED
    ]


def _holding(
    replica: state.Replica,
    asked: request.Request,
    host_states: list[Any],
    now: int,
) -> list[Any]:
    """Those with room for it in the reservation that it names."""
    reservation_id = asked.reservation_id
    reservation = replica.reservations.get(reservation_id)
    if reservation is None or reservation.project_id != asked.project_id:
        return []
    held = replica.by_reservation.get(reservation_id, {})
    return [
        h for h in host_states
        if (allocated := held.get(h.uuid)) is not None
        and allocated.start <= now < allocated.end
        and _has_room(replica, asked, allocated, h)
    ]


def _has_room(
    replica: state.Replica,
    asked: request.Request,
    allocated: allocation.Allocation,
    host_state: Any,
) -> bool:
    if allocated.whole:
        # Nova and Placement count what is on a host of one's own.
        return True
    # Of one multi-create, Nova shows the same host states again and counts
    # what it has put there since the first look.
    first = vars(host_state).setdefault(
        'blazar_sched_num_instances', host_state.num_instances
    )
    copies = 1 + host_state.num_instances - first
    drawing = [
        known
        for uuid in tuple(replica.bound.get(allocated.reservation_id, ()))
        if (known := replica.instances.get(uuid)) is not None
        and known.host == allocated.host
        and uuid != asked.own_id
    ]
    return all(
        sum(known.amounts.get(resource_class, 0) for known in drawing)
        + copies * amount
        <= allocated.amounts.get(resource_class, 0)
        for resource_class, amount in zip(
            inventory.RESOURCE_CLASSES, asked.amounts, strict=True
        )
    )
