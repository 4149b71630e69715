# SPDX-License-Identifier: Apache-2.0
"""ReservationFilter: passes hosts whose reservation the request may use."""

from collections import Counter
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from nova.scheduler import filters

from blazar_sched.domain import inventory
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import answer
from blazar_sched.worker import consumption
from blazar_sched.worker import process
from blazar_sched.worker import reasons
from blazar_sched.worker import request
from blazar_sched.worker import steps


class ReservationFilter(filters.BaseHostFilter):
    """Pass a bound request only on hosts where its reservation has room.

    A request that is neither bound nor preemptible passes on no dedicated
    host.
    """

    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        process.prepare()

    def filter_all(
        self, filter_obj_list: Iterable[Any], spec_obj: Any
    ) -> list[Any]:
        return answer.decide(
            'ReservationFilter', _steps, list(filter_obj_list), spec_obj
        )


def _steps(
    replica: state.Replica, asked: request.Request, now: int
) -> Iterator[steps.Step]:
    if asked.reservation_id is not None:
        yield from _bound(replica, asked, asked.reservation_id, now)
    elif not asked.preemptible and replica.dedicated:
        yield steps.Step(
            lambda host_states: [
                h for h in host_states if h.uuid not in replica.dedicated
            ],
            lambda host_state: 'it is held dedicated, for reservations alone',
        )


def _bound(
    replica: state.Replica, asked: request.Request, id_: str, now: int
) -> Iterator[steps.Step]:
    """Yield the steps to room in the reservation that the request names."""
    reservation = replica.reservations.get(id_)
    if reservation is None:
        # The id is arbitrary text of a user.
        shown = repr(id_[:64])
        yield steps.nobody(f'there is no reservation {shown}')
    elif not reservation.is_open_to(asked.project_id):
        yield steps.nobody(
            f'reservation {id_} is not open to project {asked.project_id}'
        )
    else:
        held = _Held(replica, asked, reservation, now)
        yield steps.Step(held.on, held.why_not_on)
        yield steps.Step(held.open, held.why_not_open)
        yield steps.Step(held.with_room, held.why_no_room)


class _Held:
    """The allocations of a reservation by host, and the room left in them."""

    def __init__(
        self,
        replica: state.Replica,
        asked: request.Request,
        reservation: record.Reservation,
        now: int,
    ) -> None:
        self._replica = replica
        self._asked = asked
        self._id = reservation.id
        self._now = now
        self._held = _held(replica, asked, reservation)
        self._drawn = _drawn(replica, reservation.id, asked.own_id)
        self._needs = asked.by_class

    def on(self, host_states: list[Any]) -> list[Any]:
        return [h for h in host_states if h.uuid in self._held]

    def why_not_on(self, host_state: Any) -> str:
        return f'reservation {self._id} has no allocation on it'

    def open(self, host_states: list[Any]) -> list[Any]:
        return [
            h for h in host_states
            if self._held[h.uuid][0] <= self._now < self._held[h.uuid][1]
        ]

    def why_not_open(self, host_state: Any) -> str:
        start, end, *_ = self._held[host_state.uuid]
        when = (
            f'opens at {reasons.time(start)}' if self._now < start
            else f'closed at {reasons.time(end)}'
        )
        return f'the window of reservation {self._id} {when}'

    def with_room(self, host_states: list[Any]) -> list[Any]:
        late = consumption.beside(self._replica, self._asked, host_states)
        # On a host that is reserved as a whole, Nova and Placement count
        # the instances.
        return [
            h for h in host_states
            if self._held[h.uuid][3] or not self._lacks(h, late)
        ]

    def why_no_room(self, host_state: Any) -> str:
        late = consumption.beside(self._replica, self._asked, [host_state])
        lacks = '; '.join(
            f'{left} {name} left, {wanted} wanted'
            for name, left, wanted in self._lacks(host_state, late)
        )
        return f'of what reservation {self._id} has on it: {lacks}'

    def _lacks(
        self, host_state: Any, late: Mapping[int, list[request.Request]]
    ) -> list[tuple[str, int, int]]:
        """Return the resource classes of which too little is left.

        :param late: the requests placed recently beside it, by id() of
            HostState
        :returns: for each class the amount left, and the amount wanted
        """
        *_, amounts, _ = self._held[host_state.uuid]
        drawn: Mapping[str, int] = self._drawn.get(host_state.uuid, {})
        for other in late.get(id(host_state), ()):
            if other.reservation_id == self._id:
                drawn = Counter(drawn)
                drawn.update(other.by_class)
        copies = steps.copies(host_state)
        return [
            (name, max(0, limit - drawn.get(name, 0)), copies * amount)
            for (name, amount), limit in zip(
                self._needs.items(), amounts, strict=True
            )
            if amount and drawn.get(name, 0) + copies * amount > limit
        ]


def _held(
    replica: state.Replica,
    asked: request.Request,
    reservation: record.Reservation,
) -> dict[str, Sequence[Any]]:
    """Return the allocations by host: start, end, requested amounts, whole."""
    if not asked.extra and not inventory.others(reservation.slot or {}):
        # Plain tuples: building named objects would take ten times as long.
        return {
            host: rest
            for _, host, *rest in replica.indexes.main.held(reservation.id)
        }
    return {
        host: (
            held.start, held.end,
            [held.amounts.get(name, 0) for name in asked.by_class], held.whole,
        )
        for host, held in replica.indexes.allocations(reservation.id).items()
    }


def _drawn(
    replica: state.Replica, reservation_id: str, own_id: str | None
) -> dict[str, Counter[str]]:
    """Return the amounts that other instances use, by host and class."""
    drawn: dict[str, Counter[str]] = defaultdict(Counter)
    for uuid in tuple(replica.bound.get(reservation_id, ())):
        known = replica.instances.get(uuid)
        if known is not None and uuid != own_id:
            drawn[known.host].update(known.amounts)
    return drawn
