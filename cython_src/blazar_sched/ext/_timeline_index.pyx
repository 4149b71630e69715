# SPDX-License-Identifier: Apache-2.0
"""The compiled timeline index, the twin of blazar_sched.ext.timeline_index.

That module specifies and documents each method; the docstrings here give the
costs. R is the number of classes, H of hosts, n of requested rows, and k of
chunks of steps of a row in the window.

It consists of small modules, one idea each. ``_row`` has the steps, which
define every answer; ``_scan`` and ``_fit`` walk over the steps of one row or
of many; ``_horizon``, ``_sketch`` and ``_sweep`` only give some answers
sooner. ``_runs`` lists free runs and edges, sorted by ``_keys``. ``_entries``
and ``_name`` are the registry. ``_arguments``, ``_batch``, ``_host_state``,
``_load`` and ``_query`` convert between Python and C.

The GIL is held except while a bulk load builds its rows. A query converts its
arguments to C and then calls ``begin``. From there to the answer it creates no
object that the garbage collector tracks and runs no Python code. So no other
thread runs in between, and no answer mixes two generations. The same holds
for a batch of changes.

Each ``.pyx`` is a module of its own, and the other modules call its functions
through pointers, which the C compiler cannot inline. So a function that runs
once per query, change or batch has its body in a ``.pyx``; a small one that
runs once per step, row or entry is inline in a ``.pxd``. Measured with 10,000
hosts of 100 allocations each, in one process with the inline build: if the
functions per row (``horizon_of``, ``Query.look``, ``integer``) are called
through pointers, a query from now on about 1,000 rows takes 9 % longer, and
one about 1,000 HostStates 8 %; if those per step in ``_row.pxd`` and
``_scan.pxd`` are, the earliest start takes 3 % longer.
"""

from blazar_sched.ext._arguments cimport (
    exact,
    integer,
    take_count,
    take_end,
    take_names,
    take_time,
)
from blazar_sched.ext._batch cimport (
    ADD,
    Batch,
    CAPACITY,
    Change,
    DROP,
    ENTRY_EXISTS,
    FINE,
    HOST_IN_USE,
    INSERT,
    MOVE,
    NOTHING,
    OUT_OF_MEMORY,
    OVER_CAPACITY,
    OVERFLOW,
    REFUSED,
    REMOVE,
    UNKNOWN_ENTRY,
    UNKNOWN_HOST,
    Worse,
)
from blazar_sched.ext._entries cimport (
    amounts_of,
    BY_ID,
    BY_OWNER,
    delta_of,
    Entries,
    entries_append,
    entries_ask,
    entries_ask_on,
    entries_bytes,
    entries_find,
    entries_free,
    entries_remove,
    entries_reserve,
    entries_tidy,
    entries_to_end,
    Entry,
    entry_end,
    entry_keep,
    entry_name,
    entry_release,
    entry_rename,
    find_slot,
    home,
    next_bucket,
    position,
    SLOTS,
    Table,
    WHOLE,
)
from blazar_sched.ext._fit cimport (
    ask_directories,
    find_places,
    fit,
    number_of,
    Turn,
    TURN,
)
from blazar_sched.ext._held cimport has, held_by
from blazar_sched.ext._horizon cimport (
    Horizon,
    horizon_fits,
    horizon_look_all,
    horizon_of,
    horizon_set,
    Horizons,
    horizons_bytes,
    horizons_clear,
    horizons_get,
    horizons_touch,
    short_time,
)
from blazar_sched.ext._host_state cimport (
    DISK_GB,
    HostStates,
    MEMORY_MB,
    NOWHERE,
    VCPU,
)
from blazar_sched.ext._hosts cimport Hosts
from blazar_sched.ext._keys cimport (
    Keys,
    keys_free,
    keys_sort,
    keys_sort_distinct,
)
from blazar_sched.ext._load cimport load_entries, load_hosts, load_rows
from blazar_sched.ext._memory cimport prefetch
from blazar_sched.ext._name cimport Name, name_hash, name_text, same_name
from blazar_sched.ext._query cimport (
    compare_runs,
    FIRST,
    keep_runs,
    Least,
    Order,
    Query,
    Run,
    TOGETHER,
    take_order,
)
from blazar_sched.ext._row cimport (
    CHUNK,
    chunk_peak,
    LANES,
    Row,
    row_raise,
    times_of,
)
from blazar_sched.ext._runs cimport find_edges, find_runs
from blazar_sched.ext._scan cimport (
    AMOUNT_LIMIT,
    first_blocked,
    over_capacity,
    peak,
    row_excess,
)
from blazar_sched.ext._sketch cimport (
    Look,
    Sketch,
    sketch_bytes,
    sketch_clear,
    sketch_fits,
    sketch_look,
    sketch_ready,
    sketch_touch,
)
from blazar_sched.ext._sweep cimport (
    first_start,
    NO_MEMORY,
    Starts,
    Stretch,
    Sweep,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport (
    int32_t,
    INT64_MAX as FOREVER,
    int64_t,
    UINT32_MAX as NEVER,
    uint32_t,
    uint64_t,
)
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcmp, memcpy, memset

import array

from blazar_sched.ext import errors

cdef int64_t TIME_LIMIT = errors.TIME_LIMIT
cdef int CLASSES_LIMIT = errors.CLASSES_LIMIT


def _is_compiled():
    """Return True: this is the compiled implementation."""
    return True


cdef class TimelineIndex:
    """Hosts x resource classes x time, in exact integers and whole seconds.

    See blazar_sched.ext.timeline_index.TimelineIndex.
    """

    cdef readonly tuple resource_classes
    cdef readonly Py_ssize_t generation
    cdef Hosts _hosts
    cdef Entries _entries
    cdef Horizons _horizons
    cdef Sketch _sketch
    cdef int64_t _now       # set by advance; -1 before
    cdef int _source[LANES]     # attributes of HostStates, by class

    def __init__(self, resource_classes, horizons=32, sketch=540):
        """Create an empty index."""

    def __cinit__(self, resource_classes, horizons=32, sketch=540):
        cdef tuple names = tuple(take_names(
            'resource_classes', resource_classes
        ))
        cdef int classes = <int> min(len(names), CLASSES_LIMIT + 1)
        cdef int i
        if not 0 < classes <= CLASSES_LIMIT:
            raise errors.InvalidName('resource_classes', names)
        self.resource_classes = names
        self._now = -1
        self._hosts = Hosts((*names, 'shared', 'whole'))
        self._entries.classes = classes
        self._horizons.most = take_count('horizons', horizons)
        self._horizons.horizon = <Horizon *> calloc(
            self._horizons.most + 1, sizeof(Horizon)
        )
        if self._horizons.horizon == NULL:
            raise MemoryError
        self._sketch.most = <int> take_count('sketch', sketch)
        for i in range(classes):
            self._source[i] = {
                'VCPU': VCPU, 'MEMORY_MB': MEMORY_MB, 'DISK_GB': DISK_GB
            }.get(names[i], NOWHERE)

    def __dealloc__(self):
        entries_free(&self._entries)
        horizons_clear(&self._horizons)
        free(self._horizons.horizon)
        sketch_clear(&self._sketch)

    def __len__(self):
        """Return the number of entries."""
        return self._entries.count

    def __contains__(self, id):
        """Return whether an entry with this id exists, in O(1)."""
        return has(&self._entries, id)

    @property
    def hosts(self):
        """The hosts in row order."""
        return self._hosts.names.copy()

    # Changes

    def apply(self, changes, force=False):
        """Apply a batch of changes in order, all of them or none.

        O(log steps + k) per change; in O(entries) if it drops a host.
        """
        cdef Batch batch = Batch(self._hosts.classes, not force)
        batch.read(changes)
        self._run(batch)
        error = batch.tell(self._hosts.lane_names)
        if error is not None:
            raise error

    cdef void _run(self, Batch batch) noexcept:
        """Apply all converted changes or none, without running Python code."""
        cdef Py_ssize_t i
        for i in range(batch.changes):
            if i % TURN == 0:
                self._ask_ahead(batch, i, min(i + TURN, batch.changes))
            if not self._change(batch, &batch.change[i]):
                batch.failed = i
                break
        if (
            batch.failure == FINE and batch.refusal is None
            and self._judge(batch)
        ):
            self._keep(batch)
        else:
            self._undo(batch)

    cdef void _ask_ahead(
        self, Batch batch, Py_ssize_t first, Py_ssize_t last
    ) noexcept:
        """Prefetch the memory of the next changes, as ``fit`` does."""
        cdef Turn starts, ends
        cdef Entries *entries = &self._entries
        cdef Py_ssize_t i, moved = entries.count
        cdef const Change *change
        starts.count = ends.count = 0
        if last - first == 1:
            return
        for i in range(first, last):
            change = &batch.change[i]
            if change.kind == ADD:
                prefetch(change.host)
                entries_ask(entries, BY_OWNER, &change.owner)
            if change.named:
                entries_ask(entries, BY_ID, &change.id)
            if change.kind == REMOVE and moved > 0:
                # The last entry moves to the position of the removed one.
                moved -= 1
                self._ask_names(moved)
        for i in range(first, last):
            change = &batch.change[i]
            if change.kind == ADD:
                self._turn_to_host(&starts, &ends, change)
                entries_ask_on(entries, BY_OWNER, &change.owner)
            if change.named:
                entries_ask_on(entries, BY_ID, &change.id)
        for i in range(first, last):
            if batch.change[i].kind == REMOVE:
                self._turn_to_entry(&starts, &ends, &batch.change[i])
        ask_directories(&starts)
        find_places(&starts, self._hosts.lanes)
        find_places(&ends, self._hosts.lanes)

    cdef void _ask_names(self, Py_ssize_t i) noexcept:
        """Prefetch the buckets of both names of an entry."""
        cdef Name name
        for which in range(2):
            name = entry_name(&self._entries.entry[i], which)
            entries_ask(&self._entries, which, &name)

    cdef void _turn_to_entry(
        self, Turn *starts, Turn *ends, const Change *change
    ) noexcept:
        cdef Py_ssize_t i = self._find(change)
        cdef const Entry *entry
        cdef Name owner
        if i < 0:
            return
        entry = &self._entries.entry[i]
        owner = entry_name(entry, BY_OWNER)
        entries_ask(&self._entries, BY_OWNER, &owner)
        prefetch(amounts_of(&self._entries, i))
        prefetch(&self._entries.entry[entry.next])
        prefetch(&self._entries.entry[entry.previous])
        self._turn_to(
            starts, ends, entry.row, entry.start, entry_end(entry)
        )

    cdef void _turn_to_host(
        self, Turn *starts, Turn *ends, const Change *change
    ) noexcept:
        cdef Py_ssize_t row = self._hosts.number(<object> change.host)
        if row >= 0:
            self._turn_to(starts, ends, row, change.start, change.end)

    cdef void _turn_to(
        self, Turn *starts, Turn *ends, Py_ssize_t row, int64_t start,
        int64_t end,
    ) noexcept:
        """Prefetch a row, and add the start and the end of a change."""
        cdef Hosts hosts = self._hosts
        prefetch(&hosts.row[row])
        prefetch(&hosts.row[row].peak)
        prefetch(hosts.debt + row * hosts.classes)
        prefetch(hosts.ceiling + row * hosts.classes)
        starts.row[starts.count] = ends.row[ends.count] = &hosts.row[row]
        starts.at[starts.count] = start
        ends.at[ends.count] = end
        starts.count += 1
        ends.count += 1

    cdef bint _change(self, Batch batch, Change *change) noexcept:
        if change.kind == ADD:
            return self._add(batch, change)
        if change.kind == REMOVE:
            return self._remove(batch, change)
        if change.kind == MOVE:
            return self._move(batch, change)
        if change.kind == CAPACITY:
            return self._set_capacity(batch, change)
        return self._drop(batch, change)

    cdef bint _add(self, Batch batch, Change *change) noexcept:
        cdef Py_ssize_t row = self._hosts.number(<object> change.host), i
        cdef Entry *entry = &change.entry
        if row < 0:
            return batch.fail(UNKNOWN_HOST)
        if change.refusal != NULL:
            return batch.fail(REFUSED)
        i = entries_find(&self._entries, BY_ID, &change.id)
        if i >= 0:
            return self._is(i, row, change) or batch.fail(ENTRY_EXISTS)
        if not entries_reserve(&self._entries, 1):
            return batch.fail(OUT_OF_MEMORY)
        if not self._raise(
            batch, row, change.start, change.end, change.delta, 1
        ):
            return False
        entry.flags = WHOLE if change.delta[self._hosts.classes + 1] else 0
        entry_rename(entry, BY_ID, &change.id)
        entry_rename(entry, BY_OWNER, &change.owner)
        entry.row = <uint32_t> row
        entry.start = <uint32_t> change.start
        entry.end = short_time(change.end)
        entry_keep(entry)
        entries_append(&self._entries, entry, change.delta)
        self._hosts.count_entry(row, change.delta, 1)
        change.did = ADD
        return True

    cdef bint _is(
        self, Py_ssize_t i, Py_ssize_t row, const Change *change
    ) noexcept:
        """Return whether an entry equals the one to add."""
        cdef const Entry *entry = &self._entries.entry[i]
        cdef Name owner = entry_name(entry, BY_OWNER)
        cdef int32_t delta[LANES]
        delta_of(&self._entries, i, 1, delta)
        return (
            entry.row == row and entry.start == change.start
            and entry_end(entry) == change.end
            and same_name(&owner, &change.owner)
            and memcmp(
                delta, change.delta, self._hosts.lanes * sizeof(int32_t)
            ) == 0
        )

    cdef bint _remove(self, Batch batch, Change *change) noexcept:
        cdef Py_ssize_t i = self._find(change)
        cdef Entry *entry = &change.entry
        if i < 0:
            return batch.fail(UNKNOWN_ENTRY)
        entry[0] = self._entries.entry[i]
        delta_of(&self._entries, i, 1, change.delta)
        if not self._raise(
            batch, entry.row, entry.start, entry_end(entry), change.delta, -1
        ):
            return False
        self._hosts.count_entry(entry.row, change.delta, -1)
        entries_remove(&self._entries, i)
        change.did = REMOVE
        return True

    cdef bint _move(self, Batch batch, Change *change) noexcept:
        cdef Py_ssize_t i = self._find(change), row
        cdef Entry new
        if i < 0:
            return batch.fail(UNKNOWN_ENTRY)
        row = self._hosts.number(<object> change.host)
        if row < 0:
            return batch.fail(UNKNOWN_HOST)
        if change.refusal != NULL:
            return batch.fail(REFUSED)
        change.entry = new = self._entries.entry[i]
        new.row = <uint32_t> row
        new.start = <uint32_t> change.start
        new.end = short_time(change.end)
        if same_window(&new, &change.entry):
            return True
        delta_of(&self._entries, i, 1, change.delta)
        if not self._shift(batch, i, &new, change.delta):
            return False
        change.did = MOVE
        return True

    cdef bint _shift(
        self, Batch batch, Py_ssize_t i, const Entry *new,
        const int32_t *delta,
    ) noexcept:
        """Move an entry to another window, maybe of another host.

        :param batch: None to undo a move, without checks.
        """
        cdef Entry *entry = &self._entries.entry[i]
        cdef Part part[4]
        cdef int parts = outside(entry, new, -1, part), done
        parts += outside(new, entry, 1, part + parts)
        for done in range(parts):
            if not self._raise(
                batch, part[done].row, part[done].start, part[done].end,
                delta, part[done].sign,
            ):
                while done > 0:
                    done -= 1
                    self._raise(
                        None, part[done].row, part[done].start,
                        part[done].end, delta, -part[done].sign,
                    )
                return False
        self._hosts.count_entry(entry.row, delta, -1)
        self._hosts.count_entry(new.row, delta, 1)
        entry.row, entry.start, entry.end = new.row, new.start, new.end
        entries_to_end(&self._entries, i)
        return True

    cdef bint _raise(
        self, Batch batch, Py_ssize_t row, int64_t start, int64_t end,
        const int32_t *delta, int sign,
    ) noexcept:
        """Add to the lanes of a host over a window.

        :param batch: None to undo a change, without checks.
        """
        cdef Hosts hosts = self._hosts
        cdef int32_t signed[LANES]
        cdef uint32_t worse = 0
        cdef int lane
        for lane in range(hosts.lanes):
            signed[lane] = sign * delta[lane]
            worse |= <uint32_t> (signed[lane] > 0) << lane
        hosts.raise_ceiling(row, signed)
        if batch is not None:
            if hosts.may_exceed(row, signed):
                batch.excess = row_excess(
                    &hosts.row[row], hosts.lanes, start, end, signed
                )
                if batch.excess.lane >= 0:
                    batch.where = <PyObject *> hosts.names[row]
                    return batch.fail(OVERFLOW)
            if not batch.note_worse(hosts, row, start, end, worse):
                return False
        if not row_raise(&hosts.row[row], hosts.lanes, start, end, signed):
            return batch is not None and batch.fail(OUT_OF_MEMORY)
        self._touch(row, start, end)
        return True

    cdef void _touch(
        self, Py_ssize_t row, int64_t start, int64_t end
    ) noexcept:
        """Record a change of a row in the horizons and the sketch."""
        horizons_touch(&self._horizons, row)
        sketch_touch(
            &self._sketch, row, <uint32_t> start, short_time(end)
        )

    cdef bint _set_capacity(self, Batch batch, Change *change) noexcept:
        cdef Hosts hosts = self._hosts
        cdef Py_ssize_t row = hosts.number(<object> change.host)
        cdef uint32_t lowered = 0
        cdef int64_t own[LANES]
        cdef size_t size = hosts.classes * sizeof(int64_t)
        cdef int i
        if row < 0:
            change.row = hosts.count
            if not self._insert(
                hosts.count, <str> change.host, change.capacity
            ):
                return batch.fail(OUT_OF_MEMORY)
            change.did = INSERT
            return True
        memcpy(own, hosts.capacity + row * hosts.classes, size)
        if memcmp(own, change.capacity, size) == 0:
            return True
        for i in range(hosts.classes):
            lowered |= <uint32_t> (change.capacity[i] < own[i]) << i
        if not batch.note_worse(hosts, row, 0, FOREVER, lowered):
            return False
        self._resize(row, change.capacity)
        memcpy(change.capacity, own, size)
        change.row = row
        change.did = CAPACITY
        return True

    cdef bint _drop(self, Batch batch, Change *change) noexcept:
        cdef Hosts hosts = self._hosts
        cdef Py_ssize_t row = hosts.number(<object> change.host)
        if row < 0:
            return batch.fail(UNKNOWN_HOST)
        if hosts.row[row].entries > 0:
            return batch.fail(HOST_IN_USE)
        change.host = <PyObject *> hosts.names[row]
        Py_INCREF(<object> change.host)
        memcpy(
            change.capacity, hosts.capacity + row * hosts.classes,
            hosts.classes * sizeof(int64_t),
        )
        self._delete(row)
        change.row = row
        change.did = DROP
        return True

    cdef void _resize(self, Py_ssize_t row, const int64_t *capacity) noexcept:
        self._hosts.resize(row, capacity)
        self._touch(row, 0, FOREVER)

    cdef bint _insert(
        self, Py_ssize_t row, str host, const int64_t *capacity
    ) noexcept:
        """Insert a host at a row; False without memory."""
        try:
            self._hosts.insert(row, host, capacity)
        except MemoryError:
            return False
        self._renumber(row, 1)
        return True

    cdef void _delete(self, Py_ssize_t row) noexcept:
        try:
            self._hosts.delete(row)
        except MemoryError:
            # Not raised: only existing numbers are replaced.
            pass
        self._renumber(row + 1, -1)

    cdef void _renumber(self, Py_ssize_t row, int by) noexcept:
        """Update the rows of entries after a host came or went."""
        cdef Py_ssize_t i
        cdef bint last = by > 0 and row == self._hosts.count - 1
        if not last:
            for i in range(self._entries.count):
                if self._entries.entry[i].row >= row:
                    self._entries.entry[i].row += by
            horizons_clear(&self._horizons)
            sketch_clear(&self._sketch)
        elif row < self._hosts.count:
            self._touch(row, 0, FOREVER)

    cdef void _keep(self, Batch batch) noexcept:
        """Release what was stored for undoing the batch."""
        cdef Py_ssize_t i
        cdef int did, any = NOTHING
        for i in range(batch.changes):
            did = batch.change[i].did
            any |= did
            if did == REMOVE:
                entry_release(&batch.change[i].entry)
            elif did == DROP:
                Py_DECREF(<object> batch.change[i].host)
        if any != NOTHING:
            entries_tidy(&self._entries)
            self.generation += 1

    cdef void _undo(self, Batch batch) noexcept:
        """Undo all applied changes in reverse order."""
        cdef Py_ssize_t i
        for i in range(batch.changes - 1, -1, -1):
            self._undo_one(&batch.change[i])

    cdef void _undo_one(self, Change *change) noexcept:
        cdef Entry *entry = &change.entry
        cdef int sign = -1 if change.did == ADD else 1
        if change.did == ADD or change.did == REMOVE:
            self._raise(
                None, entry.row, entry.start, entry_end(entry), change.delta,
                sign,
            )
            self._hosts.count_entry(entry.row, change.delta, sign)
        if change.did == ADD:
            entries_remove(&self._entries, self._find(change))
            entry_release(entry)
        elif change.did == REMOVE:
            entries_append(&self._entries, entry, change.delta)
        elif change.did == MOVE:
            self._shift(None, self._find(change), entry, change.delta)
        elif change.did == CAPACITY:
            self._resize(change.row, change.capacity)
        elif change.did == INSERT:
            self._delete(change.row)
        elif change.did == DROP:
            self._insert(change.row, <str> change.host, change.capacity)
            Py_DECREF(<object> change.host)

    cdef bint _judge(self, Batch batch) noexcept:
        """Find the first excess that the batch caused."""
        cdef Hosts hosts = self._hosts
        cdef Py_ssize_t i, row
        cdef const Worse *worse
        for i in range(batch.worses):
            worse = &batch.worse[i]
            row = hosts.number(<object> worse.host)
            if row < 0:
                continue
            batch.excess = over_capacity(
                &hosts.row[row], hosts.lanes, worse.start, worse.end,
                hosts.capacity + row * hosts.classes, worse.lanes,
            )
            if batch.excess.lane >= 0:
                batch.where = worse.host
                return batch.fail(OVER_CAPACITY)
        return True

    cdef Py_ssize_t _find(self, const Change *change) noexcept:
        """Return the entry of a change, or -1."""
        if not change.named:
            return -1
        return entries_find(&self._entries, BY_ID, &change.id)

    def load(
        self, hosts, capacity, ids, owners, rows, starts, ends, amounts,
        whole,
    ):
        """Replace all content by columns, in O(n log n)."""
        part = ids, owners, rows, starts, ends, amounts, whole
        self.load_parts(hosts, capacity, [part])

    def load_parts(self, hosts, capacity, parts):
        """Replace all content by columns in parts, in O(n log n).

        64-bit columns are not copied. The rows are built without the GIL, in
        a new index.
        """
        cdef TimelineIndex other = TimelineIndex(self.resource_classes, 0, 0)
        load_hosts(other._hosts, hosts, capacity)
        for ids, owners, rows, starts, ends, amounts, whole in parts:
            load_entries(
                other._hosts, &other._entries, ids, owners, rows, starts,
                ends, amounts, whole,
            )
        entries_tidy(&other._entries)
        load_rows(other._hosts, &other._entries)
        self._hosts, other._hosts = other._hosts, self._hosts
        self._entries, other._entries = other._entries, self._entries
        horizons_clear(&self._horizons)
        sketch_clear(&self._sketch)
        self.generation += 1

    def columns(self):
        """Return the columns from which ``load`` makes an equal index."""
        cdef Hosts hosts = self._hosts
        cdef Py_ssize_t i, count = self._entries.count
        cdef int classes = hosts.classes, lane
        cdef list ids = [None] * count, owners = [None] * count
        cdef const Entry *entry
        cdef Name name
        cdef bytearray whole = bytearray(count)
        cdef Py_ssize_t generation = self.generation
        capacity, rows, starts, ends, amounts = [
            array.array('q', bytes(n * sizeof(int64_t))) for n in (
                hosts.count * classes, count, count, count, count * classes
            )
        ]
        names = hosts.names.copy()
        cdef int64_t[::1] room = capacity, number = rows, start = starts
        cdef int64_t[::1] end = ends, amount = amounts
        if generation != self.generation:
            # Another thread has changed the index.
            return self.columns()
        for i in range(hosts.count * classes):
            room[i] = hosts.capacity[i]
        for i in range(count):
            entry = &self._entries.entry[i]
            name = entry_name(entry, BY_ID)
            ids[i] = name_text(&name)
            name = entry_name(entry, BY_OWNER)
            owners[i] = name_text(&name)
            number[i], start[i] = entry.row, entry.start
            end[i] = entry_end(entry)
            whole[i] = 1 if entry.flags & WHOLE else 0
            for lane in range(classes):
                amount[i * classes + lane] = amounts_of(
                    &self._entries, i
                )[lane]
        return (
            names, capacity, ids, owners, rows, starts, ends, amounts,
            bytes(whole),
        )

    def held(self, owner):
        """Return an owner's entries, in O(their number)."""
        return held_by(self._hosts, &self._entries, owner)

    def forget(self, before):
        """Remove the entries that end by ``before``, in O(entries)."""
        cdef int64_t limit = take_time('before', before)
        cdef Py_ssize_t i
        cdef Name id
        over = []
        for i in range(self._entries.count):
            if entry_end(&self._entries.entry[i]) <= limit:
                id = entry_name(&self._entries.entry[i], BY_ID)
                over.append((self._entries.entry[i].end, name_text(&id)))
        over.sort()
        self.apply([('remove', each) for _, each in over], force=True)
        return len(over)

    def advance(self, now):
        """Set the clock: queries whose windows start at it are faster.

        The first such query for a request walks over each row, O(H (log +
        k)); the next ones take O(H), one comparison per row.
        """
        self._now = take_time('now', now)

    # Queries

    def rows(self, hosts):
        """Return the row number of each host, -1 for an unknown host."""
        return array.array('i', [
            self._hosts.number(exact(host)) if isinstance(host, str) else -1
            for host in hosts
        ])

    def row_keys(self, rows):
        """Return the host of each row number; the reverse of ``rows``."""
        cdef int64_t number = 0
        hosts = []
        for row in rows:
            if not integer(row, 0, self._hosts.count - 1, &number):
                raise errors.UnknownHost(row)
            hosts.append(self._hosts.names[number])
        return hosts

    def fits(
        self, rows, start, end, amounts, headroom=None, whole=False,
        ignore=None,
    ):
        """Return one byte per row: 1 if the request fits.

        O(n), one comparison per row, from the clock on; O(n (log + k)) by
        the rows; between the two if the sketch decides most rows.
        """
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef Query query = self._query(rows, amounts, headroom, whole)
        query.begin(self._hosts, &self._entries, ignore, True)
        cdef bytes answers = PyBytes_FromStringAndSize(NULL, query.answers)
        self._answer(query, begin, until, PyBytes_AS_STRING(answers))
        query.spread(PyBytes_AS_STRING(answers), 1, b'\1')
        return answers

    def peak(self, rows, start, end, ignore=None):
        """Return R + 2 numbers per row, in O(n (log + k) R)."""
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef Query query = self._query(rows, None, None, True)
        cdef int lanes = self._hosts.lanes
        cdef Py_ssize_t i
        cdef int64_t[LANES] nothing
        memset(nothing, 0, sizeof(nothing))
        query.begin(self._hosts, &self._entries, ignore, True)
        cdef bytes answers = PyBytes_FromStringAndSize(
            NULL, query.answers * lanes * sizeof(int64_t)
        )
        cdef int64_t *most = <int64_t *> PyBytes_AS_STRING(answers)
        for i in range(query.count):
            peak(
                &query.rows.row[number_of(query.numbers, i)], lanes, begin,
                until, most + i * lanes,
            )
        query.spread(<char *> most, lanes * sizeof(int64_t), nothing)
        return array.array('q', answers)

    def free(self, rows, groups, count, start, end):
        """Return what is free, by group, in O(n (log + k) R)."""
        cdef Py_ssize_t sums = take_count('count', count)
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef Query query = self._query(rows, None, None, True)
        cdef const int[::1] group = groups
        cdef int lanes = self._hosts.lanes, classes = self._hosts.classes
        cdef int lane
        cdef int64_t most[LANES]
        cdef const int64_t *room
        cdef int64_t *own
        cdef Py_ssize_t i
        answers = array.array('q', bytes(sums * (classes + 1) * 8))
        cdef int64_t[::1] added = answers
        query.begin(self._hosts, &self._entries, None)
        if group.shape[0] != query.count:
            raise errors.InvalidAmount('groups', groups)
        for i in range(query.count):
            if not 0 <= group[i] < sums:
                raise errors.InvalidAmount('groups', groups)
        for i in range(query.count):
            peak(
                &query.rows.row[number_of(query.numbers, i)], lanes, begin,
                until, most,
            )
            if most[classes + 1] > 0:
                continue
            own = &added[group[i] * (classes + 1)]
            room = query.room_of(i)
            for lane in range(classes):
                own[lane] += max(room[lane] - most[lane], <int64_t> 0)
            own[classes] += most[classes] <= 0
        return answers

    def horizon(
        self, rows, at, amounts, headroom=None, whole=False, ignore=None
    ):
        """Return how long the request keeps fitting; costs as ``fits``."""
        cdef int64_t begin = take_time('at', at), until
        cdef Query query = self._query(rows, amounts, headroom, whole)
        cdef int32_t limit[LANES]
        cdef const Row *row
        cdef Horizon *horizon
        cdef Py_ssize_t i
        query.begin(self._hosts, &self._entries, ignore, True)
        cdef bytes answers = PyBytes_FromStringAndSize(
            NULL, query.answers * sizeof(int64_t)
        )
        cdef int64_t *seconds = <int64_t *> PyBytes_AS_STRING(answers)
        horizon = self._horizon(query, begin)
        for i in range(query.count):
            if horizon != NULL:
                until = self._from_horizon(horizon, query, i)
            else:
                row = query.look(i, limit)
                until = first_blocked(
                    &query.request, limit, row, begin, FOREVER
                )
            seconds[i] = until
            if until != FOREVER:
                seconds[i] = max(until - begin, <int64_t> 0)
        until = FOREVER
        query.spread(<char *> seconds, sizeof(int64_t), &until)
        return array.array('q', answers)

    def earliest(
        self, count, duration, after, amounts, rows=None, not_after=None,
        whole=False, ignore=None,
    ):
        """Return the first start at which ``count`` hosts fit, and these.

        O(m) for m steps up to twice the distance of the answer.
        """
        cdef Py_ssize_t enough = take_count('count', count)
        cdef int64_t lasting = take_end('duration', 0, duration)
        cdef int64_t first = take_time('after', after)
        cdef int64_t last = TIME_LIMIT - 1, at
        if not_after is not None:
            last = take_time('not_after', not_after)
        cdef Query query = self._query(rows, amounts, None, whole)
        cdef list found = []
        cdef Sweep sweep
        cdef Stretch stretch
        query.begin(self._hosts, &self._entries, ignore)
        sweep.request = &query.request
        sweep.rows = &query.rows
        sweep.numbers = query.numbers
        sweep.count = query.count
        sweep.enough = enough
        sweep.duration = lasting
        at = first_start(&sweep, first, last, &stretch)
        try:
            if at == NO_MEMORY:
                raise MemoryError
            if at < 0:
                return None
            self._list_starting(query, &stretch, at, enough, found)
        finally:
            free(stretch.starts)
        return at, found

    cdef int _list_starting(
        self, Query query, const Stretch *stretch, int64_t at,
        Py_ssize_t most, list found,
    ) except -1:
        """Append the first hosts on which the request can start."""
        cdef const Starts *starts
        cdef Py_ssize_t run
        for run in range(stretch.runs):
            if len(found) == most:
                break
            starts = &stretch.starts[run]
            if starts.first <= at <= starts.last:
                found.append(
                    self._hosts.names[number_of(query.numbers, starts.i)]
                )
        return 0

    def runs(
        self, duration, after, amounts, rows=None, not_after=None,
        whole=False, ignore=None,
    ):
        """Return the free runs, in O(n log steps + m) for m steps."""
        cdef int64_t lasting = take_end('duration', 0, duration)
        cdef int64_t first = take_time('after', after)
        cdef int64_t last = TIME_LIMIT - 1
        if not_after is not None:
            last = take_time('not_after', not_after)
        cdef Query query = self._query(rows, amounts, None, whole)
        cdef Keys runs = Keys(NULL, 0, 0)
        query.begin(self._hosts, &self._entries, ignore)
        try:
            if not (
                find_runs(query, lasting, first, last, &runs)
                and keys_sort(&runs)
            ):
                raise MemoryError
            return times_in(&runs, 32), times_in(&runs, 0)
        finally:
            keys_free(&runs)

    def edges(self, rows, start, end):
        """Return the edges, in O(entries)."""
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef Query query = self._query(rows, None, None, True)
        cdef Keys starts = Keys(NULL, 0, 0), ends = Keys(NULL, 0, 0)
        query.begin(self._hosts, &self._entries, None)
        try:
            if not (
                find_edges(
                    query, &self._entries, begin, until, &starts, &ends
                )
                and keys_sort_distinct(&starts)
                and keys_sort_distinct(&ends)
            ):
                raise MemoryError
            return times_in(&starts, 0), times_in(&ends, 0)
        finally:
            keys_free(&starts)
            keys_free(&ends)

    def pick(
        self, count, start, end, amounts, rows=None, order='tightest',
        whole=False, ignore=None,
    ):
        """Return up to ``count`` hosts that fit, in O(n (log n + k))."""
        cdef Py_ssize_t most = take_count('count', count)
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef Order by = take_order(order)
        cdef Query query = self._query(rows, amounts, None, whole)
        cdef list found = []
        query.begin(self._hosts, &self._entries, ignore)
        self._find_fitting(query, begin, until, most, by, found)
        return found

    cdef int _find_fitting(
        self, Query query, int64_t start, int64_t end, Py_ssize_t most,
        Order order, list found,
    ) except -1:
        """Append the first hosts that fit, in an order."""
        cdef Py_ssize_t i
        cdef char *fits = <char *> malloc(query.count + 1)
        cdef Least least
        least.count = 0
        least.most = min(most, query.count)
        least.run = <Run *> malloc((least.most + 1) * sizeof(Run))
        try:
            if fits == NULL or least.run == NULL:
                raise MemoryError
            self._look_for_runs(query, start, end, order, fits, &least)
            qsort(least.run, least.count, sizeof(Run), compare_runs)
            for i in range(least.count):
                found.append(self._hosts.names[
                    number_of(query.numbers, least.run[i].i)
                ])
        finally:
            free(fits)
            free(least.run)
        return 0

    cdef void _look_for_runs(
        self, Query query, int64_t start, int64_t end, Order order,
        char *fits, Least *least,
    ) noexcept:
        """Collect the least runs of a query without headroom."""
        cdef Py_ssize_t first, count
        if order == FIRST or query.numbers == NULL:
            self._answer(query, start, end, fits)
            keep_runs(query, start, end, fits, 0, query.count, order, least)
            return
        # In groups, so that the rows are still cached for their runs.
        for first in range(0, query.count, TOGETHER):
            count = min(<Py_ssize_t> TOGETHER, query.count - first)
            fit(
                &query.request, &query.rows, query.numbers + first, NULL,
                count, start, end, fits + first,
            )
            keep_runs(
                query, start, end, fits, first, first + count, order, least
            )

    # Nova's HostStates

    def headroom(self, host_states):
        """Return the rows and the headroom of Nova's HostStates."""
        cdef HostStates looked = self._look(list(host_states), NULL)
        cdef Py_ssize_t i, k = 0, count = len(looked.states)
        cdef int classes = self._hosts.classes, lane
        rows = array.array('i', bytes(count * sizeof(int)))
        room = array.array('q', bytes(count * classes * sizeof(int64_t)))
        cdef int[::1] number = rows
        cdef int64_t[::1] left = room
        for i in range(count):
            if not looked.is_known[i]:
                number[i] = -1
                continue
            number[i] = looked.number[k]
            for lane in range(classes):
                left[i * classes + lane] = looked.room[k * classes + lane]
            k += 1
        return rows, room

    def select(self, host_states, start, end, amounts, ignore=None):
        """Return the HostStates, the same objects, on which the request fits.

        Reading the HostStates costs more than ``fits``.
        """
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef Query query = self._query(None, amounts, None, False)
        cdef list states = list(host_states), passing = []
        cdef HostStates looked = self._look(states, query.request.amount)
        cdef bytes answers = PyBytes_FromStringAndSize(NULL, looked.known)
        cdef char *answer = PyBytes_AS_STRING(answers)
        cdef Py_ssize_t i, k = 0
        query.begin(self._hosts, &self._entries, ignore)
        query.only(looked)
        self._answer(query, begin, until, answer)
        for i in range(len(states)):
            if looked.is_known[i]:
                k += 1
                if not answer[k - 1]:
                    continue
            passing.append(states[i])
        return passing

    cdef HostStates _look(self, list states, const int64_t *amounts):
        """Read HostStates; the caller runs no Python code afterwards."""
        cdef HostStates looked = HostStates(states, self._hosts.classes)
        cdef Hosts hosts = None
        cdef Py_ssize_t numbering = -1
        # Reading runs Python code, which may change the row numbers.
        while hosts is not self._hosts or numbering != hosts.numbering:
            hosts = self._hosts
            numbering = hosts.numbering
            looked.read(hosts, self._source, amounts)
        looked.leave(hosts)
        return looked

    # Looking inside

    def memory(self):
        """Return the bytes of each layer, in O(steps)."""
        return {
            'rows': self._hosts.bytes(),
            'entries': entries_bytes(&self._entries),
            'horizons': horizons_bytes(&self._horizons),
            'sketch': sketch_bytes(&self._sketch),
        }

    def dump(self):
        """Return the whole content of the index, for tests and debugging."""
        cdef Py_ssize_t number
        names, _, ids, owners, rows, starts, ends, amounts, whole = (
            self.columns()
        )
        cdef int classes = self._hosts.classes
        owned = {}
        for id, owner in zip(ids, owners):
            owned.setdefault(owner, set()).add(id)
        return {
            'resource_classes': self.resource_classes,
            'generation': self.generation,
            'hosts': [
                (
                    name, self._hosts.capacities(number),
                    *self._hosts.steps(number),
                )
                for number, name in enumerate(names)
            ],
            'entries': {
                ids[i]: (
                    owners[i], names[rows[i]], starts[i], ends[i],
                    tuple(amounts[i * classes:(i + 1) * classes]),
                    bool(whole[i]),
                )
                for i in range(len(ids))
            },
            'owned': owned,
        }

    def check(self):
        """Assert every invariant of the index, in O(n log n)."""
        cdef Hosts hosts = self._hosts
        cdef TimelineIndex other = TimelineIndex(self.resource_classes, 0, 0)
        cdef Py_ssize_t number
        # Row numbers are positions, without duplicate hosts.
        assert hosts.count == len(hosts.names) == len(hosts.numbers)
        assert hosts.count <= hosts.size
        for number, host in enumerate(hosts.names):
            assert hosts.numbers[host] == number
            self._check_row(number)
        self._check_registry()
        # Each entry is valid, its host exists, and the steps equal those
        # that the entries give.
        other.load(*self.columns())
        for number in range(hosts.count):
            assert hosts.steps(number) == other._hosts.steps(number)
            assert hosts.row[number].entries == (
                other._hosts.row[number].entries
            )
            # The bounds hold; the ceiling of `other` is exact.
            for lane in range(hosts.classes):
                i = hosts.classes * number + lane
                assert hosts.debt[i] == other._hosts.debt[i]
                assert hosts.ceiling[i] >= other._hosts.ceiling[i]

    cdef int _check_row(self, Py_ssize_t number) except -1:
        cdef Row *row = &self._hosts.row[number]
        cdef int lanes = self._hosts.lanes, lane
        cdef int32_t peaks[LANES]
        cdef uint32_t c
        times, sums = self._hosts.steps(number)
        # There is enough room, and no chunk is empty.
        assert 1 <= row.chunks <= row.room
        for c in range(row.chunks):
            assert 1 <= row.chunk[c].steps <= row.chunk[c].room <= CHUNK
            # The directory has the first time, peak and lift of each chunk.
            assert row.first[c] == times_of(row.chunk[c])[0]
            memcpy(peaks, row.peak + c * lanes, lanes * sizeof(int32_t))
            chunk_peak(row, lanes, c)
            for lane in range(lanes):
                assert peaks[lane] == row.peak[c * lanes + lane]
                assert abs(row.lift[c * lanes + lane]) <= row.lifted
        # Capacities are amounts that are not negative.
        capacity = self._hosts.capacities(number)
        assert all(0 <= amount <= AMOUNT_LIMIT for amount in capacity)
        # The times begin at 0 and ascend, below TIME_LIMIT.
        assert times[0] == 0
        assert all(a < b for a, b in zip(times, times[1:]))
        assert times[len(times) - 1] < TIME_LIMIT
        # No step has the sums of the step before it.
        assert all(a != b for a, b in zip(sums, sums[1:]))
        return 0

    cdef int _check_registry(self) except -1:
        cdef Entries *entries = &self._entries
        cdef Py_ssize_t i, at, ring = 0
        cdef Name name
        assert entries.count <= entries.size
        # Each entry is found by its id, and each owner has one ring with
        # all of its entries.
        for i in range(entries.count):
            name = entry_name(&entries.entry[i], BY_ID)
            assert entries_find(entries, BY_ID, &name) == i
            name = entry_name(&entries.entry[i], BY_OWNER)
            if entries_find(entries, BY_OWNER, &name) != i:
                continue
            at = i
            while True:
                assert entries.entry[entries.entry[at].next].previous == (
                    <uint32_t> at
                )
                other = entry_name(&entries.entry[at], BY_OWNER)
                assert same_name(&name, &other)
                at = entries.entry[at].next
                ring += 1
                if at == i:
                    break
        assert ring == entries.count
        self._check_table(BY_ID)
        self._check_table(BY_OWNER)
        return 0

    cdef int _check_table(self, int which) except -1:
        """Assert that each slot has its name, and that counts are right."""
        cdef Entries *entries = &self._entries
        cdef const Table *table = &entries.table[which]
        cdef uint64_t b, way, names = 0
        cdef Name name
        cdef int k
        cdef list passed = [0] * <Py_ssize_t> table.size
        for b in range(table.size):
            for k in range(SLOTS):
                if table.bucket[b].slot[k] == 0:
                    continue
                names += 1
                name = entry_name(
                    &entries.entry[position(table.bucket[b].slot[k])], which
                )
                assert find_slot(entries, which, &name) == (
                    &table.bucket[b].slot[k]
                )
                way = home(table, name_hash(&name))
                while way != b:
                    passed[way] += 1
                    way = next_bucket(table, way)
        assert names == table.count
        for b in range(table.size):
            assert passed[b] == table.bucket[b].passed
        return 0

    # What queries share

    cdef Query _query(self, rows, amounts, headroom, bint whole):
        cdef Query query = Query()
        query.want(self._hosts.classes, amounts, whole)
        query.about(rows, headroom)
        return query

    cdef void _answer(
        self, Query query, int64_t start, int64_t end, char *answer
    ) noexcept:
        """Write whether each requested row fits, by the fastest layer."""
        cdef Horizon *horizon = self._horizon(query, start)
        cdef Py_ssize_t i
        if horizon != NULL and query.plain():
            horizon_look_all(
                horizon, query.rows.row, query.rows.capacity, query.count
            )
            horizon_fits(horizon, query.count, end, answer)
        elif horizon != NULL:
            for i in range(query.count):
                answer[i] = self._from_horizon(horizon, query, i) >= end
        elif not (
            query.plain() and self._from_sketch(query, start, end, answer)
        ):
            fit(
                &query.request, &query.rows, query.numbers, query.room,
                query.count, start, end, answer,
            )

    cdef Horizon *_horizon(self, Query query, int64_t start) noexcept:
        """Return the horizon for a query, NULL if there is none."""
        cdef Horizon *horizon = NULL
        if start == self._now and query.view == NULL:
            horizon = horizons_get(
                &self._horizons, &query.request, query.room != NULL,
                query.rows.count,
            )
        if horizon != NULL:
            horizon_set(horizon, start, self._horizons.size)
        return horizon

    cdef int64_t _from_horizon(
        self, Horizon *horizon, Query query, Py_ssize_t i
    ) noexcept:
        cdef Py_ssize_t number = number_of(query.numbers, i)
        cdef uint32_t begin = horizon_of(
            horizon, &query.rows.row[number], number, query.room_of(i)
        )
        return FOREVER if begin == NEVER else begin

    cdef bint _from_sketch(
        self, Query query, int64_t start, int64_t end, char *answer
    ) noexcept:
        """Answer by the sketch, and by the steps of undecided rows."""
        cdef Sketch *sketch = &self._sketch
        cdef Look look
        cdef Py_ssize_t i, count
        if not (
            sketch_ready(sketch, &query.rows, &query.request)
            and sketch_look(sketch, &query.request, start, end, &look)
        ):
            return False
        count = sketch_fits(sketch, &look)
        memcpy(answer, sketch.answer, query.count)
        fit(
            &query.request, &query.rows, sketch.unsure, NULL, count, start,
            end, sketch.by_rows,
        )
        for i in range(count):
            answer[sketch.unsure[i]] = sketch.by_rows[i]
        return True


cdef times_in(const Keys *keys, int shift):
    """Return the times in the half of each key above ``shift`` bits."""
    cdef bytes answers = PyBytes_FromStringAndSize(
        NULL, keys.count * sizeof(int64_t)
    )
    cdef int64_t *time = <int64_t *> PyBytes_AS_STRING(answers)
    cdef uint32_t short
    cdef Py_ssize_t i
    for i in range(keys.count):
        short = <uint32_t> (keys.key[i] >> shift)
        time[i] = FOREVER if short == NEVER else short
    return array.array('q', answers)


cdef struct Part:
    Py_ssize_t row
    int64_t start
    int64_t end
    int sign


cdef bint same_window(const Entry *a, const Entry *b) noexcept:
    return a.row == b.row and a.start == b.start and a.end == b.end


cdef int outside(
    const Entry *entry, const Entry *other, int sign, Part *part
) noexcept:
    """Write the parts of an entry's window outside of another entry's."""
    cdef int64_t until = entry_end(entry), begin = entry.start
    cdef int parts = 0
    if entry.row == other.row:
        until = min(until, <int64_t> other.start)
        begin = max(begin, entry_end(other))
    if entry.start < until:
        part[parts] = Part(entry.row, entry.start, until, sign)
        parts += 1
    if entry.row == other.row and begin < entry_end(entry):
        part[parts] = Part(entry.row, begin, entry_end(entry), sign)
        parts += 1
    return parts
