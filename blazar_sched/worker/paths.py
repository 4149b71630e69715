# SPDX-License-Identifier: Apache-2.0
"""The hosts on which a request passes by a relocation path."""

import bisect
from collections import Counter
from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import itertools
from typing import Any
from typing import TypeVar

from blazar_sched import ext
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.way import weakest
from blazar_sched.ext.host_state import HostState
from blazar_sched.placing import relocation
from blazar_sched.placing.relocation import Path
from blazar_sched.placing.relocation import Targets
from blazar_sched.replica import packing
from blazar_sched.replica import present
from blazar_sched.replica import state
from blazar_sched.worker import reasons
from blazar_sched.worker.request import Request

# If so many hosts pass, no further path is looked for.
ENOUGH = 16
# The most times at which hosts have to be left, that paths are looked for.
MAX_TIMES = 16
# After so many hosts without a path, no path is looked for from other hosts
# that are alike and have room no longer.
ALIKE = 2
_NO_HEADROOM = (
    'the reservable hosts together have too little headroom: see '
    'relocation_headroom'
)

T = TypeVar('T', bound=Targets)


class Paths:
    """The relocation paths of a request from each host, as of the replica.

    The figures of the present come from HostStates. For later times, a path
    goes by the records alone, as there is no HostState of a host that is full
    now. The `amounts` of a method are those for which the first host needs
    room; each later host needs room for the instance alone.

    :param placed: the instances that were placed recently, by host
    """

    def __init__(
        self, replica: state.Replica, request: Request, now: int, rules: Rules,
        placed: Mapping[str, Iterable[Instance]],
    ) -> None:
        self._replica = replica
        self._request = request
        # The instance may have come when the reasons are asked for: what is
        # counted for it is ignored then, too.
        self._ignore = request.instance_uuid
        self._now = now
        self._rules = rules
        self._placed = placed
        # By the likeness of the hosts that are left.
        self._targets: dict[tuple[object, ...], Targets] = {}

    def has_headroom(self, end: int) -> bool:
        """Tell whether all hosts together have headroom for the request.

        A cloud without a lease keeps no headroom, a preemptible instance
        yields to leases, and an instance that has a host already is counted
        wherever it is.
        """
        if self._request.is_counted or self._request.preemptible:
            return True
        total = self._replica.indexes.total
        start = self._now + self._rules.notice
        if total is None or end <= start or not self._replica.reservations:
            return True
        return total.has_room(
            start, end, self._request.by_class, self._rules.headroom,
            ignore=self._ignore,
        )

    def has_share(self, end: int, share: float) -> bool:
        """Tell whether the request may be a fixed instance until an end.

        :param share: the share of all hosts that fixed instances may hold
        """
        total = self._replica.indexes.total
        start = self._now + self._rules.notice
        if total is None or end <= start:
            return True
        others = [each.countable() for each in self._placed_fixed]
        # What is not asked for may be beyond the share.
        amounts = {
            name: own and own + sum(each.get(name, 0) for each in others)
            for name, own in self._request.by_class.items()
        }
        return total.fixed.has_room(
            start, end, amounts, share, ignore=self._ignore
        )

    def with_fixed(
        self, host_states: list[HostState], end: int
    ) -> list[HostState]:
        """Return the hosts where the request may be a fixed instance.

        No lease of whole hosts can have the host of a fixed instance. A fixed
        instance therefore joins others until their ends, or leaves headroom of
        hosts.
        """
        total = self._replica.indexes.total
        start = self._now + self._rules.notice
        if total is None or end <= start or not self._replica.reservations:
            return host_states
        kept_free = total.hosts_in(self._rules.host_headroom)
        if not kept_free:
            return host_states
        latest = total.fixed.latest
        placed = {each.host for each in self._placed_fixed}
        others = sum(latest.get(host, 0) < end for host in placed)

        def has_host(since: int) -> bool:
            return since == end or total.has_host(
                since, end, kept_free + others
            )

        if has_host(start):
            return host_states
        times = sorted({end, *(
            each for each in tuple(latest.values()) if start < each < end
        )})
        least = times[bisect.bisect_left(times, True, key=has_host)]
        return [
            h for h in host_states
            if h.uuid in placed or latest.get(h.uuid, 0) >= least
            or h.uuid not in self._replica.hosts
        ]

    @functools.cached_property
    def _placed_fixed(self) -> list[Instance]:
        """The fixed instances that were placed recently."""
        return [
            placed
            for placed in itertools.chain.from_iterable(self._placed.values())
            if self._is_unrecorded(placed) and not placed.movable
            and placed.host in self._replica.hosts
        ]

    def with_path(
        self, host_states: list[HostState], with_room: list[HostState],
        amounts: tuple[int, ...], end: int, enough: int,
    ) -> list[HostState]:
        """Return the hosts with room to an end, there or by a path.

        An instance with a path needs headroom to its end, an instance that
        stays only until `enough`.

        Paths are looked for only until ENOUGH hosts pass, from the hosts first
        that have room for the longest time.

        :param with_room: those of `host_states` that have room of
            RESOURCE_CLASSES until `enough`, for which there is headroom
        """
        staying = self._with_extra_room(with_room, enough)
        if len(staying) >= ENOUGH or (
            end > enough and not self.has_headroom(end)
        ):
            return staying
        passing = {id(h) for h in staying}
        failed: Counter[object] = Counter()
        for until, group in self._by_time(
            [h for h in host_states if id(h) not in passing], amounts
        ):
            passing.update(self._leaving(group, until, end, failed))
            if len(passing) >= ENOUGH:
                break
        return [h for h in host_states if id(h) in passing]

    def _leaving(
        self, host_states: Iterable[HostState], until: int, end: int,
        failed: Counter[object],
    ) -> Iterator[int]:
        """Yield the id() of the hosts from which a path leads on.

        The paths from hosts that are alike differ only in that no path leads
        back to the host that it has just left. The longest stay is taken
        first, and the later of two paths reaches as far. So if no path leads
        from two hosts, none leads from a host like them with room no longer.

        :param until: the time until which each host has room
        :param failed: the number of hosts without a path, by likeness
        """
        for h in host_states:
            known = self._replica.hosts.get(h.uuid)
            if known is None or failed[self._likeness(known)] == ALIKE:
                continue
            if self._find(h.uuid, until, end) is None:
                failed[self._likeness(known)] += 1
            else:
                yield id(h)

    def of_passing(
        self, host_states: list[HostState], amounts: tuple[int, ...], end: int
    ) -> dict[int, str]:
        """Return the paths by which HostStates pass, in words, by id().

        The path of a recorded instance is that of its record. Otherwise the
        path goes by the records alone: what the HostStates said when they
        passed is not kept.
        """
        known = [h for h in host_states if h.uuid in self._replica.hosts]
        times = self._recorded_until([h.uuid for h in known], amounts)
        found = {}
        own = self._replica.instances.get(self._request.instance_uuid)
        for h, until in zip(known, times, strict=True):
            if own is not None and own.host == h.uuid:
                path: Path | None = own.path
            else:
                path = self._find(h.uuid, until, end)
            if path:
                found[id(h)] = reasons.path(path, self._replica.hosts)
        return found

    def of_placed(self, host: str) -> Path:
        """Return the path of the instance from a host where it was placed.

        The path goes by the records alone.

        :returns: an empty path if the instance can stay, or has no path
        """
        if host not in self._replica.hosts:
            return ()
        amounts, end = self._request.amounts, self._request.end
        [until] = self._recorded_until([host], amounts)
        return self._find(host, until, end) or ()

    def why_none(
        self, host_state: HostState, amounts: tuple[int, ...], end: int
    ) -> str:
        """Say why a host has no room to an end, there or by a path."""
        lasting, index, headroom, wanted = min(
            self._rooms(host_state, amounts), key=lambda room: room[0]
        )
        known = self._replica.hosts.get(host_state.uuid)
        reason = reasons.no_room(
            index, headroom, self._now, end, wanted, known
        )
        if not self.has_headroom(end):
            return _NO_HEADROOM
        until = self._now + lasting
        if known is None or until >= end:
            # The replica may change while it is being read.
            return reason
        targets = self._new_targets(known, _TracedTargets)
        path = relocation.find(
            targets, known.uuid, self._now, until, end, self._rules,
            self._way_on(known),
        )
        hosts = self._replica.hosts
        if path:
            why = reasons.not_looked_for(reasons.path(path, hosts))
        else:
            why = 'no relocation path: ' + reasons.no_path(
                Stay(known.uuid, self._now, until), targets.found, self._rules,
                self._way_on(known), hosts,
            )
        return f'{reason}; {why}'

    def _rooms(
        self, host_state: HostState, amounts: tuple[int, ...]
    ) -> Iterator[
        tuple[int, ext.TimelineIndex, present.Headroom, tuple[int, ...]]
    ]:
        """Yield for how many seconds a host has room, by each index.

        Each result also has the index, the headroom and the amounts.
        """
        indexes = self._replica.indexes
        rooms = [(indexes.main, amounts, self._replica.present.headroom)]
        rooms += [
            (index, (amount,), present.plain)
            for name, amount in self._request.extra.items()
            if (index := indexes.extra.get(name)) is not None
        ]
        for index, wanted, look in rooms:
            headroom = look(index, [host_state], self._ignore)
            if headroom.rows[0] < 0:
                # The host has no inventory of the class.
                continue
            [seconds] = index.horizon(
                headroom.rows, self._now, wanted, headroom=headroom.room,
                ignore=headroom.ignore,
            )
            yield seconds, index, headroom, wanted

    def _with_extra_room(
        self, host_states: list[HostState], end: int
    ) -> list[HostState]:
        """Return the hosts with room in the indexes of the other classes."""
        if not self._request.extra:
            return host_states
        seconds = self._replica.indexes.extra_horizon(
            [h.uuid for h in host_states], self._now, self._request.extra,
            self._ignore,
        )
        return [
            h for h, each in zip(host_states, seconds, strict=True)
            if self._now + each >= end
        ]

    def _by_time(
        self, host_states: list[HostState], amounts: tuple[int, ...]
    ) -> list[tuple[int, list[HostState]]]:
        """Return hosts by the time until which they have room, latest first.

        Of many times, only the latest MAX_TIMES.
        """
        times = self._until([h.uuid for h in host_states], (
            self._replica.present.horizon(
                self._replica.indexes.main, host_states, self._now, amounts,
                self._ignore,
            )
        ))
        groups = defaultdict(list)
        least = self._now + self._rules.least_stay(self._request.movable)
        for h, each in zip(host_states, times, strict=True):
            if each >= least:
                groups[each].append(h)
        return sorted(groups.items(), reverse=True)[:MAX_TIMES]

    def _recorded_until(
        self, hosts: list[str], amounts: tuple[int, ...]
    ) -> list[int]:
        """Return until when hosts have room by the records."""
        main, own = self._replica.indexes.main, self._request.own
        room = self._replica.present.recorded_room(hosts)
        if own is not None and own.host in hosts:
            first = hosts.index(own.host) * packing.WIDTH
            held = packing.amounts_of(own.countable_use())
            for lane, amount in enumerate(held, first):
                room[lane] += amount
        return self._until(hosts, main.horizon(
            main.rows(hosts), self._now, amounts, headroom=room,
            ignore=self._ignore,
        ))

    def _until(self, hosts: list[str], seconds: Sequence[int]) -> list[int]:
        """Return the time until which each host has room.

        :param seconds: for how long each host has room of RESOURCE_CLASSES
        """
        if self._request.extra:
            extra = self._replica.indexes.extra_horizon(
                hosts, self._now, self._request.extra, self._ignore
            )
            seconds = list(map(min, seconds, extra))
        return [self._now + each for each in seconds]

    def _find(self, host: str, until: int, end: int) -> Path | None:
        known = self._replica.hosts.get(host)
        if known is None:
            return None
        return relocation.find(
            self._targets_of(known), host, self._now, until, end, self._rules,
            self._way_on(known),
        )

    def _way_on(self, host: Host) -> str:
        """Return how the instance is moved from a host."""
        return weakest((self._request.movable, host.movable))

    def _likeness(self, host: Host) -> tuple[object, ...]:
        """Return the values that hosts with the same targets share."""
        has = (name in host.inventory for name in self._request.extra)
        return *host.likeness, *has

    def _targets_of(self, host: Host) -> Targets:
        key = self._likeness(host)
        if key not in self._targets:
            self._targets[key] = self._new_targets(host, Targets)
        return self._targets[key]

    def _new_targets(self, host: Host, kind: type[T]) -> T:
        candidates = self._replica.catalog.relocation_targets(
            host, self._request.by_class
        )
        competing = self._competing_for_extra(candidates.hosts)
        if competing:
            candidates = self._replica.catalog.among(
                uuid for uuid in candidates.hosts if uuid not in competing
            )
        return kind(
            self._replica.indexes, candidates.rows, self._request.amounts,
            self._request.extra, self._recorded_room(candidates.hosts),
            self._ignore,
        )

    def _competing_for_extra(self, hosts: Collection[str]) -> set[str]:
        """Return the hosts with recent placements that take the same classes.

        The room of the extra indexes cannot be reduced for a request, so no
        path leads to such a host until the replica has the placements.
        """
        if not self._request.extra or not self._placed:
            return set()
        return {
            host for host in hosts
            if any(
                self._is_unrecorded(each)
                and not each.amounts.keys().isdisjoint(self._request.extra)
                for each in self._placed.get(host, ())
            )
        }

    def _recorded_room(self, hosts: Collection[str]) -> present.Room:
        """Return the room that the records leave, and recent placements.

        An instance that the replica does not have yet is subtracted from the
        room of its hosts at all times.
        """
        room = self._replica.present.recorded_room(hosts)
        if not self._placed:
            return room
        for n, host in enumerate(hosts):
            for each in self._placed.get(host, ()):
                if self._is_unrecorded(each):
                    amounts = packing.amounts_of(each.countable())
                    for lane, amount in enumerate(amounts):
                        room[n * packing.WIDTH + lane] -= amount
        return room

    def _is_unrecorded(self, placed: Instance) -> bool:
        known = self._replica.instances.get(placed.uuid)
        return (
            placed.uuid != self._request.instance_uuid
            and (known is None or known.host != placed.host)
            and placed.reservation_id is None and not placed.preemptible
        )


class _TracedTargets(Targets):
    """Targets that keep the result of each query for a next stay."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.found: list[Stay | None] = []

    def next_stay(self, last: Stay, end: int, lead: int) -> Stay | None:
        stay = super().next_stay(last, end, lead)
        self.found.append(stay)
        return stay
