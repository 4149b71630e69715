# SPDX-License-Identifier: Apache-2.0
"""LifetimeFilter: who may use a reservable host until it is needed."""

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
from blazar_sched.worker import answer
from blazar_sched.worker import consumption
from blazar_sched.worker import process
from blazar_sched.worker import reasons
from blazar_sched.worker import request
from blazar_sched.worker import steps

CONF = cfg.CONF

_policy = functools.lru_cache(duration.parse_unbounded)


class LifetimeFilter(filters.BaseHostFilter):
    """Pass what is not bound where there is room for as long as it lives.

    Options: ``unbounded``, ``default_lifetime``, ``max_backfill_lifetime``
    and ``min_preemptible_runtime`` of ``[blazar_sched]``.
    """

    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        process.prepare()

    def filter_all(
        self, filter_obj_list: Iterable[Any], spec_obj: Any
    ) -> list[Any]:
        return answer.decide(
            'LifetimeFilter', _steps, list(filter_obj_list), spec_obj
        )


def _steps(
    replica: state.Replica, asked: request.Request, now: int
) -> Iterator[steps.Step]:
    if asked.bound:
        # It has its room by its reservation: see ReservationFilter.
        return
    need = _Need(replica, asked, now)
    yield steps.Step(need.let_in, need.why_not_let_in)
    yield steps.Step(need.with_room, need.why_no_room)
    yield steps.Step(need.with_room_beside, need.why_no_room_beside)
    for name, amount in asked.extra.items():
        index = replica.extra.get(name)
        # A host without inventory of a class has it, if at all, in a
        # provider below its own, which nobody can reserve.
        if index is not None:
            extra = _Extra(need, index, name, amount)
            yield steps.Step(extra.with_room, extra.why_no_room)


class _Need:
    """The room that a request wants of each host, from now on."""

    def __init__(
        self, replica: state.Replica, asked: request.Request, now: int
    ) -> None:
        self.asked = asked
        self.now = now
        self._replica = replica
        self._is_unbounded = False
        options = CONF.blazar_sched
        longest = options.max_backfill_lifetime
        # Until when it wants room; None: reservable hosts do not take it.
        self._end: int | None = asked.end
        if asked.preemptible:
            self._end = duration.end_after(
                now, options.min_preemptible_runtime
            )
        elif asked.end == window.FOREVER:
            self._end = self._end_by(options.unbounded)
            self._is_unbounded = True
        elif longest and asked.end - now > longest:
            self._end = None

    def _end_by(self, policy: str) -> int | None:
        return _policy(policy, 'unbounded').end(self.now)

    def end(self, host_state: Any) -> int | None:
        """Return it by the host's own policy, else by the cloud's."""
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
        """Return the hosts with room for amounts as long as it is wanted."""
        index, own_id = self._replica.index, self.asked.own_id
        return self._select(
            host_states,
            lambda group, end: self._replica.present.select(
                index, group, self.now, end, amounts, own_id
            ),
        )

    def select_extra(
        self, index: ext.TimelineIndex, host_states: list[Any], amount: int
    ) -> list[Any]:
        """Return the same for an amount of another resource class."""
        return self._select(
            host_states,
            lambda group, end: index.select(
                group, self.now, end, (amount,), ignore=self.asked.own_id
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
                # Whoever wants no room is on no index.
                group if end is None else look(group, end)
                for end, group in self.by_end(host_states)
            ),
        )

    def why_not(self, host_state: Any, amounts: tuple[int, ...]) -> str:
        index = self._replica.index
        headroom = self._replica.present.headroom(
            index, [host_state], self.asked.own_id
        )
        return self._why_not(index, host_state, headroom, amounts)

    def why_not_extra(
        self, index: ext.TimelineIndex, host_state: Any, amount: int
    ) -> str:
        headroom = present.plain(index, [host_state], self.asked.own_id)
        return self._why_not(index, host_state, headroom, (amount,))

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

    def let_in(self, host_states: list[Any]) -> list[Any]:
        return steps.either(
            host_states,
            *(
                group if end is not None
                else [h for h in group if h.uuid not in self._replica.hosts]
                for end, group in self.by_end(host_states)
            ),
        )

    def why_not_let_in(self, host_state: Any) -> str:
        if self._is_unbounded:
            return 'no instance without an end is let on it: unbounded, never'
        return (
            f'it lives for {self.asked.end - self.now} s, and '
            f'{CONF.blazar_sched.max_backfill_lifetime} s are let on it: '
            'max_backfill_lifetime'
        )

    def with_room(self, host_states: list[Any]) -> list[Any]:
        passing = self.select(host_states, self.asked.amounts)
        if self.asked.own is None:
            return passing
        here = [h for h in host_states if self._is_here(h)]
        staying = self.select(here, self.asked.growth)
        return steps.either(host_states, passing, staying)

    def why_no_room(self, host_state: Any) -> str:
        return self.why_not(host_state, self._wanted(host_state))

    def _wanted(self, host_state: Any) -> tuple[int, ...]:
        """What it asks for beyond what Nova's figures of the host hold."""
        is_here = self._is_here(host_state)
        return self.asked.growth if is_here else self.asked.amounts

    def _is_here(self, host_state: Any) -> bool:
        """Where it is already, Nova's figures hold it: only its growth is new.
        """
        own = self.asked.own
        return (
            own is not None
            and host_state.uuid == own.host
            and own.uuid in (host_state.instances or ())
        )

    def late(self, host_states: list[Any]) -> dict[int, list[request.Request]]:
        """Return what was put there lately, as far as it counts by itself.

        What is bound counts by its reservation, what is preemptible yields.
        """
        found = {}
        beside = consumption.beside(self._replica, self.asked, host_states)
        for key, others in beside.items():
            counted = [
                each for each in others if not (each.bound or each.preemptible)
            ]
            if counted:
                found[key] = counted
        return found

    def with_room_beside(self, host_states: list[Any]) -> list[Any]:
        """Those with room also for what was placed there lately."""
        late = self.late(host_states)
        if not late:
            return host_states
        return [
            h for h in host_states
            if id(h) not in late
            or self.select([h], self._together(h, late[id(h)]))
        ]

    def why_no_room_beside(self, host_state: Any) -> str:
        others = self.late([host_state]).get(id(host_state), [])
        reason = self.why_not(
            host_state, self._together(host_state, others)
        )
        return f'with {len(others)} more placed there just now, {reason}'

    def _together(
        self, host_state: Any, others: Iterable[request.Request]
    ) -> tuple[int, ...]:
        """What it takes with the others, as if all stayed equally long.

        That is too much for some seconds, and never too little.
        """
        wanted = self._wanted(host_state), *(each.amounts for each in others)
        return tuple(map(sum, zip(*wanted, strict=True)))


class _Extra:
    """The room that a request wants of another resource class."""

    def __init__(
        self, need: _Need, index: ext.TimelineIndex, name: str, amount: int
    ) -> None:
        self._need = need
        self._index = index
        self._name = name
        self._amount = amount

    def _together(
        self, host_state: Any, late: dict[int, list[request.Request]]
    ) -> int:
        """What it takes with the others of its request, and of late."""
        return steps.copies(host_state) * self._amount + sum(
            other.extra.get(self._name, 0)
            for other in late.get(id(host_state), ())
        )

    def with_room(self, host_states: list[Any]) -> list[Any]:
        late = self._need.late(host_states)
        by_amount: dict[int, list[Any]] = defaultdict(list)
        for h in host_states:
            by_amount[self._together(h, late)].append(h)
        return steps.either(
            host_states,
            *(
                self._need.select_extra(self._index, group, together)
                for together, group in by_amount.items()
            ),
        )

    def why_no_room(self, host_state: Any) -> str:
        late = self._need.late([host_state])
        together = self._together(host_state, late)
        return self._need.why_not_extra(self._index, host_state, together)
