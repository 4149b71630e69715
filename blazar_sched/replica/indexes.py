# SPDX-License-Identifier: Apache-2.0
"""The timeline indexes of a replica, as one index of all resource classes.

RESOURCE_CLASSES have one index, `main`, with every host. Each other resource
class has an index of its own in `extra`, with the hosts that have inventory of
the class: see replica.extra. Where reservations may not overcommit hosts,
`reserved` counts the allocations alone: see replica.reserved. Where instances
are relocated, `total` has the sum of all hosts: see replica.total. Each group
limit has a timeline in `groups`: see replica.group.
"""

import array
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import itertools
import operator

from blazar_sched import ext
from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.group_limit import GroupLimit
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window
from blazar_sched.ext import packed
from blazar_sched.replica import accounting
from blazar_sched.replica import packing
from blazar_sched.replica import reserved
from blazar_sched.replica.batch import Batch
from blazar_sched.replica.batch import Change
from blazar_sched.replica.batch import Lifetime
from blazar_sched.replica.catalog import rows
from blazar_sched.replica.extra import Extra
from blazar_sched.replica.group import Group
from blazar_sched.replica.total import Total

# What an index counts besides its resource classes: see `peaks_of`.
SHARED = 'shared'
WHOLE = 'whole'

# An id that no entry has: see `_try`.
_NOTHING = 'nothing has this id'
# The owner of the entries that close hosts, and the prefix of their ids.
_CLOSED = 'closed'
# The owner of the entries that count what instances use beyond their
# reservations, and the prefix of their ids: see `overdraw`.
_OVERDRAWN = 'overdrawn'
# What is beyond any host is left out: an index could not add it up with what
# the records say.
_MAX_OVERDRAWN = 2**24

# A number for each host, by resource class.
Columns = Mapping[str, Sequence[int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Peaks:
    """The peaks of the indexes in a window: see `peaks_of`.

    The peaks of `extra` come with the hosts of their own indexes.
    """

    main: Columns
    extra: Mapping[str, tuple[Sequence[str], Columns]]


class Indexes:
    """The indexes of all resource classes.

    Readers see each change of the main index whole, because the index takes a
    batch in one call. The other indexes are changed one after the other: the
    entries that a batch adds are there before the main index changes, and the
    entries that the batch removes are there until after that.

    :param hosts: every host by uuid, as it was before a batch
    :param accounting_: how instances are counted; see replica.accounting
    :param overcommit: whether reservations may overcommit hosts; if so,
        `reserved` is None
    :param group_limits: the limits on what is reserved on groups of hosts
    """

    def __init__(
        self, hosts: Mapping[str, Host], accounting_: accounting.Accounting,
        overcommit: bool = True, group_limits: Iterable[GroupLimit] = (),
    ) -> None:
        self.hosts = hosts
        self.accounting = accounting_
        self.main = ext.TimelineIndex(inventory.RESOURCE_CLASSES)
        self.extra = Extra(hosts)
        self.reserved = None if overcommit else reserved.new()
        self.total: Total | None = None
        self.groups = [Group(each, hosts) for each in group_limits]

    def apply(self, batch: Batch) -> None:
        """Apply a batch: all of it, or nothing.

        :raises TimelineError: if an index refuses a change
        """
        changes = self._changes(batch)
        with self.extra.changing(batch):
            self.main.apply(changes, force=True)
            if self.reserved is not None:
                reserved.apply(self.reserved, batch)
            if self.total is not None:
                self.total.apply(batch)
            for group in self.groups:
                group.apply(batch)

    def check(self, batch: Batch) -> None:
        """Refuse a batch that `apply` would refuse, but apply nothing.

        :raises TimelineError: as `apply` does
        """
        changes = self._changes(batch)
        with self.extra.trying(batch):
            _try(self.main, changes)

    def load(
        self, batch: Batch, allocations: Iterable[packing.Allocations]
    ) -> set[str]:
        """Fill new indexes with a batch and allocations, in bulk.

        Nothing is changed if an index refuses an entry.

        :returns: the ids of the entries on a host that is not in the batch,
            which were left out
        :raises TimelineError: if an index refuses an entry
        """
        hosts = {
            uuid: host for uuid, host in batch.hosts.items()
            if host is not None
        }
        row_of = {uuid: row for row, uuid in enumerate(hosts)}
        missing: set[str] = set()
        extra = Extra(self.hosts)
        allocated: list[packing.Part] = []

        def placed(columns: packed.Columns) -> packing.Part:
            part, without_host = packing.placed(columns, row_of)
            missing.update(without_host)
            return part

        def parts() -> Iterator[packing.Part]:
            for each in allocations:
                if isinstance(each, Allocation):
                    batch.add_allocation(each)
                else:
                    part = placed(each)
                    if self.reserved is not None:
                        allocated.append(part)
                    yield part
            yield placed(_columns(batch.adds))
            missing.update(extra.load(batch))

        capacities = map(self.accounting.capacity, hosts.values())
        self.main.load_parts(
            list(hosts), list(itertools.chain.from_iterable(capacities)),
            parts(),
        )
        self.extra = extra
        if self.reserved is not None:
            allocated.append(placed(_columns(batch.allocations)))
            reserved.load(self.reserved, hosts, allocated)
        return missing

    def start_groups(self, reservation_ids: Iterable[str]) -> None:
        """Count what is reserved on the groups of hosts anew.

        O(number of all allocations).

        :param reservation_ids: the ids of all reservations
        """
        if not self.groups:
            return
        allocations = [
            allocation
            for id_ in reservation_ids
            for allocation in self.allocations(id_).values()
        ]
        self.groups = [
            Group(each.limit, self.hosts, allocations) for each in self.groups
        ]

    def start_total(
        self, instances: Container[str], lifetimes: Collection[Lifetime]
    ) -> None:
        """Begin to count the demand for all hosts together.

        O(number of all entries).

        :param instances: the uuids of all instances
        :param lifetimes: the instances that count for themselves
        """
        total = Total(self.hosts.values())
        names, _, ids, owners, rows_, starts, ends, amounts, whole = (
            self.main.columns()
        )
        width = packing.WIDTH
        total.add(
            (
                ('add', id_, owner, names[row], start, end,
                 amounts[n * width:(n + 1) * width], bool(is_whole))
                for n, (id_, owner, row, start, end, is_whole) in enumerate(
                    zip(ids, owners, rows_, starts, ends, whole, strict=True)
                )
                if owner not in instances
                and owner not in (_CLOSED, _OVERDRAWN)
            ),
            lifetimes,
        )
        self.total = total

    def add(self, allocations: Iterable[Allocation]) -> None:
        """Add allocations that no index has: all of them, or none.

        :raises OverCapacity: if there is no room for an allocation
        :raises TimelineError: if an index refuses an allocation
        :raises KeyError: if no host has a resource class
        """
        with contextlib.ExitStack() as undo:
            self._add(allocations, undo, force=False)
            undo.pop_all()

    def remove(self, allocations: Iterable[Allocation]) -> None:
        """Remove allocations from the indexes.

        :raises UnknownEntry: if an index has not got an allocation
        """
        for index, adds in self._adding(allocations):
            index.apply(_removing(adds), force=True)

    @contextlib.contextmanager
    def added(
        self, allocations: Iterable[Allocation], force: bool = True
    ) -> Iterator[None]:
        """Add allocations, and remove them after the block.

        :param force: whether to add allocations beyond the capacity, too
        :raises OverCapacity: if there is no room for an allocation
        """
        with contextlib.ExitStack() as undo:
            self._add(allocations, undo, force)
            yield

    @contextlib.contextmanager
    def removed(self, allocations: Iterable[Allocation]) -> Iterator[None]:
        """Remove allocations, and add them after the block."""
        with contextlib.ExitStack() as undo:
            for index, adds in self._adding(allocations):
                index.apply(_removing(adds), force=True)
                undo.callback(index.apply, adds, force=True)
            yield

    def close(self, uuids: Iterable[str]) -> None:
        """Close hosts: take each host whole, for ever."""
        nothing = (0,) * packing.WIDTH
        self.main.apply(
            [('add', _closing_id(uuid), _CLOSED, uuid, 0, FOREVER, nothing,
              True) for uuid in uuids],
            force=True,
        )

    def reopen(self, closed: Iterable[str]) -> None:
        """Open all closed hosts but the hosts in `closed`."""
        self.main.apply(
            [('remove', id_) for id_, uuid, *_ in self.main.held(_CLOSED)
             if uuid not in closed],
            force=True,
        )

    def overdraw(
        self, reservation_ids: Iterable[str],
        used: Callable[[str], Mapping[str, Sequence[int]]],
    ) -> None:
        """Count what bound instances use beyond their reservations.

        An allocation counts in the place of the instances that draw on it, so
        their amounts above the allocation would be counted by nobody.

        :param reservation_ids: the reservations to count anew, beside those
            that are overdrawn
        :param used: returns the amounts, by RESOURCE_CLASSES, of the instances
            that draw on a reservation, by host
        """
        before = self.main.held(_OVERDRAWN)
        changes: list[Change] = [('remove', id_) for id_, *_ in before]
        overdrawn = (id_.split()[1] for id_, *_ in before)
        for reservation_id in {*reservation_ids, *overdrawn}:
            here = used(reservation_id)
            for id_, host, start, end, amounts, whole in self.main.held(
                reservation_id
            ):
                beyond = [
                    max(0, mine - held) for mine, held
                    in zip(here.get(host, amounts), amounts, strict=True)
                ]
                if 0 < max(beyond) <= _MAX_OVERDRAWN and not whole:
                    changes.append((
                        'add', f'{_OVERDRAWN} {reservation_id} {id_}',
                        _OVERDRAWN, host, start, end, tuple(beyond), False,
                    ))
        if not changes:
            return
        try:
            self.main.apply(changes, force=True)
        except ext.AmountOverflow:
            # What cannot be added up leaves no room in any case.
            self.main.apply(changes[:len(before)], force=True)

    def allocations(self, reservation_id: str) -> dict[str, Allocation]:
        """Return the allocations of a reservation by host.

        Amounts of 0 are left out. O(number of the allocations).
        """
        found: dict[str, Allocation] = {}
        all_amounts: dict[str, dict[str, int]] = defaultdict(dict)
        for index in self.by_class():
            for id_, on, start, end, amounts, whole in index.held(
                reservation_id
            ):
                own = all_amounts[on]
                own.update(
                    (c, amount)
                    for c, amount in zip(
                        index.resource_classes, amounts, strict=True
                    )
                    if amount
                )
                if on not in found:
                    found[on] = Allocation(
                        id_, reservation_id, on, start, end, own, whole
                    )
        return found

    def is_taken_whole(self, host: str, window: Window) -> bool:
        """Tell whether a host is taken whole at some time in a window."""
        nothing = (0,) * packing.WIDTH
        [fits] = self.main.fits(
            self.main.rows([host]), window.start, window.end, nothing
        )
        return not fits

    def untaken(self, host: str, at: int) -> int:
        """Return for how many seconds nothing is taken on a host from `at`."""
        return min(
            seconds
            for index in self.by_class()
            for seconds in index.horizon(
                rows(index, [host]), at, None, whole=True
            )
        )

    def has_room(self, instance: Instance, window: Window) -> bool:
        """Tell whether an instance has room on its host in a window.

        :raises KeyError: if the host of the instance is not known
        """
        return all(
            fits
            for index, amounts in self._counting(instance)
            for fits in index.fits(
                index.rows([instance.host]), window.start, window.end, amounts,
                ignore=instance.uuid,
            )
        )

    def horizon(self, instance: Instance, at: int) -> int:
        """Return for how many seconds an instance has room on its host.

        :param at: the time at which the seconds begin
        :raises KeyError: if the host of the instance is not known
        """
        return min(
            seconds
            for index, amounts in self._counting(instance)
            for seconds in index.horizon(
                rows(index, [instance.host]), at, amounts, ignore=instance.uuid
            )
        )

    def extra_horizon(
        self, hosts: Sequence[str], at: int, amounts: Mapping[str, int],
        ignore: str | None = None,
    ) -> list[int]:
        """Return for how many seconds hosts have room in the extra indexes.

        A host without inventory of a resource class has room for ever: the
        class comes from a sharing provider, if at all, which cannot be
        reserved.

        :param amounts: the amounts that need room, by resource class
        """
        found = [FOREVER] * len(hosts)
        for name, amount in amounts.items():
            index = self.extra.get(name)
            if index is not None:
                found = list(map(min, found, index.horizon(
                    index.rows(hosts), at, (amount,), ignore=ignore
                )))
        return found

    def free_seconds(
        self, hosts: Sequence[str], at: int, classes: Iterable[str]
    ) -> list[int]:
        """Return for how many seconds hosts have a free unit of any class.

        0 for a host without inventory of the classes.

        :param classes: resource classes of the extra indexes
        """
        found = [0] * len(hosts)
        for name in classes:
            index = self.extra.get(name)
            if index is None:
                continue
            known = index.rows(hosts)
            for n, seconds in enumerate(index.horizon(known, at, (1,))):
                if known[n] >= 0:
                    found[n] = max(found[n], seconds)
        return found

    def edges(
        self, hosts: Iterable[str], window: Window
    ) -> tuple[Sequence[int], Sequence[int]]:
        """Return the starts and the ends of the entries on hosts, in order.

        Those outside of the window are left out. O(number of all entries).
        """
        hosts = tuple(hosts)
        found = [
            index.edges(rows(index, hosts), window.start, window.end)
            for index in self.by_class()
        ]
        starts, ends = zip(*found, strict=True)
        return distinct(starts), distinct(ends)

    def peaks(self, main_rows: 'array.array[int]', window: Window) -> Peaks:
        """Return the peaks in a window: see `Peaks`.

        :param main_rows: the rows of hosts in the main index
        """
        return Peaks(
            peaks_of(self.main, main_rows, window),
            {
                name: (index.hosts, peaks_of(index, None, window))
                for name, index in self.extra.items()
            },
        )

    def overloaded(self, now: int) -> set[str]:
        """Return the hosts of which more is taken than their capacity.

        The indexes are checked from `now` on. Such hosts are full or taken
        whole at some time, and these are mostly few: one call of an index
        finds them.

        O(hosts that are full at some time).
        """
        found: set[str] = set()
        for index in self.by_class():
            one = (1,) * len(index.resource_classes)
            fits = index.fits(None, now, FOREVER, one)
            full = array.array(
                'i', (row for row, each in enumerate(fits) if not each)
            )
            found |= _overloaded(index, full, self.hosts, now)
        return found

    def is_too_small(self, host: Host, now: int) -> bool:
        """Tell whether more is taken of a host than a new capacity of it.

        :param host: the host with its new capacity, which may not be in the
            indexes yet
        :param now: the time from which the indexes are checked
        """
        return any(
            _overloaded(index, rows(index, [host.uuid]), {host.uuid: host},
                        now)
            for index in self.by_class()
        )

    def by_class(self) -> Iterator[ext.TimelineIndex]:
        """Yield the indexes, each of other resource classes."""
        yield self.main
        yield from tuple(self.extra.values())

    def _counting(
        self, instance: Instance
    ) -> Iterator[tuple[ext.TimelineIndex, list[int]]]:
        """Yield each index that counts an instance, with the counted amounts.

        A resource class that the host has no inventory of is left out: its
        amount comes from a sharing provider, which cannot be reserved.
        """
        has = self.hosts[instance.host].inventory
        amounts = instance.countable()
        others = (c for c in inventory.others(amounts) if c in has)
        for index in (self.main, *map(self.extra.__getitem__, others)):
            yield index, [amounts.get(c, 0) for c in index.resource_classes]

    def _add(
        self, allocations: Iterable[Allocation], undo: contextlib.ExitStack,
        force: bool,
    ) -> None:
        """Add allocations to the indexes; `undo` receives their removal."""
        for index, adds in self._adding(allocations):
            index.apply(adds, force=force)
            undo.callback(index.apply, _removing(adds), force=True)

    def _adding(
        self, allocations: Iterable[Allocation]
    ) -> Iterator[tuple[ext.TimelineIndex, list[Change]]]:
        """Yield each index with the changes that add allocations to it."""
        batch = Batch(self.hosts)
        for allocation in allocations:
            batch.add_allocation(allocation)
        yield self.main, batch.adds
        by_class: dict[str, list[Change]] = defaultdict(list)
        for name, change in batch.others:
            by_class[name].append(change)
        for name, changes in by_class.items():
            yield self.extra[name], changes
        if self.reserved is not None:
            yield self.reserved, batch.allocations
        for group in self.groups:
            yield group.index, list(group.adding(batch.allocated))

    def _changes(self, batch: Batch) -> list[Change]:
        """Return the changes of the main index for a batch.

        In the order of the changes, the host of an entry is always known
        while the entry is changed.
        """
        capacities: list[Change] = [
            ('capacity', uuid, self.accounting.capacity(host))
            for uuid, host in batch.hosts.items()
            if host is not None
        ]
        gone = [
            uuid
            for uuid, host in batch.hosts.items()
            if host is None and uuid in self.hosts
        ]
        removes: list[Change] = [
            ('remove', id_)
            for id_ in (
                *map(_closing_id, gone),
                *(id_ for id_, host, *_ in self.main.held(_OVERDRAWN)
                  if host in gone),
                *batch.removes,
            )
            if id_ in self.main
        ]
        drops: list[Change] = [('drop', uuid) for uuid in gone]
        return [*capacities, *removes, *batch.adds, *drops]


def distinct(columns: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return the numbers in some columns, in order and without duplicates.

    :param columns: each in order and without duplicates
    """
    if len(columns) == 1:
        return columns[0]
    return sorted(set().union(*columns))


def peaks_of(
    index: ext.TimelineIndex, rows: 'array.array[int] | None', window: Window,
    ignore: str | None = None,
) -> Columns:
    """Return the peak amounts taken on hosts in a window, by resource class.

    Each column has a number for each of the rows. The column SHARED counts
    the entries that take a part of the host, and the column WHOLE counts the
    entries that take the whole host.
    """
    peaks = index.peak(rows, window.start, window.end, ignore=ignore)
    lanes = *index.resource_classes, SHARED, WHOLE
    return {name: peaks[n :: len(lanes)] for n, name in enumerate(lanes)}


def _overloaded(
    index: ext.TimelineIndex, rows: 'array.array[int]',
    hosts: Mapping[str, Host], now: int,
) -> set[str]:
    """Return the hosts of which more is taken than their capacity.

    The index is checked from `now` on, for the resource classes that it has.

    :param rows: the rows of the hosts to check
    :param hosts: the hosts by uuid, with their capacities
    """
    classes = index.resource_classes
    peaks = iter(index.peak(rows, now, FOREVER))
    found = set()
    for name in index.row_keys(rows):
        # The last two columns count entries.
        *used, _, _ = itertools.islice(peaks, len(classes) + 2)
        # Most full hosts are leased as a whole, which takes no amounts.
        if any(used) and any(
            map(operator.gt, used, map(hosts[name].capacity, classes))
        ):
            found.add(name)
    return found


def _closing_id(host_uuid: str) -> str:
    return f'{_CLOSED} {host_uuid}'


def _removing(adds: Iterable[Change]) -> list[Change]:
    return [('remove', change[1]) for change in adds]


def _columns(adds: Iterable[Change]) -> packed.Columns:
    return packing.columns(*packing.transposed(add[1:] for add in adds))


def _try(index: ext.TimelineIndex, changes: list[Change]) -> None:
    """Refuse the changes that an index would refuse, but apply none.

    The last change of the batch is one that the index always refuses, and an
    index undoes a batch whose last change it refuses.
    """
    try:
        index.apply([*changes, ('remove', _NOTHING)], force=True)
    except ext.UnknownEntry as e:
        if e.id != _NOTHING:
            raise
