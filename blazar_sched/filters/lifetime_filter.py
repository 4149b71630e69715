# SPDX-License-Identifier: Apache-2.0
"""LifetimeFilter: admits requests to reservable hosts until a need arises."""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import copy
import functools
from typing import Any
from typing import cast
from typing import NamedTuple

from nova.scheduler import filters
from oslo_config import cfg

from blazar_sched import ext
from blazar_sched.conf import relocation
from blazar_sched.domain import duration
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import present
from blazar_sched.replica import state
from blazar_sched.worker import consumption
from blazar_sched.worker import filtering
from blazar_sched.worker import process
from blazar_sched.worker import reasons
from blazar_sched.worker import steps
from blazar_sched.worker.paths import Paths
from blazar_sched.worker.request import Request

CONF = cfg.CONF

_policy = functools.lru_cache(duration.parse_unbounded)


class LifetimeFilter(filters.BaseHostFilter):
    """Pass an unbound request on hosts with room for the instance's lifetime.

    Options: ``unbounded...``, ``default_lifetime``, ``max_backfill_lifetime``,
    ``min_preemptible_runtime`` and ``relocation_...`` of ``[blazar_sched]``.
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
    yield steps.Step(need.with_headroom, need.why_no_headroom)
    yield steps.Step(need.with_room, need.why_no_room, need.by_path)
    yield steps.Step(need.with_room_beside, need.why_no_room_beside)
    for name in request.extra:
        # A host without inventory of a class has the class, if at all, from
        # a sharing provider, which cannot be reserved.
        index = replica.indexes.extra.get(name)
        if index is not None:
            yield steps.Step(
                functools.partial(need.with_room_of, name, index),
                functools.partial(need.why_no_room_of, name, index),
            )


class _Admission(NamedTuple):
    """How a host admits a request.

    :ivar end: the time until which the request needs room; None if the host
        admits no such request
    :ivar relocates: whether the room may be on other hosts later
    """

    end: int | None
    relocates: bool = False


class _Need:
    """The room that a request needs on each host, from now on."""

    def __init__(
        self, replica: state.Replica, request: Request, now: int
    ) -> None:
        self.request = request
        self.now = now
        self._replica = replica
        options = CONF.blazar_sched
        longest = options.max_backfill_lifetime
        self._is_unbounded = request.end == window.FOREVER
        self._is_long = bool(longest) and request.end - now > longest
        # Of a host without a policy of its own.
        self._admission = _Admission(request.end)
        if request.preemptible:
            self._admission = _Admission(duration.end_after(
                now, options.min_preemptible_runtime
            ))
            self._is_unbounded = self._is_long = False
        elif self._is_unbounded or (
            self._is_long and request.movable
            and options.unbounded == duration.RELOCATE
        ):
            self._admission = self._admission_by(options.unbounded)
        elif self._is_long:
            self._admission = _Admission(None)

    @functools.cached_property
    def _paths(self) -> Paths:
        rules = relocation.rules(CONF.blazar_sched)
        return Paths(
            self._replica, self.request, self.now, rules,
            process.pending().by_host(self._replica),
        )

    @functools.cached_property
    def _booked(self) -> Collection[str]:
        """The hosts on which the next stay of the instance has begun.

        The manager has booked the room, as its rules allow, and Placement
        tells whether the room is there. The figures of the host may count
        other instances twice: HostState counts instances that are on their
        way to the host, and so do their relocation allocations. Nothing is
        booked for an instance that grows, or that could not go further along
        its path.
        """
        own = self.request.own
        if own is None or not self.request.is_counted or (
            own.relocations[1:] and not self.request.movable
        ):
            return ()
        hosts = self._replica.hosts
        return {
            stay.host for stay in own.relocations[:1]
            if stay.start <= self.now < stay.end
            and stay.host in hosts
            and not hosts[stay.host].is_closed(self.now)
        }

    def _with_booking(self, host_states: list[Any]) -> list[Any]:
        booked = self._booked
        return [h for h in host_states if h.uuid in booked] if booked else []

    def _admission_by(self, policy: str) -> _Admission:
        unbounded = _policy(policy, 'unbounded')
        if unbounded.relocates and not self.request.movable:
            unbounded = _policy(
                CONF.blazar_sched.unbounded_fixed, 'unbounded_fixed'
            )
        end = unbounded.end(self.now)
        if end is not None:
            end = min(end, self.request.end)
        return _Admission(end, unbounded.relocates)

    def admission(self, host_state: Any) -> _Admission:
        """Return the admission by the host's own policy, else the cloud's."""
        known = self._replica.hosts.get(host_state.uuid)
        if known is None or known.unbounded is None:
            return self._admission
        if self._is_unbounded:
            return self._admission_by(known.unbounded)
        if self._is_long and not known.relocates:
            return _Admission(None)
        return self._admission

    def by_admission(
        self, host_states: list[Any]
    ) -> Iterable[tuple[_Admission, list[Any]]]:
        by_policy = self._is_unbounded or self._is_long
        if not (by_policy and self._replica.with_policy):
            return [(self._admission, host_states)]
        groups: dict[_Admission, list[Any]] = defaultdict(list)
        for h in host_states:
            groups[self.admission(h)].append(h)
        return groups.items()

    def select(
        self, host_states: list[Any], amounts: tuple[int, ...]
    ) -> list[Any]:
        """Return the hosts with room for amounts until the end of the need."""
        look = functools.partial(self._with_room, amounts)
        if self.request.own is None:
            return self._select(host_states, look)
        seen = list(map(self._without_own, host_states))
        passing = {id(h) for h in self._select(seen, look)}
        return [
            h for h, each in zip(host_states, seen, strict=True)
            if id(each) in passing
        ]

    def _select(
        self,
        host_states: list[Any],
        look: Callable[[list[Any], _Admission], list[Any]],
    ) -> list[Any]:
        return steps.either(
            host_states,
            self._with_booking(host_states),
            *(
                # A group without an end needs no room: its hosts are in no
                # index.
                group if admission.end is None else look(group, admission)
                for admission, group in self.by_admission(host_states)
            ),
        )

    def _with_room(
        self, amounts: tuple[int, ...], group: list[Any], admission: _Admission
    ) -> list[Any]:
        end = cast(int, admission.end)
        passing = self._replica.present.select(
            self._replica.indexes.main, group, self.now, end, amounts,
            self.request.own_id,
        )
        if not admission.relocates:
            return passing
        return self._paths.with_path(group, passing, amounts, end)

    def with_headroom(self, host_states: list[Any]) -> list[Any]:
        """Return the hosts, unless all hosts together have no headroom.

        An instance that may have to be relocated needs headroom, unless it
        has a host already, and is counted wherever it is.
        """
        if self.request.is_counted:
            return host_states
        return self._select(
            host_states,
            lambda group, admission: group
            if not admission.relocates
            or self._paths.has_headroom(cast(int, admission.end))
            else [h for h in group if h.uuid not in self._replica.hosts],
        )

    def why_no_headroom(self, host_state: Any) -> str:
        return (
            'the reservable hosts together have too little headroom for an '
            'instance that may have to be moved: see relocation_headroom'
        )

    def by_path(self, host_states: list[Any]) -> dict[int, str]:
        """Return the relocation paths by which hosts pass, by id()."""
        found: dict[int, str] = {}
        for admission, group in self.by_admission(host_states):
            if admission.relocates:
                found |= self._paths.of_passing(
                    group, self.request.amounts, cast(int, admission.end)
                )
        return found

    def why_not(self, host_state: Any, amounts: tuple[int, ...]) -> str:
        host_state = self._without_own(host_state)
        admission = self.admission(host_state)
        if admission.relocates:
            return self._paths.why_none(
                host_state, amounts, cast(int, admission.end)
            )
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
        end = cast(int, self.admission(host_state).end)
        return reasons.no_room(
            index, headroom, self.now, end, amounts,
            self._replica.hosts.get(host_state.uuid),
        )

    def admitted(self, host_states: list[Any]) -> list[Any]:
        return steps.either(
            host_states,
            self._with_booking(host_states),
            *(
                group if admission.end is not None
                else [h for h in group if h.uuid not in self._replica.hosts]
                for admission, group in self.by_admission(host_states)
            ),
        )

    def why_not_admitted(self, host_state: Any) -> str:
        if self._is_unbounded:
            return (
                'the host admits no instance without an end: unbounded = '
                'never, or unbounded = relocate, unbounded_fixed = never and '
                'the instance cannot be live-migrated'
            )
        return (
            f'the instance lives for {self.request.end - self.now} s, longer '
            'than max_backfill_lifetime, '
            f'{CONF.blazar_sched.max_backfill_lifetime} s'
        )

    def with_room(self, host_states: list[Any]) -> list[Any]:
        return self.select(host_states, self.request.amounts)

    def why_no_room(self, host_state: Any) -> str:
        return self.why_not(host_state, self.request.amounts)

    def _without_own(self, host_state: Any) -> Any:
        """Return the HostState without the instance, if it is there.

        The instance takes the place of itself, at its whole new size.
        """
        own, named = self.request.own, host_state.instances or ()
        if own is None or host_state.uuid != own.host or own.uuid not in named:
            return host_state
        without, used = copy.copy(host_state), own.countable_use()
        without.vcpus_used -= used.get(inventory.VCPU, 0)
        without.free_ram_mb += used.get(inventory.MEMORY_MB, 0)
        without.disk_mb_used -= 1024 * used.get(inventory.DISK_GB, 0)
        without.instances = [uuid for uuid in named if uuid != own.uuid]
        return without

    def recent(self, host_states: list[Any]) -> dict[int, list[Instance]]:
        """Return recently placed instances that count separately, by id().

        A bound instance counts by its reservation, a preemptible instance
        yields.
        """
        found = {}
        placed = consumption.placed_recently(
            self._replica, self.request, host_states
        )
        for key, others in placed.items():
            counted = [
                each for each in others
                if each.reservation_id is None and not each.preemptible
            ]
            if counted:
                found[key] = counted
        return found

    def with_room_beside(self, host_states: list[Any]) -> list[Any]:
        """Return the hosts with room also for instances placed recently."""
        recent = self.recent(host_states)
        if not recent:
            return host_states
        # The index is queried once for all hosts that need the same amounts.
        groups: dict[tuple[int, ...], list[Any]] = defaultdict(list)
        for h in host_states:
            if id(h) in recent:
                groups[self._total_amounts(h, recent[id(h)])].append(h)
        return steps.either(
            host_states,
            [h for h in host_states if id(h) not in recent],
            *(self.select(group, total) for total, group in groups.items()),
        )

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
        self, host_state: Any, others: Iterable[Instance]
    ) -> tuple[int, ...]:
        """Return the amounts for the request and the others together.

        The amounts are computed as if all instances stayed equally long. That
        is too much for some seconds, and never too little.
        """
        amounts = [each.countable() for each in others]
        # Lists are faster than generators, and there may be many hosts.
        return tuple([
            own + sum([each.get(name, 0) for each in amounts])
            for name, own in zip(
                inventory.RESOURCE_CLASSES, self.request.amounts, strict=True
            )
        ])

    def with_room_of(
        self, name: str, index: ext.TimelineIndex, host_states: list[Any]
    ) -> list[Any]:
        """Return the hosts with room for all copies in an extra index."""
        by_amount: dict[int, list[Any]] = defaultdict(list)
        amounts = self._amounts_of(name, host_states)
        for h, each in zip(host_states, amounts, strict=True):
            by_amount[each].append(h)

        def select(
            amount: int, group: list[Any], admission: _Admission
        ) -> list[Any]:
            if admission.relocates and amount == self.request.extra[name]:
                # The relocation path has room for these classes, too.
                return group
            return index.select(
                group, self.now, cast(int, admission.end), (amount,),
                ignore=self.request.own_id,
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
        amounts = tuple(self._amounts_of(name, [host_state]))
        return self._why_not(index, host_state, headroom, amounts)

    def _amounts_of(self, name: str, host_states: list[Any]) -> list[int]:
        """Return the amount for all copies and recently placed instances.

        There is one amount for each host.
        """
        own = self.request.extra[name]
        recent = self.recent(host_states)
        return [
            own + sum(
                other.amounts.get(name, 0)
                for other in recent.get(id(h), ())
            )
            for h in host_states
        ]
