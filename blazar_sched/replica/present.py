# SPDX-License-Identifier: Apache-2.0
"""Instance records that a HostState confirms.

The index gives back what bound, bounded and preemptible instances have of
HostState's use. HostState and the records are of different moments: the
amounts given back for an instance that is no longer in HostState's use would
be subtracted twice. Therefore the index gives back only for an instance that
HostState names. In addition, the use of a host is at least what the instances
that HostState names have by their records: when an instance leaves, Nova
changes the figures of the host first and the list of its instances later.

Of the amount that Placement calls reserved, HostState's use includes what Nova
keeps for the host itself, but not what Nova reserves for its cache of images.
Therefore the reserved DISK_GB counts as use of the host itself only as far as
HostState's use is above the amounts of the instances.
"""

import array
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import itertools
import operator
import threading
from typing import Any
from typing import TypeAlias
from typing import TypeVar

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import accounting
from blazar_sched.replica import packing

# Amounts by RESOURCE_CLASSES, of one host or of several hosts.
Room: TypeAlias = 'array.array[int]'
_DISK = inventory.RESOURCE_CLASSES.index(inventory.DISK_GB)
T = TypeVar('T')

# The record of an instance before and after a change; None for no record.
Change = tuple[Instance | None, Instance | None]


@dataclasses.dataclass(slots=True)
class _OnHost:
    """The instance records of one host.

    :ivar room: Placement's capacity of the host minus the amounts of all of
        the instances, by RESOURCE_CLASSES
    :ivar reserved: the host's DISK_GB that Placement calls reserved
    :ivar given_back: uuids of the instances that the index gives back for
    """

    room: list[int]
    reserved: int = 0
    instances: dict[str, Instance] = dataclasses.field(default_factory=dict)
    given_back: set[str] = dataclasses.field(default_factory=set)

    def least(
        self, left: Room, named: Collection[str], unnamed: Iterable[Instance],
        own_id: str | None,
    ) -> Room:
        """Return the least room left, without the unnamed instances' entries.

        Whether an instance that HostState does not name has left or is being
        built is not known: the amount that Placement counts for the instance
        beyond Nova's figure stays counted.

        :param left: room that HostState's figures leave
        :param named: uuids of the instances that HostState names
        :param unnamed: instances with a record that HostState does not name
        :param own_id: uuid of the instance that asks
        """
        most = [*self.room]
        beyond = [0] * packing.WIDTH
        for each in unnamed:
            _take(most, each, 1)
            if each.uuid != own_id:
                beyond = list(map(int.__add__, beyond, _beyond(each)))
        left = left[:]
        if self._is_mixed(named):
            left[_DISK] -= self.reserved
        return array.array('q', (
            min(own, limit) - more
            for own, limit, more in zip(left, most, beyond, strict=True)
        ))

    def _is_mixed(self, named: Collection[str]) -> bool:
        """Tell whether the use of the host itself cannot be determined.

        That use cannot be told apart from the use of an instance without a
        record.
        """
        return bool(self.reserved) and not all(
            map(self.instances.__contains__, tuple(named))
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Headroom:
    """The room that HostStates leave of the capacities of their hosts.

    :ivar rows: rows of the index; -1 for a host that the index does not know
    :ivar room: one value per HostState and class, row-major
    :ivar ignore: the owners that a query of the index has to ignore
    :ivar is_less: whether the records leave less than HostState's figures
    """

    rows: 'array.array[int]'
    room: Room
    ignore: tuple[str, ...]
    is_less: bool


class Present:
    """The instance records of each host, beside the index of a replica.

    One writer, any number of readers. A record is added here before the index
    gives back for its instance, and is removed after that. `version` changes
    in between: if `version` is the same before and after a reader's work,
    then every instance that the index gave back for during that work has its
    record here.

    :param hosts: every host by uuid; the caller that changes a host must
        call `resize`
    """

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self.version = 0
        # Is held by a reader that no further change may overtake.
        self._turn = threading.Lock()
        self._hosts = hosts
        self._on: dict[str, _OnHost] = {}
        # Placement's capacity of each host, by RESOURCE_CLASSES.
        self._capacities: dict[str, list[int]] = {}
        # The uuids of the hosts for which HostState's figures are not enough.
        self._doubtful: set[str] = set()
        # The uuids of the hosts with instances that have relocation paths.
        self._with_path: set[str] = set()

    @contextlib.contextmanager
    def changing(self, changes: Iterable[Change]) -> Iterator[None]:
        """Add the new records, then, after the block, remove the old records.

        If the block fails, nothing is changed.
        """
        changes = tuple(changes)
        # A reader that the last change has overtaken comes first.
        with self._turn:
            pass
        for _, new in changes:
            self.add(new)
        self.version += 1
        try:
            yield
        except BaseException:
            for old, new in changes:
                self._remove(new, old)
            raise
        self.version += 1
        for old, new in changes:
            self._remove(old, new)

    def add(self, new: Instance | None) -> None:
        """Count an instance record, if it is not None."""
        if new is None:
            return
        on = self._on.get(new.host)
        if on is None:
            on = self._on[new.host] = _OnHost([*self._capacity(new.host)])
        _take(on.room, new, -1)
        on.instances[new.uuid] = new
        if _is_given_back(new):
            on.given_back.add(new.uuid)
        self._sort(new.host, on)

    def resize(self, uuid: str) -> None:
        """Update the capacity of a host that has changed, come or gone."""
        self._capacities.pop(uuid, None)
        room = [*self._capacity(uuid)]
        on = self._on.setdefault(uuid, _OnHost(room))
        for each in on.instances.values():
            _take(room, each, -1)
        on.room = room
        on.reserved = self._reserved(uuid)
        self._sort(uuid, on)

    def select(
        self, index: ext.TimelineIndex, host_states: Sequence[HostState],
        start: int, end: int, amounts: tuple[int, ...], own_id: str | None,
    ) -> list[HostState]:
        """Return the HostStates that have room, in their order.

        The answer is that of `TimelineIndex.select`, by the confirmed records.

        :param own_id: uuid of the instance that asks; its record is ignored
        """
        def read() -> tuple[list[HostState], set[int]]:
            passing = index.select(
                host_states, start, end, amounts, ignore=own_id
            )
            return passing, self._refused(
                index, passing, start, end, amounts, own_id
            )

        passing, refused = self._beside_changes(read)
        if not refused:
            return passing
        return [h for h in passing if id(h) not in refused]

    def select_with(
        self, index: ext.TimelineIndex, host_states: Sequence[HostState],
        start: int, end: int, amounts: tuple[int, ...], own_id: str | None,
        more: Iterable[int], ignore: tuple[str, ...] = (),
    ) -> list[HostState]:
        """Return the HostStates that have room, with more room than they say.

        :param index: of any resource classes
        :param own_id: uuid of the instance that asks; its record is ignored
        :param more: what is added to the room of each HostState, one value per
            HostState and class, row-major; may be negative
        :param ignore: the reservations whose allocations are ignored
        """
        added, width = tuple(more), len(amounts)

        def read() -> set[int]:
            refused: set[int] = set()
            for numbers in self._apart(host_states):
                states = [host_states[n] for n in numbers]
                found = (
                    self.headroom(index, states, own_id)
                    if index.resource_classes == inventory.RESOURCE_CLASSES
                    else plain(index, states, own_id)
                )
                lanes = itertools.chain.from_iterable(
                    added[n * width:(n + 1) * width] for n in numbers
                )
                room = array.array('q', map(operator.add, found.room, lanes))
                fits = index.fits(
                    found.rows, start, end, amounts, room,
                    ignore=(*found.ignore, *ignore),
                )
                refused.update(
                    number for number, each in zip(numbers, fits, strict=True)
                    if not each
                )
            return refused

        refused = self._beside_changes(read)
        return [h for n, h in enumerate(host_states) if n not in refused]

    def horizon(
        self, index: ext.TimelineIndex, host_states: Sequence[HostState],
        start: int, amounts: tuple[int, ...], own_id: str | None,
    ) -> list[int]:
        """Return for how many seconds each HostState has room from a time on.

        The answer is that of `TimelineIndex.horizon`, by the confirmed
        records.

        :param own_id: uuid of the instance that asks; its record is ignored
        """
        def read() -> list[int]:
            plainly = plain(index, host_states, own_id)
            seconds = list(index.horizon(
                plainly.rows, start, amounts, headroom=plainly.room,
                ignore=plainly.ignore,
            ))
            for numbers, found in self._confirmed(index, host_states, own_id):
                confirmed = index.horizon(
                    found.rows, start, amounts, headroom=found.room,
                    ignore=found.ignore,
                )
                for n, each in zip(numbers, confirmed, strict=True):
                    seconds[n] = min(seconds[n], each)
            return seconds

        return self._beside_changes(read)

    def _beside_changes(self, read: Callable[[], T]) -> T:
        """Return what `read` returns while no record changes.

        After the first change that `read` meets, no further change begins
        before `read` is done: a replica may have many changes to apply.
        """
        version, found = self.version, read()
        if version == self.version:
            return found
        with self._turn:
            while True:
                version, found = self.version, read()
                if version == self.version:
                    return found

    def headroom(
        self, index: ext.TimelineIndex, host_states: Sequence[HostState],
        own_id: str | None,
    ) -> Headroom:
        """Return the room that HostStates leave, by the confirmed records.

        :param own_id: uuid of the instance that asks; its record is ignored
        """
        rows, room = index.headroom(host_states)
        ignore = set() if own_id is None else {own_id}
        is_less = False
        for n in ext.unconfirmed(host_states, self._on, room, packing.WIDTH):
            on = self._on.get(host_states[n].uuid)
            if on is None:
                continue
            named = host_states[n].instances or ()
            unnamed = [
                each for each in tuple(on.instances.values())
                if each.uuid not in named
            ]
            lanes = slice(n * packing.WIDTH, (n + 1) * packing.WIDTH)
            room[lanes] = on.least(room[lanes], named, unnamed, own_id)
            ignore.update(each.uuid for each in unnamed)
            is_less = True
        return Headroom(rows, room, tuple(ignore), is_less)

    def recorded_room(self, uuids: Iterable[str]) -> Room:
        """Return the room that the records alone leave on hosts.

        A HostState is at hand only for a host that has room now. For the time
        after that, any host may have room.
        """
        on_hosts = self._on
        room: Room = array.array('q')
        for uuid in uuids:
            on = on_hosts.get(uuid)
            room.extend(self._capacity(uuid) if on is None else on.room)
        return room

    def instances_on(self, host_uuid: str) -> tuple[Instance, ...]:
        """Return the records of the instances on a host."""
        on = self._on.get(host_uuid)
        return () if on is None else tuple(on.instances.values())

    def given_back(self, host_uuid: str) -> tuple[str, ...]:
        """Return the uuids of the instances given back for on a host."""
        on = self._on.get(host_uuid)
        return () if on is None else tuple(on.given_back)

    def _refused(
        self, index: ext.TimelineIndex, passing: Sequence[Any], start: int,
        end: int, amounts: tuple[int, ...], own_id: str | None,
    ) -> set[int]:
        """Return the id() of the HostStates that confirmed records refuse."""
        return {
            id(passing[n])
            for numbers, found in self._confirmed(index, passing, own_id)
            for n, fits in zip(numbers, index.fits(
                found.rows, start, end, amounts, found.room,
                ignore=found.ignore,
            ), strict=True)
            if not fits
        }

    def _confirmed(
        self, index: ext.TimelineIndex, host_states: Sequence[HostState],
        own_id: str | None,
    ) -> Iterator[tuple[list[int], Headroom]]:
        """Yield the room of the hosts for which HostState is not enough.

        An instance that has left is ignored by a query on its host, but counts
        on the hosts of its relocation path. Such a host has a query of its
        own.

        :returns: pairs of positions in `host_states` and their room
        """
        for numbers in self._apart(host_states, self._doubtful):
            found = self.headroom(
                index, [host_states[n] for n in numbers], own_id
            )
            if found.is_less:
                yield numbers, found

    def _apart(
        self, host_states: Sequence[HostState],
        among: Collection[str] | None = None,
    ) -> Iterator[list[int]]:
        """Yield the positions of the HostStates that share a query.

        :param among: the uuids of the hosts to look at, None for all
        """
        if among is None:
            together = [*range(len(host_states))]
        elif among:
            together = [
                n for n, h in enumerate(host_states) if h.uuid in among
            ]
        else:
            return
        if self._with_path:
            left = {n for n in together if self._is_left(host_states[n])}
            yield from ([n] for n in sorted(left))
            together = [n for n in together if n not in left]
        yield together

    def _is_left(self, host_state: HostState) -> bool:
        """Tell whether HostState misses an instance with a relocation path."""
        named = host_state.instances or ()
        return host_state.uuid in self._with_path and any(
            each.path and each.uuid not in named
            for each in self.instances_on(host_state.uuid)
        )

    def _remove(self, old: Instance | None, new: Instance | None) -> None:
        """Stop counting a record, which `new` replaces unless it is None."""
        if old is None:
            return
        on = self._on[old.host]
        _take(on.room, old, 1)
        if new is not None and new.host == old.host:
            on.instances[old.uuid] = new
            if not _is_given_back(new):
                on.given_back.discard(old.uuid)
        else:
            del on.instances[old.uuid]
            on.given_back.discard(old.uuid)
        self._sort(old.host, on)

    def _sort(self, uuid: str, on: _OnHost) -> None:
        """Note what there is on a host; forget a host without records."""
        if on.given_back or on.reserved:
            self._doubtful.add(uuid)
        else:
            self._doubtful.discard(uuid)
        if any(on.instances[each].path for each in on.given_back):
            self._with_path.add(uuid)
        else:
            self._with_path.discard(uuid)
        if not (on.instances or on.reserved):
            del self._on[uuid]

    def _capacity(self, uuid: str) -> list[int]:
        found = self._capacities.get(uuid)
        if found is None:
            known = self._hosts.get(uuid)
            if known is None:
                return [0] * packing.WIDTH
            found = self._capacities[uuid] = [
                *accounting.SchedulerAccounting.capacity(known, reserved=False)
            ]
        return found

    def _reserved(self, uuid: str) -> int:
        known = self._hosts.get(uuid)
        held = known and known.inventory.get(inventory.DISK_GB)
        return held.reserved if held else 0


def plain(
    index: ext.TimelineIndex, host_states: Sequence[HostState],
    own_id: str | None,
) -> Headroom:
    """Return the room that HostStates leave if no record needs confirming."""
    rows, room = index.headroom(host_states)
    return Headroom(rows, room, () if own_id is None else (own_id,), False)


def _is_given_back(instance: Instance) -> bool:
    """Tell whether nova-scheduler's index may have entries of an instance."""
    return instance.used is not None or bool(
        accounting.SchedulerAccounting.steps(instance, overdue=False)
    )


def _beyond(instance: Instance) -> tuple[int, ...]:
    """Return what Placement counts beyond Nova's figure of an instance."""
    if instance.used is None or instance.preemptible:
        return (0,) * packing.WIDTH
    return tuple(
        max(0, placements - novas) for placements, novas in zip(
            packing.amounts_of(instance.countable()),
            packing.amounts_of(instance.countable_use()), strict=True,
        )
    )


def _take(room: list[int], instance: Instance, sign: int) -> None:
    amounts = packing.amounts_of(instance.countable_use(), sign)
    for lane, amount in enumerate(amounts):
        room[lane] += amount
