# SPDX-License-Identifier: Apache-2.0
"""The timeline index in plain Python: reference, fallback and test oracle.

This module specifies the index; the compiled twin gives exactly the same
answers. The index knows hosts, resource classes, integers and seconds, but no
leases, no clock and no I/O.

The timeline of a host is a step function over time with one *lane* per
resource class and two counting lanes: ``shared`` counts the entries that use a
part of the host, ``whole`` counts the entries that use the whole host.
"""

from __future__ import annotations

import array
import bisect
import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import itertools
import operator
import sys
import threading
from typing import Any
from typing import Concatenate
from typing import NamedTuple
from typing import ParamSpec
from typing import TypeVar

from blazar_sched.ext import checks
from blazar_sched.ext import errors
from blazar_sched.ext import host_state
from blazar_sched.ext.host_state import HostState

FOREVER = errors.FOREVER
# What `rows` returns for an unknown host.
NO_ROW = -1

# The owners whose entries a query ignores.
Owners = str | tuple[str, ...] | None

P = ParamSpec('P')
T = TypeVar('T')

ORDERS = ('first', 'tightest', 'freest', 'fullest')


def _is_compiled() -> bool:
    """Return False: this is the plain-Python implementation."""
    return False


def _atomic(
    method: Callable[Concatenate[TimelineIndex, P], T]
) -> Callable[Concatenate[TimelineIndex, P], T]:
    """Hold the lock of the index while a method runs."""
    @functools.wraps(method)
    def alone(index: TimelineIndex, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with index._lock:
            return method(index, *args, **kwargs)

    return alone


class Entry(NamedTuple):
    """An entry: what it adds to the timeline of one host over a window."""

    owner: str
    host: str
    start: int
    end: int
    amounts: tuple[int, ...]
    whole: bool

    def delta(self) -> tuple[int, ...]:
        """Return what the entry adds to each lane between start and end."""
        shared = not self.whole and max(self.amounts) > 0
        return (*self.amounts, int(shared), int(self.whole))


class Timeline:
    """The capacity and the step function of a host.

    ``sums[i]`` applies from ``times[i]`` to the next time, the last one
    forever. The first time is 0, and no two neighbours in ``sums`` are equal,
    so that a set of entries has exactly one representation.
    """

    __slots__ = ('capacity', 'sums', 'times')

    def __init__(self, capacity: tuple[int, ...]) -> None:
        self.capacity = capacity
        self.times = [0]
        self.sums: list[tuple[int, ...]] = [(0,) * (len(capacity) + 2)]

    def copy(self) -> Timeline:
        """Return a copy with lists of its own."""
        other = Timeline(self.capacity)
        other.times = self.times.copy()
        other.sums = self.sums.copy()
        return other

    def over(
        self, start: int, end: int
    ) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Yield (begin, until, sums) of each step within the window."""
        step = bisect.bisect_right(self.times, start) - 1
        while step < len(self.times) and self.times[step] < end:
            following = self.times[step + 1: step + 2] or [FOREVER]
            yield (
                max(self.times[step], start),
                min(following[0], end),
                self.sums[step],
            )
            step += 1

    def peak(self, start: int, end: int) -> list[int]:
        """Return the maximum of each lane within the window."""
        steps = [sums for _, _, sums in self.over(start, end)]
        return [max(lane) for lane in zip(*steps, strict=True)]

    def raise_by(self, start: int, end: int, delta: Sequence[int]) -> None:
        """Add ``delta`` to the lanes over the window, without checks."""
        first = self._cut(start)
        last = len(self.times) if end == FOREVER else self._cut(end)
        self.sums[first:last] = [
            _plus(sums, delta) for sums in self.sums[first:last]
        ]
        self._merge(last)
        self._merge(first)

    def _cut(self, at: int) -> int:
        """Split a step at ``at``; return the position of the second part."""
        step = bisect.bisect_left(self.times, at)
        if step == len(self.times) or self.times[step] != at:
            self.times.insert(step, at)
            self.sums.insert(step, self.sums[step - 1])
        return step

    def _merge(self, step: int) -> None:
        """Remove a step whose sums equal those of the step before it."""
        inside = 0 < step < len(self.times)
        if inside and self.sums[step] == self.sums[step - 1]:
            del self.times[step], self.sums[step]


class Request(NamedTuple):
    """A request of a query: amounts, or a whole host."""

    amounts: tuple[int, ...]
    whole: bool

    def blocked(self, sums: Sequence[int], room: Sequence[int]) -> bool:
        """Return whether the request does not fit in addition to the sums."""
        *used, shared, whole = sums
        if whole:
            return True
        if self.whole:
            return shared > 0
        return any(
            amount > 0 and use + amount > limit
            for amount, use, limit in zip(
                self.amounts, used, room, strict=True
            )
        )

    def copies(self, peak: Sequence[int], room: Sequence[int]) -> int:
        """Return how often the request fits in addition to a peak."""
        if self.whole:
            return 1
        return min(
            (
                (limit - use) // amount
                for amount, use, limit in zip(
                    self.amounts, peak[:-2], room, strict=True
                )
                if amount > 0
            ),
            default=FOREVER,
        )

    def free_runs(
        self, timeline: Timeline, room: Sequence[int], start: int, end: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the maximal parts of the window in which the request fits."""
        begin = start
        for at, until, sums in timeline.over(start, end):
            if self.blocked(sums, room):
                if begin < at:
                    yield begin, at
                begin = until
        if begin < end:
            yield begin, end

    def starts(
        self, queried: Iterable[tuple[Timeline, Sequence[int]]], duration: int,
        after: int,
    ) -> collections.Counter[int]:
        """Return by how much the number of hosts to start on changes, by time.

        The request can start on a host if a free run of the host continues
        for ``duration`` from the start.
        """
        changes = collections.Counter({after: 0})
        for timeline, room in queried:
            for begin, until in self.free_runs(timeline, room, after, FOREVER):
                if until == FOREVER:
                    changes[begin] += 1
                elif until - begin >= duration:
                    changes[begin] += 1
                    changes[until - duration + 1] -= 1
        return changes


class Batch:
    """What ``apply`` stores: the undo steps and what to check at the end."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], object]] = []
        self.worse: list[tuple[str, int, int, tuple[bool, ...]]] = []

    def roll_back(self) -> None:
        """Undo all changes in reverse order."""
        for inverse in reversed(self.undo):
            inverse()


class TimelineIndex:
    """Hosts x resource classes x time, in exact integers and whole seconds.

    Times are seconds since the epoch; a window is half-open, ``[start, end)``,
    and may end at FOREVER. ``rows`` in a query is an ``array('i')`` of
    distinct row numbers, as ``rows()`` returns them, in the order that the
    caller prefers; None means all hosts in row order.

    A request fits a host over a window if, for every requested class, the
    peak of the lane plus the amount is within the headroom of the host, and
    no whole-host entry overlaps the window. A request for a whole host fits
    if no entry uses any part of the host during the window. ``headroom`` is
    an ``array('q')``, row-major, with one value per row and class; None means
    the capacities. ``ignore`` is an owner whose entries are ignored, or a
    tuple of such owners. ``fits``, ``peak`` and ``horizon`` also take the row
    -1 of a host that the index does not know: nothing is taken there, and
    every request fits, as in ``select``.

    Every query raises InvalidWindow, InvalidAmount or UnknownHost for an
    invalid argument.
    """

    def __init__(
        self, resource_classes: Sequence[str], horizons: int = 32,
        sketch: int = 540,
    ) -> None:
        """Create an empty index.

        ``horizons`` and ``sketch`` size the caches of the compiled index,
        which change no answer. This implementation has no caches.

        :param resource_classes: one or more distinct names, at most
            CLASSES_LIMIT.
        :param horizons: the number of requests for which to cache how long
            each host keeps fitting; each takes 8 bytes per host. 0 disables
            the cache.
        :param sketch: the number of stretches of time for which to cache
            levels of the free capacity; each takes a byte per host and
            class. 0 disables the cache.
        :raises InvalidName: no resource class is given, or a name is invalid
            or a duplicate.
        :raises InvalidAmount: ``horizons`` or ``sketch`` is not a count.
        """
        names = tuple(resource_classes)
        checks.check_names('resource_classes', names)
        if not 0 < len(names) <= errors.CLASSES_LIMIT:
            raise errors.InvalidName('resource_classes', names)
        checks.check_count('horizons', horizons)
        checks.check_count('sketch', sketch)
        self.resource_classes = names
        self.generation = 0
        self._lock = threading.RLock()
        self._timelines: dict[str, Timeline] = {}
        self._hosts: list[str] = []
        self._rows: dict[str, int] = {}
        self._entries: dict[str, Entry] = {}
        self._owned: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def __contains__(self, entry_id: object) -> bool:
        """Return whether an entry with this id exists."""
        return isinstance(entry_id, str) and entry_id in self._entries

    @property
    def hosts(self) -> list[str]:
        """The hosts in row order."""
        return self._hosts.copy()

    @property
    def _lanes(self) -> tuple[str, ...]:
        return (*self.resource_classes, 'shared', 'whole')

    # Changes

    @_atomic
    def apply(
        self, changes: Iterable[Sequence[Any]], force: bool = False
    ) -> None:
        """Apply a batch of changes in order, all of them or none.

        Each change is one of::

            ('capacity', host, amounts)     add a host, or set its capacity
            ('drop', host)                  remove a host without entries
            ('add', id, owner, host, start, end, amounts, whole)
            ('remove', id)
            ('move', id, host, start, end)

        An entry uses ``amounts``, one integer per class, where a negative
        amount gives capacity back; or, with ``whole``, the whole host and no
        amounts. Adding an entry that exists with the same content does
        nothing. Row numbers after a dropped host decrease by one.

        Capacity is checked on the state after the last change, only where the
        batch increased the usage: a class over the windows in which entries
        increased it, or over all time if its capacity was decreased; the
        whole-host rule (a whole-host entry is alone on its host) over the
        windows in which the host got an entry.

        :param force: skip the check of capacity, because the ledger already
            has this state.
        :raises TimelineError: a change was refused; all changes of the batch
            are undone.
        """
        batch = Batch()
        try:
            for change in changes:
                self._change(batch, change)
            if not force:
                self._judge(batch)
        except BaseException:
            batch.roll_back()
            raise
        if batch.undo:
            self.generation += 1

    def _change(self, batch: Batch, change: Sequence[Any]) -> None:
        match change:
            case ('capacity', host, amounts):
                self._set_capacity(batch, host, amounts)
            case ('drop', host):
                self._drop(batch, host)
            case ('add', entry_id, owner, host, start, end, amounts, whole):
                checks.check_names('id', (entry_id,))
                checks.check_names('owner', (owner,))
                self._timeline(host)
                checks.check_window(start, end)
                entry = Entry(
                    owner, host, start, end,
                    self._entry_amounts(amounts, whole), bool(whole),
                )
                self._add(batch, entry_id, entry)
            case ('remove', entry_id):
                self._remove(batch, entry_id)
            case ('move', entry_id, host, start, end):
                self._move(batch, entry_id, host, start, end)
            case _:
                raise errors.InvalidChange(change)

    def _set_capacity(
        self, batch: Batch, host: str, amounts: Sequence[int]
    ) -> None:
        checks.check_names('host', (host,))
        capacity = self._amounts('capacity', amounts, 0)
        if host not in self._timelines:
            self._insert_host(len(self._hosts), host, Timeline(capacity))
            batch.undo.append(functools.partial(self._delete_host, host))
            return
        timeline = self._timelines[host]
        if timeline.capacity == capacity:
            return
        lowered = tuple(
            new < old
            for new, old in zip(capacity, timeline.capacity, strict=True)
        )
        batch.worse.append((host, 0, FOREVER, (*lowered, False, False)))
        batch.undo.append(functools.partial(
            setattr, timeline, 'capacity', timeline.capacity
        ))
        timeline.capacity = capacity

    def _drop(self, batch: Batch, host: str) -> None:
        timeline = self._timeline(host)
        if any(entry.host == host for entry in self._entries.values()):
            raise errors.HostInUse(host)
        row = self._rows[host]
        self._delete_host(host)
        batch.undo.append(functools.partial(
            self._insert_host, row, host, timeline
        ))

    def _insert_host(self, row: int, host: str, timeline: Timeline) -> None:
        self._hosts.insert(row, host)
        self._timelines[host] = timeline
        self._number_rows(row)

    def _delete_host(self, host: str) -> None:
        row = self._rows.pop(host)
        del self._hosts[row], self._timelines[host]
        self._number_rows(row)

    def _number_rows(self, first: int) -> None:
        """Set the row numbers of the hosts from row ``first`` on."""
        for row in range(first, len(self._hosts)):
            self._rows[self._hosts[row]] = row

    def _add(self, batch: Batch, entry_id: str, entry: Entry) -> None:
        if entry_id not in self._entries:
            self._raise_by(
                batch, entry.host, entry.start, entry.end, entry.delta()
            )
            self._register(batch, entry_id, entry)
        elif self._entries[entry_id] != entry:
            raise errors.EntryExists(entry_id)

    def _remove(self, batch: Batch, entry_id: str) -> None:
        entry = self._entry(entry_id)
        self._raise_by(
            batch, entry.host, entry.start, entry.end, _minus(entry.delta())
        )
        self._register(batch, entry_id, None)

    def _move(
        self, batch: Batch, entry_id: str, host: str, start: int, end: int
    ) -> None:
        old = self._entry(entry_id)
        self._timeline(host)
        checks.check_window(start, end)
        new = old._replace(host=host, start=start, end=end)
        if new == old:
            return
        for begin, until in _outside(old, new):
            self._raise_by(batch, old.host, begin, until, _minus(old.delta()))
        for begin, until in _outside(new, old):
            self._raise_by(batch, host, begin, until, new.delta())
        self._register(batch, entry_id, new)

    def _raise_by(
        self, batch: Batch, host: str, start: int, end: int,
        delta: tuple[int, ...],
    ) -> None:
        timeline = self._timelines[host]
        self._raise_within_limit(host, timeline, start, end, delta)
        batch.undo.append(functools.partial(
            timeline.raise_by, start, end, _minus(delta)
        ))
        batch.worse.append(
            (host, start, end, tuple(change > 0 for change in delta))
        )

    def _raise_within_limit(
        self, host: str, timeline: Timeline, start: int, end: int,
        delta: Sequence[int],
    ) -> None:
        self._check_overflow(host, (
            (begin, _plus(sums, delta))
            for begin, _, sums in timeline.over(start, end)
        ))
        timeline.raise_by(start, end, delta)

    def _register(
        self, batch: Batch, entry_id: str, entry: Entry | None
    ) -> None:
        """Replace the entry with this id; None removes it."""
        batch.undo.append(functools.partial(
            self._replace, entry_id, self._entries.get(entry_id)
        ))
        self._replace(entry_id, entry)

    def _replace(self, entry_id: str, entry: Entry | None) -> None:
        old = self._entries.pop(entry_id, None)
        if old is not None:
            owned = self._owned[old.owner]
            del owned[entry_id]
            if not owned:
                del self._owned[old.owner]
        if entry is not None:
            self._entries[entry_id] = entry
            self._owned.setdefault(entry.owner, {})[entry_id] = None

    def _judge(self, batch: Batch) -> None:
        """Raise OverCapacity for the first excess that the batch caused."""
        for host, start, end, worse in batch.worse:
            timeline = self._timelines.get(host)
            if timeline is None:
                continue
            for begin, _, sums in timeline.over(start, end):
                self._judge_step(host, timeline.capacity, begin, sums, worse)

    def _judge_step(
        self, host: str, capacity: Sequence[int], at: int, sums: Sequence[int],
        worse: Sequence[bool],
    ) -> None:
        *used, shared, whole = sums
        for lane, name in enumerate(self.resource_classes):
            if worse[lane] and used[lane] > capacity[lane]:
                short = used[lane] - capacity[lane]
                raise errors.OverCapacity(host, name, at, short)
        # All shared entries together count as one beside whole-host entries.
        takers = whole + min(shared, 1)
        if whole and takers > 1 and any(worse[-2:]):
            raise errors.OverCapacity(host, 'whole', at, takers - 1)

    def load(
        self, hosts: Sequence[str], capacity: Any, ids: Sequence[str],
        owners: Sequence[str], rows: Any, starts: Any, ends: Any, amounts: Any,
        whole: Any,
    ) -> None:
        """Replace all content by columns. Capacity is not checked.

        Numeric columns are buffers or sequences of integers.

        :param hosts: H distinct names.
        :param capacity: H x R integers, row-major.
        :param ids: n distinct names; ``owners``: n names.
        :param rows: n positions in ``hosts``.
        :param starts: n seconds; ``ends``: n seconds, or FOREVER.
        :param amounts: n x R integers, row-major.
        :param whole: n truth values.
        :raises TimelineError: a value is invalid; the index is unchanged.
        """
        part = ids, owners, rows, starts, ends, amounts, whole
        self.load_parts(hosts, capacity, [part])

    def load_parts(
        self, hosts: Sequence[str], capacity: Any,
        parts: Iterable[tuple[Any, ...]],
    ) -> None:
        """Replace all content by columns in several parts.

        The parts are iterated one by one, so that they need not be in memory
        together. The index does not change before the last part is read.

        :param parts: the columns of ``load`` from ``ids`` on.
        :raises TimelineError: as for ``load``.
        """
        other = TimelineIndex(self.resource_classes)
        other._load_hosts(hosts, capacity)
        for part in parts:
            other._load_entries(*part)
        other._build_all()
        with self._lock:
            self._timelines = other._timelines
            self._hosts = other._hosts
            self._rows = other._rows
            self._entries = other._entries
            self._owned = other._owned
            self.generation += 1

    def _load_hosts(self, hosts: Sequence[str], capacity: Any) -> None:
        width = len(self.resource_classes)
        flat = checks.column('capacity', capacity, len(hosts) * width)
        checks.check_names('hosts', hosts)
        for row, host in enumerate(hosts):
            own = flat[row * width:(row + 1) * width]
            self._timelines[host] = Timeline(self._amounts('capacity', own, 0))
        self._hosts = list(hosts)
        self._number_rows(0)

    def _load_entries(
        self, ids: Sequence[str], owners: Sequence[str], rows: Any,
        starts: Any, ends: Any, amounts: Any, whole: Any,
    ) -> None:
        count = len(ids)
        width = len(self.resource_classes)
        flat = checks.column('amounts', amounts, count * width)
        columns = zip(
            ids, checks.column('owners', owners, count),
            checks.column('rows', rows, count),
            checks.column('starts', starts, count),
            checks.column('ends', ends, count),
            (flat[i * width:(i + 1) * width] for i in range(count)),
            checks.column('whole', whole, count), strict=True,
        )
        for entry_id, owner, row, start, end, own, alone in columns:
            checks.check_names('id', (entry_id,))
            checks.check_names('owner', (owner,))
            host = self._host(row)
            checks.check_window(start, end)
            if entry_id in self._entries:
                raise errors.EntryExists(entry_id)
            entry = Entry(
                owner, host, start, end, self._entry_amounts(own, alone),
                bool(alone),
            )
            self._replace(entry_id, entry)

    def _build_all(self) -> None:
        """Build the steps of all timelines, still empty, from the entries."""
        per_host: dict[str, list[Entry]] = {}
        for entry in self._entries.values():
            per_host.setdefault(entry.host, []).append(entry)
        for host in self._hosts:
            self._build(host, per_host.get(host, []))

    def _build(self, host: str, entries: Iterable[Entry]) -> None:
        """Build the steps of an empty timeline from these entries."""
        timeline = self._timelines[host]
        steps = {0: timeline.sums[0]}
        for entry in entries:
            delta = entry.delta()
            for at, change in (
                (entry.start, delta), (entry.end, _minus(delta)),
            ):
                steps[at] = _plus(steps.get(at, timeline.sums[0]), change)
        steps.pop(FOREVER, None)
        times = sorted(steps)
        sums = list(itertools.accumulate((steps[at] for at in times), _plus))
        self._check_overflow(host, zip(times, sums, strict=True))
        timeline.times, timeline.sums = times, sums
        for step in reversed(range(len(times))):
            timeline._merge(step)

    @_atomic
    def columns(self) -> tuple[Any, ...]:
        """Return the columns from which ``load`` makes an equal index.

        :returns: ``(hosts, capacity, ids, owners, rows, starts, ends,
            amounts, whole)``: lists of names, ``array('q')`` of numbers, and
            one byte for each truth value.
        """
        entries = self._entries.values()
        return (
            self.hosts,
            array.array('q', (
                amount for host in self._hosts
                for amount in self._timelines[host].capacity
            )),
            list(self._entries),
            [entry.owner for entry in entries],
            array.array('q', (self._rows[entry.host] for entry in entries)),
            array.array('q', (entry.start for entry in entries)),
            array.array('q', (entry.end for entry in entries)),
            array.array('q', (
                amount for entry in entries for amount in entry.amounts
            )),
            bytes(entry.whole for entry in entries),
        )

    @_atomic
    def held(
        self, owner: str
    ) -> list[tuple[str, str, int, int, tuple[int, ...], bool]]:
        """Return (id, host, start, end, amounts, whole) of an owner's entries.

        The order is undefined. O(number of the owner's entries).
        """
        return [
            (entry_id, *self._entries[entry_id][1:])
            for entry_id in self._owned.get(owner, ())
        ]

    @_atomic
    def forget(self, before: int) -> int:
        """Remove the entries that end by ``before``; return their number.

        This changes no answer about a window that starts at ``before`` or
        later, except the order of ``pick``, which depends on earlier times.

        :raises InvalidWindow: ``before`` is not a finite time.
        """
        checks.check_time('before', before)
        over = sorted(
            (entry.end, entry_id) for entry_id, entry in self._entries.items()
            if entry.end <= before
        )
        self.apply([('remove', entry_id) for _, entry_id in over], force=True)
        return len(over)

    def advance(self, now: int) -> None:
        """Set the clock: the compiled index answers queries from it faster.

        This changes no answer.

        :raises InvalidWindow: ``now`` is not a finite time.
        """
        checks.check_time('now', now)

    # Queries

    @_atomic
    def rows(self, hosts: Iterable[str]) -> array.array[int]:
        """Return the row number of each host, -1 for an unknown host."""
        return array.array(
            'i', (self._rows.get(host, NO_ROW) for host in hosts)
        )

    @_atomic
    def row_keys(self, rows: Iterable[int]) -> list[str]:
        """Return the host of each row number; the reverse of ``rows``."""
        return [self._host(row) for row in rows]

    @_atomic
    def fits(
        self, rows: array.array[int] | None, start: int, end: int,
        amounts: Sequence[int] | None,
        headroom: array.array[int] | None = None, whole: bool = False,
        ignore: Owners = None,
    ) -> bytes:
        """Return one byte per row: 1 if the request fits, else 0."""
        checks.check_window(start, end)
        request = self._request(amounts, whole)
        return bytes(
            (start, end) in request.free_runs(timeline, room, start, end)
            for timeline, room in self._queried(rows, headroom, ignore, True)
        )

    @_atomic
    def peak(
        self, rows: array.array[int] | None, start: int, end: int,
        ignore: Owners = None,
    ) -> array.array[int]:
        """Return R + 2 numbers per row: the peak of each lane."""
        checks.check_window(start, end)
        peaks = array.array('q')
        for timeline, _ in self._queried(rows, None, ignore, True):
            peaks.extend(timeline.peak(start, end))
        return peaks

    @_atomic
    def free(
        self, rows: array.array[int] | None, groups: array.array[int],
        count: int, start: int, end: int,
    ) -> array.array[int]:
        """Return what is free throughout a window, added up by group of rows.

        R + 1 numbers per group: for each class, the sum of what the capacity
        of each row exceeds the peak by, where a row with a whole-host entry
        has nothing free; and the number of rows without any entry that uses
        the host.

        :param groups: an ``array('i')`` with the group of each row, from 0 to
            ``count`` - 1.
        :param count: the number of groups.
        :raises InvalidAmount: a row has no group, or no valid one.
        """
        checks.check_count('count', count)
        checks.check_window(start, end)
        queried = self._queried(rows, None, None)
        if _contiguous(groups).format != 'i':
            raise ValueError('groups are not C ints')
        if len(groups) != len(queried) or not all(
            0 <= group < count for group in groups
        ):
            raise errors.InvalidAmount('groups', groups)
        width = len(self.resource_classes) + 1
        sums = array.array('q', bytes(8 * width * count))
        for group, (timeline, room) in zip(groups, queried, strict=True):
            *used, shared, whole = timeline.peak(start, end)
            at = group * width
            if not whole:
                for lane, (use, limit) in enumerate(
                    zip(used, room, strict=True)
                ):
                    sums[at + lane] += max(limit - use, 0)
                sums[at + width - 1] += not shared
        return sums

    @_atomic
    def horizon(
        self, rows: array.array[int] | None, at: int,
        amounts: Sequence[int] | None,
        headroom: array.array[int] | None = None, whole: bool = False,
        ignore: Owners = None,
    ) -> array.array[int]:
        """Return for how many seconds from ``at`` the request keeps fitting.

        One number per row: 0 if the request does not fit at ``at``, FOREVER
        if it fits forever.
        """
        checks.check_time('at', at)
        request = self._request(amounts, whole)
        seconds = array.array('q')
        for timeline, room in self._queried(rows, headroom, ignore, True):
            runs = request.free_runs(timeline, room, at, FOREVER)
            begin, until = next(runs, (at, at))
            if begin > at:
                until = at
            seconds.append(until if until == FOREVER else until - at)
        return seconds

    @_atomic
    def earliest(
        self, count: int, duration: int, after: int,
        amounts: Sequence[int] | None, rows: array.array[int] | None = None,
        not_after: int | None = None, whole: bool = False,
        ignore: Owners = None,
    ) -> tuple[int, list[str]] | None:
        """Return the first start at which ``count`` hosts fit, and the hosts.

        :param duration: the duration of the request in seconds, or FOREVER.
        :param after: the first start to consider.
        :param not_after: the last start to consider, None for no limit.
        :returns: the first start and the first ``count`` hosts, in the order
            of ``rows``, that fit from then on; None without such a start.
        """
        checks.check_count('count', count)
        checks.check_duration(duration)
        checks.check_time('after', after)
        last = errors.TIME_LIMIT - 1
        if not_after is not None:
            checks.check_time('not_after', not_after)
            last = not_after
        request = self._request(amounts, whole)
        queried = self._queried(rows, None, ignore)
        at = _first_reached(request.starts(queried, duration, after), count)
        if at is None or at > last:
            return None
        end = FOREVER if duration == FOREVER else at + duration
        names = self._names(rows)
        found = [
            host for host, (timeline, room) in zip(names, queried, strict=True)
            if (at, end) in request.free_runs(timeline, room, at, end)
        ]
        return at, found[:count]

    @_atomic
    def runs(
        self, duration: int, after: int, amounts: Sequence[int] | None,
        rows: array.array[int] | None = None, not_after: int | None = None,
        whole: bool = False, ignore: Owners = None,
    ) -> tuple[array.array[int], array.array[int]]:
        """Return the begins and the ends of free runs.

        A run is a maximal window, from ``after`` on, in which the request
        fits on one host. The runs are in the order of their begins and, at
        equal begins, of their ends.

        :param duration: the least length of a run in seconds, or FOREVER.
        :param after: the first begin; a run that begins earlier is cut.
        :param not_after: the last begin, None for no limit.
        """
        checks.check_duration(duration)
        checks.check_time('after', after)
        last = errors.TIME_LIMIT - 1
        if not_after is not None:
            checks.check_time('not_after', not_after)
            last = not_after
        request = self._request(amounts, whole)
        runs = sorted(
            (begin, until)
            for timeline, room in self._queried(rows, None, ignore)
            for begin, until in request.free_runs(
                timeline, room, after, FOREVER
            )
            if begin <= last
            and (until == FOREVER or until - begin >= duration)
        )
        return (
            array.array('q', (begin for begin, _ in runs)),
            array.array('q', (until for _, until in runs)),
        )

    @_atomic
    def edges(
        self, rows: array.array[int] | None, start: int, end: int
    ) -> tuple[array.array[int], array.array[int]]:
        """Return the starts and the ends of entries, within a window.

        Both are in order and without duplicates.
        """
        checks.check_window(start, end)
        queried = set(self._names(rows))
        entries = [
            entry for entry in self._entries.values() if entry.host in queried
        ]
        return (
            _distinct(e.start for e in entries if start <= e.start < end),
            _distinct(e.end for e in entries if start <= e.end < end),
        )

    @_atomic
    def pick(
        self, count: int, start: int, end: int, amounts: Sequence[int] | None,
        rows: array.array[int] | None = None, order: str = 'tightest',
        whole: bool = False, ignore: Owners = None,
    ) -> list[str]:
        """Return up to ``count`` hosts that fit over the window.

        :param order: ``first``: as in ``rows``. ``tightest``: by the length
            of the free run that contains the window, shortest first, so that
            long runs remain. ``freest``: longest first. ``fullest``: by how
            often the request fits over the window, least often first, then
            as ``tightest``, so that whole hosts remain free. Equal hosts are
            in the order of ``rows``.
        :raises InvalidName: the order is unknown.
        """
        checks.check_count('count', count)
        checks.check_window(start, end)
        if order not in ORDERS:
            raise errors.InvalidName('order', order)
        request = self._request(amounts, whole)
        queried = self._queried(rows, None, ignore)
        fitting: list[tuple[int, int, str]] = []
        for host, (timeline, room) in zip(
            self._names(rows), queried, strict=True
        ):
            for begin, until in request.free_runs(timeline, room, 0, FOREVER):
                if begin <= start and end <= until:
                    copies = request.copies(timeline.peak(start, end), room)
                    fitting.append((copies, until - begin, host))
        if order == 'fullest':
            fitting.sort(key=lambda found: found[:2])
        elif order == 'tightest':
            fitting.sort(key=lambda found: found[1])
        elif order == 'freest':
            fitting.sort(key=lambda found: -found[1])
        return [host for _, _, host in fitting[:count]]

    # Nova's HostStates

    @_atomic
    def headroom(
        self, host_states: Iterable[HostState]
    ) -> tuple[array.array[int], array.array[int]]:
        """Return the rows and the headroom of Nova's HostStates.

        The headroom is the capacity minus the current usage in the HostState,
        which has the usage of VCPU, MEMORY_MB and DISK_GB only. An unknown
        host has row -1 and headroom 0 in each class.
        """
        rows = array.array('i')
        room = array.array('q')
        for state in host_states:
            row = self._rows.get(state.uuid, NO_ROW)
            rows.append(row)
            if row < 0:
                room.extend([0] * len(self.resource_classes))
                continue
            capacity = self._timelines[self._hosts[row]].capacity
            for name, limit in zip(
                self.resource_classes, capacity, strict=True
            ):
                room.append(limit - host_state.used_now(state, name))
        return rows, room

    @_atomic
    def select(
        self, host_states: Sequence[HostState], start: int, end: int,
        amounts: Sequence[int], ignore: Owners = None,
    ) -> list[HostState]:
        """Return the HostStates, the same objects, on which the request fits.

        The room is their ``headroom``. A host unknown to the index passes.
        """
        rows, room = self.headroom(host_states)
        width = len(self.resource_classes)
        known = [i for i, row in enumerate(rows) if row >= 0]
        answers = self.fits(
            array.array('i', (rows[i] for i in known)), start, end, amounts,
            array.array('q', (
                limit for i in known
                for limit in room[i * width:(i + 1) * width]
            )),
            ignore=ignore,
        )
        passes = bytearray(b'\1' * len(rows))
        for i, answer in zip(known, answers, strict=True):
            passes[i] = answer
        return list(itertools.compress(host_states, passes))

    # Looking inside

    @_atomic
    def memory(self) -> dict[str, int]:
        """Return the bytes of each layer, without shared objects."""
        steps = (
            size for timeline in self._timelines.values()
            for size in map(sys.getsizeof, (
                timeline, timeline.times, timeline.sums, *timeline.sums
            ))
        )
        entries = (
            size for entry in self._entries.values()
            for size in map(sys.getsizeof, (entry, entry.amounts))
        )
        registry = (self._entries, self._owned, *self._owned.values())
        return {
            'rows': sum(steps),
            'entries': sum(entries) + sum(map(sys.getsizeof, registry)),
            'horizons': 0,
            'sketch': 0,
        }

    @_atomic
    def dump(self) -> dict[str, Any]:
        """Return the whole content of the index, for tests and debugging.

        Two indexes with equal dumps give equal answers to every query.
        """
        return {
            'resource_classes': self.resource_classes,
            'generation': self.generation,
            'hosts': [
                (
                    host,
                    self._timelines[host].capacity,
                    self._timelines[host].times,
                    self._timelines[host].sums,
                )
                for host in self._hosts
            ],
            'entries': {
                entry_id: tuple(entry)
                for entry_id, entry in self._entries.items()
            },
            'owned': {
                owner: set(owned) for owner, owned in self._owned.items()
            },
        }

    @_atomic
    def check(self) -> None:
        """Assert every invariant of the index, in O(entries)."""
        # Rows, hosts and timelines have the same hosts, without duplicates.
        assert self._rows == {h: row for row, h in enumerate(self._hosts)}
        assert self._timelines.keys() == self._rows.keys()
        # The owners are those of the entries.
        owners = {i: entry.owner for i, entry in self._entries.items()}
        assert all(self._owned.values())
        assert owners == {
            i: owner for owner, owned in self._owned.items() for i in owned
        }
        # Each entry is valid, and its host exists.
        for entry in self._entries.values():
            assert entry.host in self._rows
            checks.check_window(entry.start, entry.end)
            assert entry.amounts == self._entry_amounts(
                entry.amounts, entry.whole
            )
        for host, timeline in self._timelines.items():
            self._check_timeline(host, timeline)

    def _check_timeline(self, host: str, timeline: Timeline) -> None:
        # Capacities are amounts that are not negative.
        assert timeline.capacity == self._amounts(
            'capacity', timeline.capacity, 0
        )
        # The times begin at 0 and ascend, below TIME_LIMIT.
        assert timeline.times[0] == 0
        assert all(a < b for a, b in itertools.pairwise(timeline.times))
        assert timeline.times[-1] < errors.TIME_LIMIT
        # No step has the sums of the step before it.
        assert all(a != b for a, b in itertools.pairwise(timeline.sums))
        # The steps equal those that the entries give.
        other = TimelineIndex(self.resource_classes)
        other._insert_host(0, host, Timeline(timeline.capacity))
        other._build(
            host, (e for e in self._entries.values() if e.host == host)
        )
        assert other._timelines[host].times == timeline.times
        assert other._timelines[host].sums == timeline.sums

    # What queries and changes share

    def _timeline(self, host: str) -> Timeline:
        if not isinstance(host, str) or host not in self._timelines:
            raise errors.UnknownHost(host)
        return self._timelines[host]

    def _host(self, row: int) -> str:
        if type(row) is not int or not 0 <= row < len(self._hosts):
            raise errors.UnknownHost(row)
        return self._hosts[row]

    def _entry(self, entry_id: str) -> Entry:
        if not isinstance(entry_id, str) or entry_id not in self._entries:
            raise errors.UnknownEntry(entry_id)
        return self._entries[entry_id]

    def _names(
        self, rows: array.array[int] | None, any_host: bool = False
    ) -> list[str]:
        """Return the hosts of a query; '' for a host without a row."""
        if rows is None:
            return self._hosts
        if _contiguous(rows).format != 'i':
            raise ValueError('rows are not C ints')
        return [
            '' if any_host and row == NO_ROW else self._host(row)
            for row in rows
        ]

    def _queried(
        self, rows: array.array[int] | None, headroom: array.array[int] | None,
        ignore: Owners, any_host: bool = False,
    ) -> list[tuple[Timeline, Sequence[int]]]:
        """Return (timeline, room) for each host of a query.

        :param any_host: whether the hosts may be without a row: such a host
            has room for everything
        """
        names = self._names(rows, any_host)
        past = self._without_entries_of(ignore)
        width = len(self.resource_classes)
        nowhere = Timeline((FOREVER,) * width)
        timelines = [
            past.get(host) or self._timelines.get(host, nowhere)
            for host in names
        ]
        if headroom is None:
            return [(timeline, timeline.capacity) for timeline in timelines]
        if _contiguous(headroom).format not in ('l', 'q'):
            raise ValueError('headroom is not 64-bit')
        if len(headroom) != len(names) * width:
            raise errors.InvalidAmount('headroom', headroom)
        return [
            (
                timeline,
                nowhere.capacity if timeline is nowhere
                else headroom[i * width:(i + 1) * width],
            )
            for i, timeline in enumerate(timelines)
        ]

    def _without_entries_of(self, ignore: Owners) -> dict[str, Timeline]:
        """Return the timelines of the owners' hosts without the entries."""
        timelines: dict[str, Timeline] = {}
        owners = ignore if isinstance(ignore, tuple) else (ignore or '',)
        for entry_id in itertools.chain.from_iterable(
            self._owned.get(owner, ()) for owner in set(owners)
        ):
            entry = self._entries[entry_id]
            if entry.host not in timelines:
                timelines[entry.host] = self._timelines[entry.host].copy()
            self._raise_within_limit(
                entry.host, timelines[entry.host], entry.start, entry.end,
                _minus(entry.delta()),
            )
        return timelines

    def _request(self, amounts: Sequence[int] | None, whole: bool) -> Request:
        if whole:
            return Request((0,) * len(self.resource_classes), True)
        return Request(self._amounts('amounts', amounts, 0), False)

    def _entry_amounts(self, values: Any, whole: Any) -> tuple[int, ...]:
        """Return the amounts of an entry, all 0 for a whole host."""
        amounts = self._amounts('amounts', values, -errors.AMOUNT_LIMIT)
        if any(amounts) == bool(whole):
            raise errors.InvalidAmount('amounts', amounts)
        return amounts

    def _amounts(self, field: str, values: Any, least: int) -> tuple[int, ...]:
        """Return one integer per class, from ``least`` to AMOUNT_LIMIT."""
        try:
            amounts = tuple(values)
        except TypeError:
            raise errors.InvalidAmount(field, values) from None
        if len(amounts) != len(self.resource_classes):
            raise errors.InvalidAmount(field, values)
        for amount in amounts:
            if (
                type(amount) is not int
                or not least <= amount <= errors.AMOUNT_LIMIT
            ):
                raise errors.InvalidAmount(field, amount)
        return amounts

    def _check_overflow(
        self, host: str, steps: Iterable[tuple[int, Sequence[int]]]
    ) -> None:
        for at, sums in steps:
            for lane, value in zip(self._lanes, sums, strict=True):
                if abs(value) > errors.AMOUNT_LIMIT:
                    raise errors.AmountOverflow(host, lane, at)


def _plus(sums: Sequence[int], delta: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(operator.add, sums, delta))


def _contiguous(array_: Any) -> memoryview:
    """Raise BufferError unless contiguous, as the compiled index does."""
    view = memoryview(array_)
    if not view.c_contiguous:
        raise BufferError('the array is not contiguous')
    return view


def _minus(delta: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(operator.neg, delta))


def _distinct(times: Iterable[int]) -> array.array[int]:
    return array.array('q', sorted(set(times)))


def _outside(entry: Entry, other: Entry) -> list[tuple[int, int]]:
    """Return the parts of an entry's window outside of another entry's."""
    if entry.host != other.host:
        return [(entry.start, entry.end)]
    parts = (
        (entry.start, min(entry.end, other.start)),
        (max(entry.start, other.end), entry.end),
    )
    return [(start, end) for start, end in parts if start < end]


def _first_reached(
    changes: collections.Counter[int], count: int
) -> int | None:
    """Return the first time at which the changes sum up to ``count``."""
    times = sorted(changes)
    fitting = itertools.accumulate(changes[at] for at in times)
    return next(
        (at for at, n in zip(times, fitting, strict=True) if n >= count), None
    )
