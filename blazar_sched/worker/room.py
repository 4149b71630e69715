# SPDX-License-Identifier: Apache-2.0
"""Room for an instance: on the host, beside others, or by a path."""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import copy
import dataclasses
import functools
import itertools

from oslo_config import cfg

from blazar_sched import ext
from blazar_sched.domain import duration
from blazar_sched.domain import inventory
from blazar_sched.domain import plural
from blazar_sched.domain.instance import Instance
from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import present
from blazar_sched.replica import state
from blazar_sched.worker import consumption
from blazar_sched.worker import nova_objects
from blazar_sched.worker import process
from blazar_sched.worker import reasons
from blazar_sched.worker import steps
from blazar_sched.worker.admission import Admission
from blazar_sched.worker.admission import Admissions
from blazar_sched.worker.paths import Paths
from blazar_sched.worker.request import Request

CONF = cfg.CONF


class Room:
    """The room of each host until the end of the host's admission.

    :param leaving: whether leases that can leave a host leave the host
    :ivar admissions: the admission of the request by each host
    """

    def __init__(
        self, replica: state.Replica, request: Request, now: int,
        leaving: bool,
    ) -> None:
        self.replica = replica
        self.request = request
        self.now = now
        self.leaving = leaving
        self.admissions = Admissions(replica, request, now)

    @functools.cached_property
    def paths(self) -> Paths:
        """The relocation paths of the request from each host."""
        return Paths(
            self.replica, self.request, self.now, self.replica.settings.rules,
            self.pending,
        )

    @functools.cached_property
    def pending(self) -> dict[str, list[Instance]]:
        """The instances that are pending, by the uuid of the host."""
        return process.ensure_started().pending.by_host(self.replica)

    def placed_recently(
        self, host_states: list[HostState]
    ) -> dict[int, list[Instance]]:
        """Return the instances placed beside the request, by id()."""
        return consumption.placed_recently(
            self.replica, self.request, host_states, self.pending
        )

    def select(
        self, host_states: list[HostState], amounts: tuple[int, ...]
    ) -> list[HostState]:
        """Return the HostStates with room, there or by a path.

        :param amounts: by RESOURCE_CLASSES
        """
        look = functools.partial(self._with_room, amounts)
        return self.select_by(host_states, look)

    def select_by(
        self, host_states: list[HostState],
        look: Callable[[list[HostState], Admission], list[HostState]],
    ) -> list[HostState]:
        """Return the HostStates with room where the instance is not yet.

        :param look: see `Admissions.select`
        """
        if self.request.own is None:
            return self.admissions.select(host_states, look)
        seen = list(map(self._without_own, host_states))
        passing = {id(h) for h in self.admissions.select(seen, look)}
        return [
            h for h, each in zip(host_states, seen, strict=True)
            if id(each) in passing
        ]

    def _with_room(
        self, amounts: tuple[int, ...], group: list[HostState],
        admission: Admission,
    ) -> list[HostState]:
        index, end = self.replica.indexes.main, admission.enough
        if self._lacks_headroom(admission):
            return [h for h in group if h.uuid not in self.replica.hosts]
        passing = self.replica.present.select(
            index, group, self.now, end, amounts, self.request.own_id
        )
        left = self.with_leavable(index, group, end, amounts)
        if admission.relocates:
            passing = self.paths.with_path(
                group, passing, amounts, admission.end, end
            )
            for name, amount in self.request.extra.items():
                if (other := self.replica.indexes.extra.get(name)) is not None:
                    left = self.with_leavable(other, left, end, (amount,))
        return steps.either(group, passing, left)

    def _lacks_headroom(self, admission: Admission) -> bool:
        """Tell whether the hosts together lack headroom for the request.

        Where no instance is relocated, the rules of relocation are not read.
        """
        return self.replica.indexes.total is not None and (
            not self.paths.has_headroom(admission.enough)
        )

    def with_leavable(
        self, index: ext.TimelineIndex, host_states: list[HostState], end: int,
        amounts: tuple[int, ...],
    ) -> list[HostState]:
        """Return the HostStates with room if leases leave the hosts.

        The manager moves the leases once it has the record of the instance,
        so the leases must not start soon. A preemptible request has no lease
        moved.

        :param amounts: by the resource classes of the index
        """
        if not self.leaving or self.request.preemptible:
            return []
        groups: dict[tuple[str, ...], list[HostState]] = defaultdict(list)
        for h in host_states:
            if leaving := self._leaving(h.uuid):
                groups[leaving].append(h)
        return steps.either(host_states, *(
            self.replica.present.select_with(
                index, group, self.now, end, amounts, self.request.own_id,
                [0] * len(amounts) * len(group), leaving,
            )
            for leaving, group in groups.items()
        ))

    def _leaving(self, host: str) -> tuple[str, ...]:
        """Return the reservations that can leave a host in time."""
        known = self.replica.reservations
        soon = self.now + self.replica.settings.rules.lead
        return tuple(
            id_ for id_ in sorted(self.replica.leavable.get(host, ()))
            if id_ in known and known[id_].start > soon
        )

    def _without_own(self, host_state: HostState) -> HostState:
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

    def why_none(self, host_state: HostState, amounts: tuple[int, ...]) -> str:
        """Say why a host has no room for amounts, see `select`."""
        host_state = self._without_own(host_state)
        admission = self.admissions.of(host_state)
        if admission is not None and (
            admission.relocates or self._lacks_headroom(admission)
        ):
            return self.paths.why_none(host_state, amounts, admission.end)
        index = self.replica.indexes.main
        headroom = self.replica.present.headroom(
            index, [host_state], self.request.own_id
        )
        return self.why_not_in(index, host_state, headroom, amounts)

    def why_not_in(
        self, index: ext.TimelineIndex, host_state: HostState,
        headroom: present.Headroom, amounts: tuple[int, ...],
    ) -> str:
        """Say why a host has no room for amounts in an index.

        :param headroom: of the HostState
        """
        admission = self.admissions.of(host_state)
        if admission is None:
            # The replica may change while it is being read.
            return self.admissions.reason(host_state)
        return reasons.no_room(
            index, headroom, self.now, admission.end, amounts,
            self.replica.hosts.get(host_state.uuid),
        )

    def recent(
        self, host_states: list[HostState]
    ) -> dict[int, list[Instance]]:
        """Return recently placed instances that count separately, by id().

        A bound instance counts by its reservation, a preemptible instance
        yields.
        """
        counted = {
            key: [
                each for each in others
                if each.reservation_id is None and not each.preemptible
            ]
            for key, others in self.placed_recently(host_states).items()
        }
        return {key: others for key, others in counted.items() if others}


class _RoomStep(steps.Step):
    def __init__(self, room: Room) -> None:
        self._room = room


class FixedShare(_RoomStep):
    """What instances that cannot be moved leave of all hosts together.

    An instance that has a host already is counted wherever it is.
    """

    def passing(self, host_states: list[HostState]) -> list[HostState]:
        if self._room.request.is_counted:
            return host_states
        return self._room.admissions.select(host_states, self._if_fits)

    def _if_fits(
        self, host_states: list[HostState], admission: Admission
    ) -> list[HostState]:
        request, replica = self._room.request, self._room.replica
        if (
            request.movable or request.preemptible
            or replica.indexes.total is None
        ):
            return host_states
        if admission.share is None or self._room.paths.has_share(
            admission.end, admission.share
        ):
            return self._room.paths.with_fixed(host_states, admission.end)
        return [h for h in host_states if h.uuid not in replica.hosts]

    def reason(self, host_state: HostState) -> str:
        return (
            'the instances that cannot be moved hold as much of all '
            'reservable hosts as they may, or would be on too many hosts: see '
            'unbounded_fixed and relocation_host_headroom'
        )


class HostRoom(_RoomStep):
    """Room of RESOURCE_CLASSES beside recent placements, or by a path."""

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self._wanted = dict(zip(
            inventory.RESOURCE_CLASSES, room.request.amounts, strict=True
        ))

    def passing(self, host_states: list[HostState]) -> list[HostState]:
        recent = self._room.recent(host_states)
        return steps.either(host_states, *(
            self._room.select(group, total)
            for total, group in _by_total(self._wanted, host_states, recent)
        ))

    def reason(self, host_state: HostState) -> str:
        others = self._room.recent([host_state]).get(id(host_state), [])
        reason = self._room.why_none(host_state, _total(self._wanted, others))
        if not others:
            return reason
        return (
            f'with {len(others)} more instances placed on the host recently, '
            f'{reason}'
        )

    def paths(self, host_states: list[HostState]) -> dict[int, str]:
        found: dict[int, str] = {}
        for admission, group in self._room.admissions.groups(host_states):
            if admission is not None and admission.relocates:
                found |= self._room.paths.of_passing(
                    group, self._room.request.amounts, admission.end
                )
        return found


class RoomNow(_RoomStep):
    """Room beside the preemptible instances, for ``min_preemptible_runtime``.

    A preemptible instance yields when a window opens, but not to an instance
    that is booted inside the window: a new instance must leave the room that
    open reservations have. The same holds for the windows that open before a
    preemptible instance of this moment may have to yield.
    """

    def passing(self, host_states: list[HostState]) -> list[HostState]:
        beside = self._beside(host_states)
        if not beside:
            return host_states
        left = [h for h in host_states if h.uuid in beside]
        for index, amounts in self._wanted():
            left = self._room.select_by(left, functools.partial(
                self._with_room, index, amounts, beside
            ))
        return steps.either(
            host_states, [h for h in host_states if h.uuid not in beside], left
        )

    def reason(self, host_state: HostState) -> str:
        others = self._beside([host_state]).get(host_state.uuid, ())
        return (
            f'{plural.are(len(others), "preemptible instance")} on the host, '
            'and leave too little of what is not reserved now, or within '
            'min_preemptible_runtime, '
            f'{CONF.blazar_sched.min_preemptible_runtime} s'
        )

    def _wanted(self) -> Iterator[tuple[ext.TimelineIndex, tuple[int, ...]]]:
        """Yield the indexes, with the amounts of the request."""
        request, indexes = self._room.request, self._room.replica.indexes
        yield indexes.main, request.amounts
        for name, amount in request.extra.items():
            if (index := indexes.extra.get(name)) is not None:
                yield index, (amount,)

    def _with_room(
        self, index: ext.TimelineIndex, amounts: tuple[int, ...],
        beside: Mapping[str, Sequence[Instance]], group: list[HostState],
        admission: Admission,
    ) -> list[HostState]:
        room = self._room
        less: list[int] = []
        end = min(admission.enough, duration.end_after(
            room.now, CONF.blazar_sched.min_preemptible_runtime
        ))
        for h in group:
            others = [each.countable() for each in beside[h.uuid]]
            less += [
                -sum([each.get(name, 0) for each in others])
                for name in index.resource_classes
            ]
        return room.replica.present.select_with(
            index, group, room.now, end, amounts, room.request.own_id, less
        )

    def _beside(
        self, host_states: list[HostState]
    ) -> dict[str, list[Instance]]:
        """Return the instances beside the request, by uuid of the host.

        Hosts without a preemptible instance are left out.
        """
        replica, request = self._room.replica, self._room.request
        pending = self._room.pending
        if not (
            replica.preemptible or request.preemptible and request.several
            or any(
                each.preemptible
                for each in itertools.chain(*pending.values())
            )
        ):
            return {}
        recent = self._room.placed_recently(host_states)
        found = {}
        for h in [
            h for h in host_states
            if h.uuid in replica.preemptible or id(h) in recent
        ]:
            uuids = {*replica.preemptible.get(h.uuid, ())}.difference(
                (request.instance_uuid,)
            )
            here = [
                _beyond(known, nova_objects.consumed(h).get(known.uuid))
                for known in filter(None, map(replica.instances.get, uuids))
            ]
            here += [
                each for each in recent.get(id(h), ())
                if each.reservation_id is None and each.uuid not in uuids
            ]
            if any(each.preemptible for each in here):
                found[h.uuid] = here
        return found


class ClassRoom(_RoomStep):
    """Room of another resource class, also for instances placed recently.

    :param name: the resource class
    :param index: the index of the class
    """

    def __init__(
        self, room: Room, name: str, index: ext.TimelineIndex
    ) -> None:
        super().__init__(room)
        self._wanted = {name: room.request.extra[name]}
        self._index = index

    def passing(self, host_states: list[HostState]) -> list[HostState]:
        recent = self._room.recent(host_states)
        return steps.either(host_states, *(
            self._room.admissions.select(
                group, functools.partial(self._with_room, total)
            )
            for total, group in _by_total(self._wanted, host_states, recent)
        ))

    def _with_room(
        self, total: tuple[int, ...], group: list[HostState],
        admission: Admission,
    ) -> list[HostState]:
        if admission.relocates and total == _total(self._wanted, ()):
            # The relocation path has room for these classes, too.
            return group
        return steps.either(
            group,
            self._index.select(
                group, self._room.now, admission.end, total,
                ignore=self._room.request.own_id,
            ),
            self._room.with_leavable(self._index, group, admission.end, total),
        )

    def reason(self, host_state: HostState) -> str:
        others = self._room.recent([host_state]).get(id(host_state), [])
        headroom = present.plain(
            self._index, [host_state], self._room.request.own_id
        )
        return self._room.why_not_in(
            self._index, host_state, headroom, _total(self._wanted, others)
        )


def _by_total(
    wanted: Mapping[str, int], host_states: list[HostState],
    recent: Mapping[int, Sequence[Instance]],
) -> Iterable[tuple[tuple[int, ...], list[HostState]]]:
    """Return the HostStates with each total, so that each needs one query.

    :param wanted: the amounts of the request by class
    :param recent: the instances that count too, by id() of HostState
    """
    alone = _total(wanted, ())
    if not recent:
        return [(alone, host_states)]
    groups: dict[tuple[int, ...], list[HostState]] = defaultdict(list)
    for h in host_states:
        others = recent.get(id(h))
        groups[_total(wanted, others) if others else alone].append(h)
    return groups.items()


def _total(
    wanted: Mapping[str, int], others: Iterable[Instance]
) -> tuple[int, ...]:
    """Return the amounts for a request and other instances together.

    The amounts are computed as if all instances stayed equally long. That is
    too much for some seconds, and never too little.
    """
    amounts = [each.countable() for each in others]
    # Lists are faster than generators, and there may be many hosts. What is
    # not asked for may be short: others may have taken it all.
    return tuple([
        own and own + sum([each.get(name, 0) for each in amounts])
        for name, own in wanted.items()
    ])


def _beyond(known: Instance, copy: Instance | None) -> Instance:
    """Return a recorded instance without what its HostState has consumed.

    :param copy: what the HostState has consumed, None for nothing
    """
    if copy is None:
        return known
    figures = copy.countable_use()
    counted = {c: figures.get(c, 0) for c in inventory.RESOURCE_CLASSES}
    return dataclasses.replace(known, amounts={
        name: amount - counted.get(name, 0)
        for name, amount in known.countable().items()
        if amount > counted.get(name, 0)
    })
