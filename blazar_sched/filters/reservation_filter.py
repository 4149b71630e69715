# SPDX-License-Identifier: Apache-2.0
"""ReservationFilter: who may use what a reservation holds."""

from collections import Counter
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova.scheduler import filters

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
    if asked.preemptible or not replica.dedicated:
        return host_states
    return [h for h in host_states if h.uuid not in replica.dedicated]


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
    # Tuples as they are: nouns would take ten times as long.
    held = {
        host: rest for _, host, *rest in replica.index.held(reservation_id)
    }
    drawn = _drawn(replica, reservation_id, asked.own_id)
    passing = []
    for h in host_states:
        if h.uuid not in held:
            continue
        start, end, amounts, whole = held[h.uuid]
        # Nova and Placement count what is on a host of one's own.
        if start <= now < end and (
            whole or _has_room(amounts, drawn.get(h.uuid, {}), asked, h)
        ):
            passing.append(h)
    return passing


def _drawn(
    replica: state.Replica, reservation_id: str, own_id: str | None
) -> dict[str, Counter[str]]:
    """What other instances have of the reservation, by host and class."""
    drawn: dict[str, Counter[str]] = defaultdict(Counter)
    for uuid in tuple(replica.bound.get(reservation_id, ())):
        known = replica.instances.get(uuid)
        if known is not None and uuid != own_id:
            drawn[known.host].update(known.amounts)
    return drawn


def _has_room(
    amounts: Sequence[int],
    drawn: Mapping[str, int],
    asked: request.Request,
    host_state: Any,
) -> bool:
    # Of one multi-create, Nova shows the same host states again and counts
    # what it has put there since the first look.
    first = vars(host_state).setdefault(
        'blazar_sched_num_instances', host_state.num_instances
    )
    copies = 1 + host_state.num_instances - first
    return all(
        drawn.get(resource_class, 0) + copies * amount <= limit
        for resource_class, amount, limit in zip(
            inventory.RESOURCE_CLASSES, asked.amounts, amounts, strict=True
        )
    )
