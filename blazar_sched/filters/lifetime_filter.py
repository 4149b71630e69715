# SPDX-License-Identifier: Apache-2.0
"""LifetimeFilter: admits requests to reservable hosts until a need arises."""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import functools
from typing import Any

from nova.scheduler import filters
from oslo_config import cfg

from blazar_sched import ext
from blazar_sched.domain import duration
from blazar_sched.domain import window
from blazar_sched.replica import present
from blazar_sched.replica import state
from blazar_sched.worker import consumption
from blazar_sched.worker import filtering
from blazar_sched.worker import process
from blazar_sched.worker import reasons
from blazar_sched.worker import steps
from blazar_sched.worker.nova_objects import count_copies
from blazar_sched.worker.request import Request

CONF = cfg.CONF

_policy = functools.lru_cache(duration.parse_unbounded)


class LifetimeFilter(filters.BaseHostFilter):
    """Pass an unbound request on hosts with room for the instance's lifetime.

    Options: ``unbounded``, ``default_lifetime``, ``max_backfill_lifetime``
    and ``min_preemptible_runtime`` of ``[blazar_sched]``.
    """

    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        process.prepare()

    def filter_all(
        self, filter_obj_list: Iterable[Any], spec_obj: Any
    ) -> list[Any]:
        return filtering.filter_hosts(
            'LifetimeFilter', _steps, list(filter_obj_list), spec_obj
        )


def _steps(
    replica: state.Replica, request: Request, now: int
) -> Iterator[steps.Step]:
    if request.bound:
        # A bound request has its room in its reservation: see
        # ReservationFilter.
        return
    need = _Need(replica, request, now)
    yield steps.Step(need.admitted, need.why_not_admitted)
    yield steps.Step(need.with_room, need.why_no_room)
    yield steps.Step(need.with_room_beside, need.why_no_room_beside)
    for name in request.extra:
        # A host without inventory of a class has the class, if at all, in
        # a child resource provider, which nobody can reserve.
        index = replica.indexes.extra.get(name)
        if index is not None:
            yield steps.Step(
                functools.partial(need.with_room_of, name, index),
                functools.partial(need.why_no_room_of, name, index),
            )


class _Need:
    """The room that a request needs on each host, from now on."""

    def __init__(
        self, replica: state.Replica, request: Request, now: int
    ) -> None:
        self.request = request
        self.now = now
        self._replica = replica
        self._is_unbounded = False
        options = CONF.blazar_sched
        longest = options.max_backfill_lifetime
        # The end of the need; None: reservable hosts refuse the request.
        self._end: int | None = request.end
        if request.preemptible:
            self._end = duration.end_after(
                now, options.min_preemptible_runtime
            )
        elif request.end == window.FOREVER:
            self._end = self._end_by(options.unbounded)
            self._is_unbounded = True
        elif longest and request.end - now > longest:
            self._end = None

    def _end_by(self, policy: str) -> int | None:
        return _policy(policy, 'unbounded').end(self.now)

    def end(self, host_state: Any) -> int | None:
        """Return the end by the host's own policy, else by the cloud's."""
        if self._is_unbounded:
            known = self._replica.hosts.get(host_state.uuid)
            if known is not None and known.unbounded is not None:
                return self._end_by(known.unbounded)
        return self._end

    def by_end(
        self, host_states: list[Any]
    ) -> Iterable[tuple[int | None, list[Any]]]:
        if not (self._is_unbounded and self._replica.with_policy):
            return [(self._end, host_states)]
        groups: dict[int | None, list[Any]] = defaultdict(list)
        for h in host_states:
            groups[self.end(h)].append(h)
        return groups.items()

    def select(
        self, host_states: list[Any], amounts: tuple[int, ...]
    ) -> list[Any]:
        """Return the hosts with room for amounts until the end of the need."""
        return self._select(
            host_states,
            lambda group, end: self._replica.present.select(
                self._replica.indexes.main, group, self.now, end, amounts,
                self.request.own_id,
            ),
        )

    def _select(
        self,
        host_states: list[Any],
        look: Callable[[list[Any], int], list[Any]],
    ) -> list[Any]:
        return steps.either(
            host_states,
            *(
                # A group without an end needs no room: its hosts are in no
                # index.
                group if end is None else look(group, end)
                for end, group in self.by_end(host_states)
            ),
        )

    def why_not(self, host_state: Any, amounts: tuple[int, ...]) -> str:
        index = self._replica.indexes.main
        headroom = self._replica.present.headroom(
            index, [host_state], self.request.own_id
        )
        return self._why_not(index, host_state, headroom, amounts)

    def _why_not(
        self,
        index: ext.TimelineIndex,
        host_state: Any,
        headroom: present.Headroom,
        amounts: tuple[int, ...],
    ) -> str:
        end = self.end(host_state)
        assert end is not None
        return reasons.no_room(index, headroom, self.now, end, amounts)

    def admitted(self, host_states: list[Any]) -> list[Any]:
        return steps.either(
            host_states,
            *(
                group if end is not None
                else [h for h in group if h.uuid not in self._replica.hosts]
                for end, group in self.by_end(host_states)
            ),
        )

    def why_not_admitted(self, host_state: Any) -> str:
        if self._is_unbounded:
            return (
                'the host admits no instance without an end: unbounded = never'
            )
        return (
            f'the instance lives for {self.request.end - self.now} s, longer '
            'than max_backfill_lifetime, '
            f'{CONF.blazar_sched.max_backfill_lifetime} s'
        )

    def with_room(self, host_states: list[Any]) -> list[Any]:
        passing = self.select(host_states, self.request.amounts)
        if self.request.own is None:
            return passing
        here = [h for h in host_states if self._is_here(h)]
        staying = self.select(here, self.request.growth)
        return steps.either(host_states, passing, staying)

    def why_no_room(self, host_state: Any) -> str:
        return self.why_not(host_state, self._new_amounts(host_state))

    def _new_amounts(self, host_state: Any) -> tuple[int, ...]:
        """Return the amounts beyond those in Nova's figures of the host."""
        is_here = self._is_here(host_state)
        return self.request.growth if is_here else self.request.amounts

    def _is_here(self, host_state: Any) -> bool:
        """Tell whether the instance is on the host and in Nova's figures.

        For such a host only the growth of the instance is new.
        """
        own = self.request.own
        return (
            own is not None
            and host_state.uuid == own.host
            and own.uuid in (host_state.instances or ())
        )

    def recent(self, host_states: list[Any]) -> dict[int, list[Request]]:
        """Return recently placed requests that count separately, by id().

        A bound request counts by its reservation, a preemptible request
        yields.
        """
        found = {}
        placed = consumption.placed_recently(
            self._replica, self.request, host_states
        )
        for key, others in placed.items():
            counted = [
                each for each in others if not (each.bound or each.preemptible)
            ]
            if counted:
                found[key] = counted
        return found

    def with_room_beside(self, host_states: list[Any]) -> list[Any]:
        """Return the hosts with room also for the requests placed recently."""
        recent = self.recent(host_states)
        if not recent:
            return host_states
        return [
            h for h in host_states
            if id(h) not in recent
            or self.select([h], self._total_amounts(h, recent[id(h)]))
        ]

    def why_no_room_beside(self, host_state: Any) -> str:
        others = self.recent([host_state]).get(id(host_state), [])
        reason = self.why_not(
            host_state, self._total_amounts(host_state, others)
        )
        return (
            f'with {len(others)} more instances placed on the host recently, '
            f'{reason}'
        )

    def _total_amounts(
        self, host_state: Any, others: Iterable[Request]
    ) -> tuple[int, ...]:
        """Return the amounts for the request and the others together.

        The amounts are computed as if all instances stayed equally long. That
        is too much for some seconds, and never too little.
        """
        own = self._new_amounts(host_state)
        amounts = own, *(each.amounts for each in others)
        return tuple(map(sum, zip(*amounts, strict=True)))

    def with_room_of(
        self, name: str, index: ext.TimelineIndex, host_states: list[Any]
    ) -> list[Any]:
        """Return the hosts with room for all copies in an extra index."""
        recent = self.recent(host_states)
        by_amount: dict[int, list[Any]] = defaultdict(list)
        for h in host_states:
            by_amount[self._amount_of(name, h, recent)].append(h)

        def select(amount: int, group: list[Any], end: int) -> list[Any]:
            return index.select(
                group, self.now, end, (amount,), ignore=self.request.own_id
            )

        return steps.either(
            host_states,
            *(
                self._select(group, functools.partial(select, amount))
                for amount, group in by_amount.items()
            ),
        )

    def why_no_room_of(
        self, name: str, index: ext.TimelineIndex, host_state: Any
    ) -> str:
        headroom = present.plain(index, [host_state], self.request.own_id)
        amount = self._amount_of(name, host_state, self.recent([host_state]))
        return self._why_not(index, host_state, headroom, (amount,))

    def _amount_of(
        self,
        name: str,
        host_state: Any,
        recent: dict[int, list[Request]],
    ) -> int:
        """Return the amount for all copies and recently placed requests."""
        return count_copies(host_state) * self.request.extra[name] + sum(
            other.extra.get(name, 0)
            for other in recent.get(id(host_state), ())
        )
