# SPDX-License-Identifier: Apache-2.0
"""ReservationFilter: passes hosts whose reservation the request may use."""

from collections import Counter
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools

from nova.scheduler import filters

from blazar_sched.domain import inventory
from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.window import Window
from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.worker import consumption
from blazar_sched.worker import filtering
from blazar_sched.worker import process
from blazar_sched.worker import reasons
from blazar_sched.worker import steps
from blazar_sched.worker.nova_objects import RequestSpec
from blazar_sched.worker.request import Request

# Start, end, amounts of the classes that are requested, whether it is whole.
_Allocation = tuple[int, int, tuple[int, ...], bool]


class ReservationFilter(filters.BaseHostFilter):
    """Pass a bound request only on hosts where its reservation has room.

    A request that is neither bound nor preemptible passes on no dedicated
    host.
    """

    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        process.prepare()

    def filter_all(
        self, filter_obj_list: Iterable[HostState], spec_obj: RequestSpec
    ) -> list[HostState]:
        return filtering.filter_hosts(
            'ReservationFilter', _steps, list(filter_obj_list), spec_obj
        )


def _steps(
    replica: state.Replica, request: Request, now: int
) -> Iterator[steps.Step]:
    if request.reservation_id is not None:
        yield from _bound(replica, request, request.reservation_id, now)
    elif not request.preemptible and replica.dedicated:
        yield _NotDedicated(replica)


def _bound(
    replica: state.Replica, request: Request, id_: str, now: int
) -> Iterator[steps.Step]:
    """Yield the steps to room in the reservation that the request names."""
    reservation = replica.reservations.get(id_)
    if reservation is None:
        # The id is arbitrary text of a user.
        shown = repr(id_[:64])
        yield _NoHost(f'there is no reservation {shown}')
    elif not reservation.is_open_to(request.project_id):
        yield _NoHost(
            f'reservation {id_} is not open to project {request.project_id}'
        )
    else:
        allocations = _allocations(replica, request, reservation)
        for step in _Allocated, _Open, _NotClosed, _WithRoom:
            yield step(replica, request, id_, now, allocations)


class _NoHost(steps.Step):
    """A check that no host passes."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def passing(self, host_states: list[HostState]) -> list[HostState]:
        return []

    def reason(self, host_state: HostState) -> str:
        return self._reason


class _NotDedicated(steps.Step):
    def __init__(self, replica: state.Replica) -> None:
        self._dedicated = replica.dedicated

    def passing(self, host_states: list[HostState]) -> list[HostState]:
        return [h for h in host_states if h.uuid not in self._dedicated]

    def reason(self, host_state: HostState) -> str:
        return 'the host is dedicated to reservations'


class _ReservedStep(steps.Step):
    """One check of the allocations of the request's reservation.

    :param allocations: see `_allocations`
    """

    def __init__(
        self, replica: state.Replica, request: Request, reservation_id: str,
        now: int, allocations: Mapping[str, _Allocation],
    ) -> None:
        self._replica = replica
        self._request = request
        self._id = reservation_id
        self._now = now
        self._allocations = allocations


class _Allocated(_ReservedStep):
    def passing(self, host_states: list[HostState]) -> list[HostState]:
        return [h for h in host_states if h.uuid in self._allocations]

    def reason(self, host_state: HostState) -> str:
        return f'reservation {self._id} has no allocation on the host'


class _Open(_ReservedStep):
    def passing(self, host_states: list[HostState]) -> list[HostState]:
        open_ = {
            host for host, (start, end, *_) in self._allocations.items()
            if start <= self._now < end
        }
        return [h for h in host_states if h.uuid in open_]

    def reason(self, host_state: HostState) -> str:
        start, end, *_ = self._allocations[host_state.uuid]
        when = (
            f'opens at {reasons.time(start)}' if self._now < start
            else f'closed at {reasons.time(end)}'
        )
        return f'the window of reservation {self._id} {when}'


class _NotClosed(_ReservedStep):
    def passing(self, host_states: list[HostState]) -> list[HostState]:
        hosts = self._replica.hosts
        return [
            h for h in host_states
            # Few hosts have closed windows.
            if (known := hosts.get(h.uuid)) is None
            or not (known.closed_windows and self._closed(h))
        ]

    def reason(self, host_state: HostState) -> str:
        return next(
            map(reasons.closed, self._closed(host_state)),
            'the host was closed a moment ago',
        )

    def _closed(self, host_state: HostState) -> tuple[ClosedWindow, ...]:
        known = self._replica.hosts.get(host_state.uuid)
        if known is None:
            return ()
        return known.closed_in(Window(self._now, self._now + 1))


class _WithRoom(_ReservedStep):
    """Check what the reservation has left on each host."""

    def passing(self, host_states: list[HostState]) -> list[HostState]:
        recent = self._recent(host_states)
        # Most of many hosts have the same, and nothing in it: these are
        # checked once.
        alike: dict[tuple[int, ...], bool] = {}
        passing = []
        for h in host_states:
            uuid = h.uuid
            *_, limits, whole = self._allocations[uuid]
            if whole:
                # Nova and Placement count the instances on the host.
                passing.append(h)
                continue
            if uuid in self._used or id(h) in recent:
                fits = not self._lacking(h, recent)
            else:
                if limits not in alike:
                    alike[limits] = not self._lacking(h, recent)
                fits = alike[limits]
            if fits:
                passing.append(h)
        return passing

    def reason(self, host_state: HostState) -> str:
        lacks = '; '.join(
            f'{left} {name} left, {wanted} requested'
            for name, left, wanted
            in self._lacking(host_state, self._recent([host_state]))
        )
        return (
            f'reservation {self._id} has too little left on the host: {lacks}'
        )

    @functools.cached_property
    def _used(self) -> Mapping[str, Counter[str]]:
        return _used(self._replica, self._id, self._request.own_id)

    def _recent(
        self, host_states: list[HostState]
    ) -> dict[int, list[Instance]]:
        """Return the instances placed recently, by id() of HostState."""
        return consumption.placed_recently(
            self._replica, self._request, host_states, self._pending
        )

    @functools.cached_property
    def _pending(self) -> Mapping[str, Sequence[Instance]]:
        return process.ensure_started().pending.by_host(self._replica)

    def _lacking(
        self, host_state: HostState, recent: Mapping[int, Sequence[Instance]]
    ) -> list[tuple[str, int, int]]:
        """Return the resource classes of which a host has too little left.

        :param recent: the instances placed recently, by id() of HostState
        :returns: the name, the amount left, and the amount wanted
        """
        uuid = host_state.uuid
        used = Counter(self._used.get(uuid))
        for other in recent.get(id(host_state), ()):
            if other.reservation_id == self._id:
                used.update(other.amounts)
        *_, limits, _ = self._allocations[uuid]
        return [
            (name, max(0, limit - used[name]), amount)
            for (name, amount), limit in zip(
                self._request.by_class.items(), limits, strict=True
            )
            if amount and used[name] + amount > limit
        ]


def _allocations(
    replica: state.Replica, request: Request, reservation: record.Reservation
) -> dict[str, _Allocation]:
    """Return the allocations by host."""
    if not request.extra and not inventory.others(reservation.slot or {}):
        # Plain tuples: building named objects would take ten times as long.
        return {
            host: (start, end, amounts, whole)
            for _, host, start, end, amounts, whole
            in replica.indexes.main.held(reservation.id)
        }
    return {
        host: (
            allocated.start,
            allocated.end,
            tuple(allocated.amounts.get(name, 0) for name in request.by_class),
            allocated.whole,
        )
        for host, allocated in replica.indexes.allocations(
            reservation.id
        ).items()
    }


def _used(
    replica: state.Replica, reservation_id: str, own_id: str | None
) -> dict[str, Counter[str]]:
    """Return the amounts that other instances use, by host and class."""
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for uuid in tuple(replica.bound.get(reservation_id, ())):
        known = replica.instances.get(uuid)
        if known is not None and uuid != own_id:
            used[known.host].update(known.amounts)
    return used
