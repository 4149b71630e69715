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
from blazar_sched.replica import record
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
    reservation = replica.reservations.get(asked.reservation_id)
    if reservation is None or not reservation.is_open_to(asked.project_id):
        return []
    held = _held(replica, asked, reservation)
    drawn = _drawn(replica, reservation.id, asked.own_id)
    needs = asked.by_class
    passing = []
    for h in host_states:
        if h.uuid not in held:
            continue
        start, end, amounts, whole = held[h.uuid]
        # Nova and Placement count what is on a host of one's own.
        if start <= now < end and (
            whole or _has_room(amounts, drawn.get(h.uuid, {}), needs, h)
        ):
            passing.append(h)
    return passing


def _held(
    replica: state.Replica,
    asked: request.Request,
    reservation: record.Reservation,
) -> dict[str, Sequence[Any]]:
    """What it holds by host: start, end, the amounts asked for, whole."""
    if not asked.extra and not inventory.others(reservation.slot or {}):
        # Tuples as they are: nouns would take ten times as long.
        return {
            host: rest
            for _, host, *rest in replica.index.held(reservation.id)
        }
    return {
        host: (
            held.start, held.end,
            [held.amounts.get(name, 0) for name in asked.by_class], held.whole,
        )
        for host, held in replica.held(reservation.id).items()
    }


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
    needs: Mapping[str, int],
    host_state: Any,
) -> bool:
    copies = decision.copies(host_state)
    return all(
        drawn.get(name, 0) + copies * amount <= limit
        for (name, amount), limit in zip(
            needs.items(), amounts, strict=True
        )
    )
