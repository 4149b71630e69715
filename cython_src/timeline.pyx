# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: initializedcheck=False
"""The compiled timeline index: answers as blazar_sched.ext.timeline does.

That module is the specification, and the place to read what each call means;
here are the costs. R is the number of classes, n the rows asked, k the steps
of a row that lie in the window.

The GIL is held throughout. A query first turns its arguments into C, then
``begin``s: from there until it has its answer it makes no object that the
garbage collector tracks and runs no Python code, so no other thread gets in
between, and an answer never mixes two generations.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.long cimport PyLong_CheckExact
from libc.stdint cimport int32_t
from libc.stdint cimport int64_t
from libc.stdint cimport INT64_MAX as FOREVER
from libc.stdlib cimport calloc
from libc.stdlib cimport free
from libc.stdlib cimport malloc
from libc.stdlib cimport qsort
from libc.stdlib cimport realloc
from libc.string cimport memmove
from libc.string cimport memset
from rows cimport AMOUNT_LIMIT
from rows cimport Border
from rows cimport Row
from rows cimport row_build
from rows cimport row_copy
from rows cimport row_excess
from rows cimport row_find
from rows cimport row_free
from rows cimport row_init
from rows cimport row_raise
from rows cimport row_reserve
from rows cimport row_resize
from rows cimport row_sums
from scan cimport first_blocked
from scan cimport first_free
from scan cimport free_since
from scan cimport peak
from scan cimport Request

import array

from blazar_sched.ext import errors

cdef extern from 'Python.h':
    int PyGC_Disable()
    int PyGC_Enable()

cdef int64_t TIME_LIMIT = errors.TIME_LIMIT

# The first stretch of starts that earliest() looks at, in seconds.
cdef int64_t FIRST_SWEEP = 24 * 3600


def _is_compiled():
    """Tell this module from its plain-Python twin."""
    return True


@cython.final
@cython.no_gc
cdef class Entry:
    """One signed step pair on one host's timeline."""

    cdef object owner
    cdef object host
    cdef int64_t start
    cdef int64_t end
    cdef int classes
    cdef int32_t *delta     # lanes: what it adds to each, from start to end

    def __cinit__(self, int classes):
        self.classes = classes
        self.delta = <int32_t *> calloc(classes + 2, sizeof(int32_t))
        if self.delta == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.delta)

    cdef int settle(self, bint whole) except -1:
        """Set the counting lanes, once the amounts are there."""
        cdef int i
        cdef bint given = False, shared = False
        for i in range(self.classes):
            given = given or self.delta[i] != 0
            shared = shared or self.delta[i] > 0
        if given == whole:
            raise errors.InvalidAmount('amounts', self.amounts())
        self.delta[self.classes] = shared
        self.delta[self.classes + 1] = whole
        return 0

    cdef bint whole(self):
        return self.delta[self.classes + 1] != 0

    cdef tuple amounts(self):
        return tuple([self.delta[i] for i in range(self.classes)])

    cdef tuple content(self):
        return (
            self.owner, self.host, self.start, self.end, self.amounts(),
            self.whole(),
        )

    cdef Entry moved(self, host, int64_t start, int64_t end):
        """Return the same entry on another host or over another window."""
        cdef Entry other = Entry(self.classes)
        cdef int lane
        other.owner = self.owner
        other.host = host
        other.start = start
        other.end = end
        for lane in range(self.classes + 2):
            other.delta[lane] = self.delta[lane]
        return other

    cdef bytes worse(self, int sign):
        """Return for each lane whether the entry, or its end, raises it."""
        cdef bytes lanes = PyBytes_FromStringAndSize(NULL, self.classes + 2)
        cdef char *raised = PyBytes_AS_STRING(lanes)
        cdef int lane
        for lane in range(self.classes + 2):
            raised[lane] = sign * self.delta[lane] > 0
        return lanes


cdef int compare_borders(const void *a, const void *b) noexcept nogil:
    cdef int64_t x = (<const Border *> a).at
    cdef int64_t y = (<const Border *> b).at
    return (x > y) - (x < y)


@cython.final
cdef class Rows:
    """The hosts in row order, each with its steps and its capacity."""

    cdef tuple names        # of the lanes
    cdef int classes
    cdef int lanes
    cdef Py_ssize_t count
    cdef Py_ssize_t size
    cdef Row *row           # count
    cdef int64_t *capacity  # count x classes
    cdef list hosts
    cdef dict numbers

    def __cinit__(self, tuple resource_classes):
        self.names = (*resource_classes, 'shared', 'whole')
        self.classes = len(resource_classes)
        self.lanes = self.classes + 2
        self.hosts = []
        self.numbers = {}

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            row_free(&self.row[i])
        free(self.row)
        free(self.capacity)

    cdef Py_ssize_t number(self, host) except -1:
        """Return the row of a host that is there."""
        number = self.numbers.get(host) if isinstance(host, str) else None
        if number is None:
            raise errors.UnknownHost(host)
        return number

    cdef tuple capacities(self, Py_ssize_t number):
        cdef int64_t *own = self.capacity + number * self.classes
        return tuple([own[i] for i in range(self.classes)])

    cdef int resize(self, Py_ssize_t number, tuple capacity) except -1:
        cdef int i
        for i in range(self.classes):
            self.capacity[number * self.classes + i] = capacity[i]
        return 0

    cdef int insert(
        self, Py_ssize_t number, host, tuple capacity
    ) except -1:
        """Put a new host at a row; those behind it move by one."""
        cdef Row row
        self.reserve()
        row_init(&row, self.lanes)
        self.shift(number, number + 1)
        self.row[number] = row
        self.resize(number, capacity)
        self.hosts.insert(number, host)
        self.renumber(number)
        return 0

    cdef int delete(self, Py_ssize_t number) except -1:
        """Take a host away; those behind it move up by one."""
        del self.numbers[self.hosts[number]]
        del self.hosts[number]
        row_free(&self.row[number])
        self.shift(number + 1, number)
        self.renumber(number)
        return 0

    cdef int reserve(self) except -1:
        """Make room for one more host."""
        if self.count < self.size:
            return 0
        cdef Py_ssize_t size = 2 * self.size + 8
        cdef void *row = realloc(self.row, size * sizeof(Row))
        if row == NULL:
            raise MemoryError
        self.row = <Row *> row
        cdef void *capacity = realloc(
            self.capacity, size * self.classes * sizeof(int64_t)
        )
        if capacity == NULL:
            raise MemoryError
        self.capacity = <int64_t *> capacity
        self.size = size
        return 0

    cdef void shift(self, Py_ssize_t number, Py_ssize_t to) noexcept:
        """Move a row and all behind it to another position."""
        cdef Py_ssize_t behind = self.count - number
        memmove(self.row + to, self.row + number, behind * sizeof(Row))
        memmove(
            self.capacity + to * self.classes,
            self.capacity + number * self.classes,
            behind * self.classes * sizeof(int64_t),
        )
        self.count += to - number

    cdef int renumber(self, Py_ssize_t number) except -1:
        """Note the rows of the hosts from one on."""
        cdef Py_ssize_t i
        for i in range(number, self.count):
            self.numbers[self.hosts[i]] = i
        return 0

    cdef void take_from(self, Py_ssize_t number, int64_t *used) noexcept:
        """Turn what is used of a host into what its capacity leaves."""
        cdef int i
        for i in range(self.classes):
            used[i] = self.capacity[number * self.classes + i] - used[i]

    cdef int build(
        self, list entries, const int64_t[::1] numbers
    ) except -1:
        """Give new rows the steps of entries, each on its row."""
        cdef Entry entry
        cdef Py_ssize_t i, number, n = len(entries)
        # Where the borders of a row end; as they go in, where they begin.
        cdef Py_ssize_t *at = <Py_ssize_t *> calloc(
            self.count + 1, sizeof(Py_ssize_t)
        )
        cdef Border *borders = <Border *> malloc((2 * n + 1) * sizeof(Border))
        try:
            if at == NULL or borders == NULL:
                raise MemoryError
            for i in range(n):
                entry = entries[i]
                at[numbers[i]] += 1 if entry.end == FOREVER else 2
            for number in range(self.count):
                at[number + 1] += at[number]
            for i in range(n):
                entry = entries[i]
                number = numbers[i]
                at[number] -= 1
                borders[at[number]] = Border(entry.start, 1, entry.delta)
                if entry.end != FOREVER:
                    at[number] -= 1
                    borders[at[number]] = Border(entry.end, -1, entry.delta)
            for number in range(self.count):
                self.build_row(
                    number, borders + at[number], at[number + 1] - at[number]
                )
        finally:
            free(at)
            free(borders)
        return 0

    cdef int build_row(
        self, Py_ssize_t number, Border *borders, Py_ssize_t count
    ) except -1:
        cdef int64_t when = 0
        cdef int lane
        cdef Row *row = &self.row[number]
        cdef int64_t *sums = <int64_t *> malloc(self.lanes * sizeof(int64_t))
        if sums == NULL:
            raise MemoryError
        try:
            row_resize(row, self.lanes, count + 1)
            qsort(borders, count, sizeof(Border), compare_borders)
            lane = row_build(row, self.lanes, borders, count, sums, &when)
            row_resize(row, self.lanes, row.steps)
        finally:
            free(sums)
        if lane >= 0:
            raise errors.AmountOverflow(
                self.hosts[number], self.names[lane], when
            )
        return 0

    cdef int prepare(
        self, Row *row, Entry entry, int64_t start, int64_t end, int sign
    ) except -1:
        """See to it that row_raise can add an entry, or take it back."""
        cdef Py_ssize_t excess = row_excess(
            row, self.lanes, start, end, entry.delta, sign
        )
        if excess >= 0:
            raise errors.AmountOverflow(
                entry.host, self.names[excess % self.lanes],
                max(start, <int64_t> row.times[excess // self.lanes]),
            )
        row_reserve(row, self.lanes, 2)
        return 0

    cdef list steps(self, Py_ssize_t number):
        """Return the (times, sums) of a row as Python lists."""
        cdef Row *row = &self.row[number]
        cdef Py_ssize_t step
        cdef const int32_t *sums
        times = [row.times[step] for step in range(row.steps)]
        all_sums = []
        for step in range(row.steps):
            sums = row_sums(row, self.lanes, step)
            all_sums.append(tuple([sums[i] for i in range(self.lanes)]))
        return [times, all_sums]


@cython.final
cdef class Query:
    """A request and the rows that it is about, in C."""

    cdef Request request
    cdef int64_t *limits    # asked: see scan.pxd
    cdef Rows rows
    cdef Py_ssize_t count
    cdef bint everyone
    cdef bint has_room
    cdef const int[::1] asked
    cdef const int64_t[::1] room
    cdef Row *copies        # rows without the entries of the ignored owner
    cdef Py_ssize_t copied
    cdef int *copy_of       # rows.count: position in copies, or -1
    cdef list found         # for the hosts of the answer

    def __cinit__(self, int classes):
        self.found = []
        self.request.classes = classes
        self.request.lanes = classes + 2
        self.request.lane = <int *> malloc(classes * sizeof(int))
        self.request.amount = <int64_t *> malloc(classes * sizeof(int64_t))
        self.limits = <int64_t *> malloc(classes * sizeof(int64_t))
        if (
            self.request.lane == NULL or self.request.amount == NULL
            or self.limits == NULL
        ):
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.copied):
            row_free(&self.copies[i])
        free(self.copies)
        free(self.copy_of)
        free(self.request.lane)
        free(self.request.amount)
        free(self.limits)

    cdef int want(self, amounts, bint whole) except -1:
        """Take the request."""
        cdef int i
        cdef int64_t amount
        self.request.whole = whole
        if whole:
            return 0
        values = take_amounts(
            'amounts', amounts, self.request.classes, 0
        )
        for i in range(self.request.classes):
            amount = values[i]
            if amount > 0:
                self.request.lane[self.request.asked] = i
                self.request.amount[self.request.asked] = amount
                self.request.asked += 1
        return 0

    cdef int about(self, rows, headroom) except -1:
        """Take the rows that the query is about, and their headroom."""
        self.everyone = rows is None
        if not self.everyone:
            self.asked = rows
        self.has_room = headroom is not None
        if self.has_room:
            self.room = headroom
        return 0

    cdef int begin(self, Rows rows, dict ignored) except -1:
        """Look at the rows: until the query has its answer they must stay.

        :param ignored: the entries to look past, or None.
        """
        cdef Py_ssize_t i
        self.rows = rows
        self.count = rows.count if self.everyone else self.asked.shape[0]
        if not self.everyone:
            for i in range(self.count):
                if not 0 <= self.asked[i] < rows.count:
                    raise errors.UnknownHost(self.asked[i])
        if (
            self.has_room
            and self.room.shape[0] != self.count * rows.classes
        ):
            raise errors.InvalidAmount('headroom', self.room.base)
        if ignored is not None:
            self.look_past(ignored)
        return 0

    cdef int look_past(self, dict ignored) except -1:
        """Copy the rows that these entries are on, without them."""
        cdef Entry entry
        cdef Py_ssize_t number
        cdef Row *row
        self.copies = <Row *> malloc(len(ignored) * sizeof(Row))
        self.copy_of = <int *> malloc(self.rows.count * sizeof(int))
        if self.copies == NULL or self.copy_of == NULL:
            raise MemoryError
        memset(self.copy_of, -1, self.rows.count * sizeof(int))
        for entry in ignored.values():
            number = self.rows.number(entry.host)
            if self.copy_of[number] < 0:
                row_copy(
                    &self.copies[self.copied], &self.rows.row[number],
                    self.rows.lanes,
                )
                self.copy_of[number] = <int> self.copied
                self.copied += 1
            row = &self.copies[self.copy_of[number]]
            self.rows.prepare(row, entry, entry.start, entry.end, -1)
            row_raise(
                row, self.rows.lanes, entry.start, entry.end, entry.delta, -1
            )
        return 0

    cdef Py_ssize_t number(self, Py_ssize_t i) noexcept:
        return i if self.everyone else self.asked[i]

    cdef const Row *row(self, Py_ssize_t number) noexcept:
        if self.copied > 0 and self.copy_of[number] >= 0:
            return &self.copies[self.copy_of[number]]
        return &self.rows.row[number]

    cdef const Row *look(self, Py_ssize_t i) noexcept:
        """Return the i-th row that is asked about; set its limits."""
        cdef Py_ssize_t number = self.number(i)
        if self.has_room:
            self.limit(&self.room[i * self.rows.classes])
        else:
            self.limit(self.rows.capacity + number * self.rows.classes)
        return self.row(number)

    cdef void limit(self, const int64_t *room) noexcept:
        cdef int k
        for k in range(self.request.asked):
            self.limits[k] = (
                room[self.request.lane[k]] - self.request.amount[k]
            )

    cdef int64_t blocked_at(
        self, const Row *row, int64_t start, int64_t end
    ) noexcept:
        return first_blocked(&self.request, self.limits, row, start, end)

    cdef list fitting(self, int64_t start, int64_t end, Py_ssize_t most):
        """Return the first hosts that fit over a window."""
        cdef Py_ssize_t i
        for i in range(self.count):
            if len(self.found) >= most:
                break
            if self.blocked_at(self.look(i), start, end) == end:
                self.found.append(self.rows.hosts[self.number(i)])
        return self.found


cdef struct Start:
    int64_t at
    int64_t change          # of the number of hosts that fit from then on


cdef int compare_starts(const void *a, const void *b) noexcept nogil:
    cdef int64_t x = (<const Start *> a).at
    cdef int64_t y = (<const Start *> b).at
    return (x > y) - (x < y)


@cython.final
cdef class Sweep:
    """The search for the first start at which enough hosts fit at once."""

    cdef Query query
    cdef int64_t duration
    cdef Start *starts
    cdef Py_ssize_t count
    cdef Py_ssize_t size

    def __cinit__(self, Query query, int64_t duration):
        self.query = query
        self.duration = duration

    def __dealloc__(self):
        free(self.starts)

    cdef int64_t first(
        self, Py_ssize_t enough, int64_t after, int64_t last
    ) except -2:
        """Return the first start from ``after`` to ``last``, or -1.

        The stretch of starts looked at doubles each time, so that a near
        answer is cheap and a far one costs twice the walk to it.
        """
        cdef int64_t span = FIRST_SWEEP, low = after, high, at
        if self.duration != FOREVER:
            span = max(span, self.duration)
        if enough > self.query.count:
            return -1
        while low <= last:
            high = min(low + span, last + 1)
            at = self.first_between(enough, low, high)
            if at >= 0:
                return at
            low = high
            span *= 2
        return -1

    cdef int64_t first_between(
        self, Py_ssize_t enough, int64_t low, int64_t high
    ) except -2:
        cdef Py_ssize_t i
        cdef int64_t fitting = 0
        self.count = 0
        self.note(low, 0)
        for i in range(self.query.count):
            self.note_row(self.query.look(i), low, high)
        qsort(self.starts, self.count, sizeof(Start), compare_starts)
        for i in range(self.count):
            fitting += self.starts[i].change
            if (
                i + 1 < self.count
                and self.starts[i + 1].at == self.starts[i].at
            ):
                continue
            if fitting >= enough:
                return self.starts[i].at
        return -1

    cdef int note_row(
        self, const Row *row, int64_t low, int64_t high
    ) except -1:
        """Note from when to when the request can start on a row."""
        cdef int64_t begin = low, until
        cdef int64_t end = FOREVER
        cdef Query query = self.query
        if self.duration != FOREVER:
            end = high + self.duration
        while begin < high:
            until = query.blocked_at(row, begin, end)
            if self.duration == FOREVER:
                if until == FOREVER:
                    self.note(begin, 1)
            elif until - begin >= self.duration:
                self.note(begin, 1)
                self.note(until - self.duration + 1, -1)
            if until == end:
                break
            begin = first_free(
                &query.request, query.limits, row, until, FOREVER
            )
        return 0

    cdef int note(self, int64_t at, int64_t change) except -1:
        cdef void *starts
        if self.count == self.size:
            self.size = 2 * self.size + 64
            starts = realloc(self.starts, self.size * sizeof(Start))
            if starts == NULL:
                raise MemoryError
            self.starts = <Start *> starts
        self.starts[self.count] = Start(at, change)
        self.count += 1
        return 0


cdef struct Run:
    int64_t length          # negated where the longest comes first
    Py_ssize_t i


cdef int compare_runs(const void *a, const void *b) noexcept nogil:
    cdef const Run *x = <const Run *> a
    cdef const Run *y = <const Run *> b
    if x.length != y.length:
        return (x.length > y.length) - (x.length < y.length)
    return (x.i > y.i) - (x.i < y.i)


cdef list fitting_by_run(
    Query query, int64_t start, int64_t end, Py_ssize_t most, int sign
):
    """Return the hosts that fit, those with the least sign * run first."""
    cdef Py_ssize_t i, count = 0
    cdef const Row *row
    cdef int64_t since, until
    cdef Run *runs = <Run *> malloc((query.count + 1) * sizeof(Run))
    if runs == NULL:
        raise MemoryError
    try:
        for i in range(query.count):
            row = query.look(i)
            if query.blocked_at(row, start, end) == end:
                since = free_since(&query.request, query.limits, row, start)
                until = query.blocked_at(row, end, FOREVER)
                runs[count] = Run(sign * (until - since), i)
                count += 1
        qsort(runs, count, sizeof(Run), compare_runs)
        for i in range(min(count, most)):
            query.found.append(query.rows.hosts[query.number(runs[i].i)])
    finally:
        free(runs)
    return query.found


# What undoes a change; each is followed by its arguments.
cdef enum:
    RAISE           # entry, start, end, sign
    REPLACE         # id, entry
    RESIZE          # host, capacity
    INSERT          # row, host, capacity
    DELETE          # host


@cython.final
cdef class Batch:
    """What ``apply`` has to remember: how to undo, and what to judge."""

    cdef list undo
    cdef list worse         # (host, start, end, one byte per lane)

    def __cinit__(self):
        self.undo = []
        self.worse = []


cdef class TimelineIndex:
    """Hosts x resource classes x time, in exact integers and whole seconds.

    See blazar_sched.ext.timeline.TimelineIndex.
    """

    cdef readonly tuple resource_classes
    cdef readonly Py_ssize_t generation
    cdef Rows _rows
    cdef dict _entries      # id: Entry
    cdef dict _owned        # owner: {id: Entry}

    def __init__(self, resource_classes):
        """Make an empty index."""
        cdef tuple names = tuple(resource_classes)
        check_names('resource_classes', names)
        if not names:
            raise errors.InvalidName('resource_classes', names)
        self.resource_classes = names
        self._rows = Rows(names)
        self._entries = {}
        self._owned = {}

    def __len__(self):
        """Return the number of entries."""
        return len(self._entries)

    @property
    def hosts(self):
        """The hosts in row order."""
        return self._rows.hosts.copy()

    # Changes

    def apply(self, changes, force=False):
        """Apply a batch of changes in order, all of them or none.

        O(log steps + steps behind the first one touched) per change.
        """
        cdef Batch batch = Batch()
        cdef tuple taken = tuple(changes)
        # A collection could run someone's finalizer, and that let another
        # thread in, which would see half a batch.
        cdef bint collecting = PyGC_Disable()
        try:
            for change in taken:
                self._change(batch, change)
            if not force:
                self._judge(batch)
        except BaseException:
            self._roll_back(batch)
            raise
        finally:
            if collecting:
                PyGC_Enable()
        if batch.undo:
            self.generation += 1

    cdef int _change(self, Batch batch, change) except -1:
        if not isinstance(change, (tuple, list)) or not change:
            raise errors.InvalidChange(change)
        cdef tuple parts = tuple(change)
        cdef Py_ssize_t size = len(parts)
        kind = parts[0]
        if kind == 'add' and size == 8:
            self._add(batch, parts)
        elif kind == 'remove' and size == 2:
            self._remove(batch, parts[1])
        elif kind == 'move' and size == 5:
            self._move(batch, parts[1], parts[2], parts[3], parts[4])
        elif kind == 'capacity' and size == 3:
            self._set_capacity(batch, parts[1], parts[2])
        elif kind == 'drop' and size == 2:
            self._drop(batch, parts[1])
        else:
            raise errors.InvalidChange(change)
        return 0

    cdef int _add(self, Batch batch, tuple parts) except -1:
        _, entry_id, owner, host, start, end, amounts, whole = parts
        check_name('id', entry_id)
        check_name('owner', owner)
        self._rows.number(host)
        cdef Entry entry = make_entry(
            self._rows.classes, owner, host, start, end, amounts, whole
        )
        cdef Entry present = self._entries.get(entry_id)
        if present is None:
            self._raise(batch, entry, entry.start, entry.end, 1)
            self._register(batch, entry_id, entry)
        elif present.content() != entry.content():
            raise errors.EntryExists(entry_id)
        return 0

    cdef int _remove(self, Batch batch, entry_id) except -1:
        cdef Entry entry = self._entry(entry_id)
        self._raise(batch, entry, entry.start, entry.end, -1)
        self._register(batch, entry_id, None)
        return 0

    cdef int _move(
        self, Batch batch, entry_id, host, start, end
    ) except -1:
        cdef Entry old = self._entry(entry_id)
        self._rows.number(host)
        cdef int64_t begin = take_time('start', start)
        cdef Entry new = old.moved(host, begin, take_end('end', begin, end))
        if new.content() == old.content():
            return 0
        for start, end in outside(old, new):
            self._raise(batch, old, start, end, -1)
        for start, end in outside(new, old):
            self._raise(batch, new, start, end, 1)
        self._register(batch, entry_id, new)
        return 0

    cdef int _set_capacity(self, Batch batch, host, amounts) except -1:
        check_name('host', host)
        cdef tuple capacity = take_amounts(
            'capacity', amounts, self._rows.classes, 0
        )
        if host not in self._rows.numbers:
            self._rows.insert(self._rows.count, host, capacity)
            batch.undo.append((DELETE, host))
            return 0
        cdef Py_ssize_t number = self._rows.number(host)
        cdef tuple old = self._rows.capacities(number)
        if capacity == old:
            return 0
        lowered = [new < was for new, was in zip(capacity, old)]
        batch.worse.append((host, 0, FOREVER, bytes(lowered + [0, 0])))
        batch.undo.append((RESIZE, host, old))
        self._rows.resize(number, capacity)
        return 0

    cdef int _drop(self, Batch batch, host) except -1:
        cdef Py_ssize_t number = self._rows.number(host)
        if self._rows.row[number].entries > 0:
            raise errors.HostInUse(host)
        batch.undo.append(
            (INSERT, number, host, self._rows.capacities(number))
        )
        self._rows.delete(number)
        return 0

    cdef int _raise(
        self, Batch batch, Entry entry, int64_t start, int64_t end, int sign
    ) except -1:
        """Add an entry to the lanes of its host, or take it back."""
        cdef Row *row = &self._rows.row[self._rows.number(entry.host)]
        self._rows.prepare(row, entry, start, end, sign)
        batch.worse.append((entry.host, start, end, entry.worse(sign)))
        batch.undo.append((RAISE, entry, start, end, -sign))
        row_raise(row, self._rows.lanes, start, end, entry.delta, sign)
        return 0

    cdef int _register(self, Batch batch, entry_id, Entry entry) except -1:
        """Put an entry, or none, in the place of the one with this id."""
        batch.undo.append((REPLACE, entry_id, self._entries.get(entry_id)))
        self._replace(entry_id, entry)
        return 0

    cdef int _replace(self, entry_id, Entry entry) except -1:
        cdef Entry old = self._entries.pop(entry_id, None)
        cdef dict owned
        if old is not None:
            self._rows.row[self._rows.number(old.host)].entries -= 1
            owned = self._owned[old.owner]
            del owned[entry_id]
            if not owned:
                del self._owned[old.owner]
        if entry is not None:
            self._rows.row[self._rows.number(entry.host)].entries += 1
            self._entries[entry_id] = entry
            owned = self._owned.get(entry.owner)
            if owned is None:
                owned = self._owned[entry.owner] = {}
            owned[entry_id] = entry
        return 0

    cdef int _roll_back(self, Batch batch) except -1:
        """Undo every change, the last one first."""
        cdef Entry entry
        cdef Row *row
        cdef tuple record
        for record in reversed(batch.undo):
            kind = record[0]
            if kind == RAISE:
                entry = record[1]
                row = &self._rows.row[self._rows.number(entry.host)]
                row_reserve(row, self._rows.lanes, 2)
                row_raise(
                    row, self._rows.lanes, record[2], record[3],
                    entry.delta, record[4],
                )
            elif kind == REPLACE:
                self._replace(record[1], record[2])
            elif kind == RESIZE:
                self._rows.resize(self._rows.number(record[1]), record[2])
            elif kind == INSERT:
                self._rows.insert(record[1], record[2], record[3])
            else:
                self._rows.delete(self._rows.number(record[1]))
        return 0

    cdef int _judge(self, Batch batch) except -1:
        """Raise OverCapacity at the first excess that the batch made."""
        cdef Py_ssize_t step
        cdef int64_t start, end
        cdef const Row *row
        cdef bytes worse
        for host, start, end, worse in batch.worse:
            if host not in self._rows.numbers:
                continue
            row = &self._rows.row[self._rows.number(host)]
            step = row_find(row, start)
            while step < row.steps and row.times[step] < end:
                self._judge_step(
                    host, step, max(start, <int64_t> row.times[step]),
                    PyBytes_AS_STRING(worse),
                )
                step += 1
        return 0

    cdef int _judge_step(
        self, host, Py_ssize_t step, int64_t at, const char *worse
    ) except -1:
        cdef Rows rows = self._rows
        cdef Py_ssize_t number = rows.number(host)
        cdef int classes = rows.classes, lane
        cdef const int32_t *sums = row_sums(
            &rows.row[number], rows.lanes, step
        )
        cdef const int64_t *capacity = rows.capacity + number * classes
        for lane in range(classes):
            if worse[lane] and sums[lane] > capacity[lane]:
                raise errors.OverCapacity(
                    host, rows.names[lane], at, sums[lane] - capacity[lane]
                )
        # All who share the host count as one beside those who want it whole.
        cdef int64_t takers = sums[classes + 1] + min(sums[classes], 1)
        if (
            sums[classes + 1] > 0 and takers > 1
            and (worse[classes] or worse[classes + 1])
        ):
            raise errors.OverCapacity(host, 'whole', at, takers - 1)
        return 0

    def load(
        self, hosts, capacity, ids, owners, rows, starts, ends, amounts,
        whole,
    ):
        """Replace everything, from columns, in O(n log n)."""
        cdef TimelineIndex other = TimelineIndex(self.resource_classes)
        other._load_hosts(hosts, capacity)
        other._load_entries(ids, owners, rows, starts, ends, amounts, whole)
        self._rows = other._rows
        self._entries = other._entries
        self._owned = other._owned
        self.generation += 1

    cdef int _load_hosts(self, hosts, capacity) except -1:
        cdef int classes = self._rows.classes, lane
        cdef Py_ssize_t i
        cdef const int64_t[::1] flat = take_column(
            'capacity', capacity, len(hosts) * classes
        )
        check_names('hosts', hosts)
        for i, host in enumerate(hosts):
            own = [flat[i * classes + lane] for lane in range(classes)]
            self._rows.insert(
                i, host, take_amounts('capacity', own, classes, 0)
            )
        return 0

    cdef int _load_entries(
        self, ids, owners, rows, starts, ends, amounts, whole
    ) except -1:
        cdef Py_ssize_t i, count = len(ids)
        cdef int classes = self._rows.classes
        cdef const int64_t[::1] flat = take_column(
            'amounts', amounts, count * classes
        )
        cdef list owner = take_list('owners', owners, count)
        cdef const int64_t[::1] numbers = take_column('rows', rows, count)
        cdef const int64_t[::1] start = take_column('starts', starts, count)
        cdef const int64_t[::1] end = take_column('ends', ends, count)
        cdef list alone = take_list('whole', whole, count)
        cdef list entries = []
        cdef Entry entry
        for i, entry_id in enumerate(ids):
            check_name('id', entry_id)
            check_name('owner', owner[i])
            if not 0 <= numbers[i] < self._rows.count:
                raise errors.UnknownHost(numbers[i])
            entry = Entry(classes)
            entry.owner = owner[i]
            entry.host = self._rows.hosts[numbers[i]]
            entry.start = take_time('start', start[i])
            entry.end = take_end('end', entry.start, end[i])
            if entry_id in self._entries:
                raise errors.EntryExists(entry_id)
            take_delta(entry, flat, i * classes)
            entry.settle(alone[i])
            self._replace(entry_id, entry)
            entries.append(entry)
        self._rows.build(entries, numbers)
        return 0

    def forget(self, before):
        """Drop the entries that end by ``before``, in O(entries)."""
        cdef int64_t limit = take_time('before', before)
        cdef Entry entry
        over = []
        for entry_id, entry in self._entries.items():
            if entry.end <= limit:
                over.append(('remove', entry_id))
        self.apply(over, force=True)
        return len(over)

    # Queries

    def rows(self, hosts):
        """Return the row number of each host, -1 for an unknown one."""
        numbers = self._rows.numbers
        return array.array('i', [numbers.get(host, -1) for host in hosts])

    def row_keys(self, rows):
        """Return the host of each row number; the reverse of ``rows``."""
        cdef int64_t number = 0
        hosts = []
        for row in rows:
            if not integer(row, 0, self._rows.count - 1, &number):
                raise errors.UnknownHost(row)
            hosts.append(self._rows.hosts[number])
        return hosts

    def fits(
        self, rows, start, end, amounts, headroom=None, whole=False,
        ignore=None,
    ):
        """Return one byte per row: 1 if the request fits, in O(n (log + k)).
        """
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef Query query = self._query(rows, amounts, headroom, whole)
        cdef Py_ssize_t i
        query.begin(self._rows, self._ignored(ignore))
        cdef bytes answers = PyBytes_FromStringAndSize(NULL, query.count)
        cdef char *answer = PyBytes_AS_STRING(answers)
        for i in range(query.count):
            answer[i] = query.blocked_at(
                query.look(i), begin, until
            ) == until
        return answers

    def peak(self, rows, start, end, ignore=None):
        """Return R + 2 numbers per row, in O(n (log + k) R)."""
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef Query query = self._query(rows, None, None, True)
        cdef int lanes = self._rows.lanes
        cdef Py_ssize_t i
        query.begin(self._rows, self._ignored(ignore))
        cdef bytes answers = PyBytes_FromStringAndSize(
            NULL, query.count * lanes * sizeof(int64_t)
        )
        cdef int64_t *most = <int64_t *> PyBytes_AS_STRING(answers)
        for i in range(query.count):
            peak(query.look(i), lanes, begin, until, most + i * lanes)
        return array.array('q', answers)

    def horizon(
        self, rows, at, amounts, headroom=None, whole=False, ignore=None
    ):
        """Return the seconds that it keeps fitting, in O(n (log + k))."""
        cdef int64_t begin = take_time('at', at), until
        cdef Query query = self._query(rows, amounts, headroom, whole)
        cdef Py_ssize_t i
        query.begin(self._rows, self._ignored(ignore))
        cdef bytes answers = PyBytes_FromStringAndSize(
            NULL, query.count * sizeof(int64_t)
        )
        cdef int64_t *seconds = <int64_t *> PyBytes_AS_STRING(answers)
        for i in range(query.count):
            until = query.blocked_at(query.look(i), begin, FOREVER)
            seconds[i] = FOREVER if until == FOREVER else until - begin
        return array.array('q', answers)

    def earliest(
        self, count, duration, after, amounts, rows=None, not_after=None,
        whole=False, ignore=None,
    ):
        """Return the first start at which ``count`` hosts fit, and those.

        O(m log m) for m free runs up to twice as far as the answer.
        """
        cdef Py_ssize_t enough = take_count(count)
        cdef int64_t lasting = take_end('duration', 0, duration)
        cdef int64_t first = take_time('after', after)
        cdef int64_t last = TIME_LIMIT - 1, at
        if not_after is not None:
            last = take_time('not_after', not_after)
        cdef Query query = self._query(rows, amounts, None, whole)
        cdef Sweep sweep = Sweep(query, lasting)
        query.begin(self._rows, self._ignored(ignore))
        at = sweep.first(enough, first, last)
        if at < 0:
            return None
        end = FOREVER if lasting == FOREVER else at + lasting
        return at, query.fitting(at, end, enough)

    def pick(
        self, count, start, end, amounts, rows=None, order='tightest',
        whole=False, ignore=None,
    ):
        """Return up to ``count`` hosts that fit, in O(n (log n + k))."""
        cdef Py_ssize_t most = take_count(count)
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        if order not in ('first', 'tightest', 'freest'):
            raise errors.InvalidName('order', order)
        cdef Query query = self._query(rows, amounts, None, whole)
        query.begin(self._rows, self._ignored(ignore))
        if order == 'first':
            return query.fitting(begin, until, most)
        return fitting_by_run(
            query, begin, until, most, 1 if order == 'tightest' else -1
        )

    def levels(self, host, start, end, buckets):
        """Return each lane's peak in each part of a window.

        O(buckets log steps + k).
        """
        cdef Py_ssize_t number = self._rows.number(host)
        cdef int lanes = self._rows.lanes, lane
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef int64_t count = 0, i
        take_time('end', end)
        if not integer(buckets, 1, until - begin, &count):
            raise errors.InvalidWindow('buckets', buckets)
        cdef bytes answers = PyBytes_FromStringAndSize(
            NULL, count * lanes * sizeof(int64_t)
        )
        cdef int64_t *most = <int64_t *> PyBytes_AS_STRING(answers)
        for i in range(count):
            peak(
                &self._rows.row[number], lanes,
                begin + i * (until - begin) // count,
                begin + (i + 1) * (until - begin) // count,
                most + i * lanes,
            )
        return [
            tuple([most[i * lanes + lane] for lane in range(lanes)])
            for i in range(count)
        ]

    # Nova's HostStates

    def headroom(self, host_states):
        """Return the rows and the headroom of Nova's HostStates."""
        cdef list states = list(host_states)
        cdef int classes = self._rows.classes
        cdef Py_ssize_t i, count = len(states)
        cdef list uuids
        rows = array.array('i', bytes(count * sizeof(int)))
        room = array.array('q', bytes(count * classes * sizeof(int64_t)))
        cdef int[::1] number = rows
        cdef int64_t[::1] left = room
        uuids = self._used_now(states, left)
        for i in range(count):
            number[i] = self._rows.numbers.get(uuids[i], -1)
            if number[i] >= 0:
                self._rows.take_from(number[i], &left[i * classes])
        return rows, room

    def select(self, host_states, start, end, amounts, ignore=None):
        """Return those of Nova's HostStates that fit, the same objects.

        O(n (log + k)); reading the HostStates is the larger part of it.
        """
        cdef int64_t begin = take_time('start', start)
        cdef int64_t until = take_end('end', begin, end)
        cdef Query query = self._query(None, amounts, None, False)
        cdef list states = list(host_states)
        cdef int classes = self._rows.classes
        cdef Py_ssize_t i, number
        cdef list uuids, passing = []
        cdef int64_t[::1] left = array.array(
            'q', bytes(len(states) * classes * sizeof(int64_t))
        )
        uuids = self._used_now(states, left)
        query.begin(self._rows, self._ignored(ignore))
        for i in range(len(states)):
            number = self._rows.numbers.get(uuids[i], -1)
            if number >= 0:
                self._rows.take_from(number, &left[i * classes])
                query.limit(&left[i * classes])
                if query.blocked_at(
                    query.row(number), begin, until
                ) < until:
                    continue
            passing.append(states[i])
        return passing

    cdef list _used_now(self, list states, int64_t[::1] used):
        """Write what is used now of each class; return the uuids."""
        cdef Py_ssize_t i
        cdef int classes = self._rows.classes, lane
        cdef list uuids = []
        for i, state in enumerate(states):
            uuid = state.uuid
            uuids.append(uuid)
            if uuid in self._rows.numbers:
                for lane in range(classes):
                    used[i * classes + lane] = used_now(
                        self.resource_classes[lane], state
                    )
        return uuids

    # Looking inside

    def dump(self):
        """Return everything in the index, for tests and for looking at."""
        cdef Entry entry
        cdef Py_ssize_t number
        hosts = []
        for number, host in enumerate(self._rows.hosts):
            hosts.append((
                host, self._rows.capacities(number),
                *self._rows.steps(number),
            ))
        entries = {}
        for entry_id, entry in self._entries.items():
            entries[entry_id] = entry.content()
        return {
            'resource_classes': self.resource_classes,
            'generation': self.generation,
            'hosts': hosts,
            'entries': entries,
            'owned': {
                owner: set(owned) for owner, owned in self._owned.items()
            },
        }

    def check(self):
        """Assert every invariant of the index, in O(n log n)."""
        cdef Rows rows = self._rows
        cdef TimelineIndex other = TimelineIndex(self.resource_classes)
        cdef Py_ssize_t number
        # Rows are numbered by their position, each host once.
        assert rows.count == len(rows.hosts) == len(rows.numbers)
        assert rows.count <= rows.size
        for number, host in enumerate(rows.hosts):
            assert rows.numbers[host] == number
            self._check_row(number)
        # An owner is known as long as it has entries, and for those.
        owned = [
            (owner, i, entry)
            for owner, own in self._owned.items() for i, entry in own.items()
        ]
        assert all(self._owned.values())
        assert len(owned) == len(self._entries)
        for owner, entry_id, entry in owned:
            assert self._entries[entry_id] is entry
            assert (<Entry> entry).owner == owner
        # Every entry could be added now, to a host that exists, and the
        # steps are those of the entries.
        self._add_all_to(other)
        for number in range(rows.count):
            assert rows.steps(number) == other._rows.steps(number)
            assert (
                rows.row[number].entries == other._rows.row[number].entries
            )

    cdef int _check_row(self, Py_ssize_t number) except -1:
        cdef const Row *row = &self._rows.row[number]
        times, sums = self._rows.steps(number)
        # There is room for what there is.
        assert 1 <= row.steps <= row.size
        # Capacities are amounts, and none is negative.
        capacity = self._rows.capacities(number)
        assert all(0 <= amount <= AMOUNT_LIMIT for amount in capacity)
        # Steps begin at 0 and ascend, within the limit of time.
        assert times[0] == 0
        assert all(a < b for a, b in zip(times, times[1:]))
        assert times[len(times) - 1] < TIME_LIMIT
        # No step goes on as the one before it.
        assert all(a != b for a, b in zip(sums, sums[1:]))
        return 0

    cdef int _add_all_to(self, TimelineIndex other) except -1:
        """Load all that is here into another index."""
        cdef Rows rows = self._rows
        contents = self.dump()['entries']
        entries = list(contents.values())
        other.load(
            rows.hosts,
            [c for i in range(rows.count) for c in rows.capacities(i)],
            list(contents),
            [entry[0] for entry in entries],
            [rows.numbers[entry[1]] for entry in entries],
            [entry[2] for entry in entries],
            [entry[3] for entry in entries],
            [amount for entry in entries for amount in entry[4]],
            [entry[5] for entry in entries],
        )
        return 0

    # What queries and changes share

    cdef Query _query(self, rows, amounts, headroom, bint whole):
        cdef Query query = Query(self._rows.classes)
        query.want(amounts, whole)
        query.about(rows, headroom)
        return query

    cdef dict _ignored(self, owner):
        """Return the entries to look past, None if there are none."""
        return None if owner is None else self._owned.get(owner)

    cdef Entry _entry(self, entry_id):
        cdef Entry entry = None
        if isinstance(entry_id, str):
            entry = self._entries.get(entry_id)
        if entry is None:
            raise errors.UnknownEntry(entry_id)
        return entry


cdef Entry make_entry(
    int classes, owner, host, start, end, amounts, bint whole
):
    cdef Entry entry = Entry(classes)
    cdef int i
    entry.owner = owner
    entry.host = host
    entry.start = take_time('start', start)
    entry.end = take_end('end', entry.start, end)
    values = take_amounts('amounts', amounts, classes, -AMOUNT_LIMIT)
    for i in range(classes):
        entry.delta[i] = values[i]
    entry.settle(whole)
    return entry


cdef list outside(Entry entry, Entry other):
    """Return the parts of an entry's window that another does not cover."""
    if entry.host != other.host:
        return [(entry.start, entry.end)]
    cdef list parts = []
    cdef int64_t until = min(entry.end, other.start)
    cdef int64_t begin = max(entry.start, other.end)
    if entry.start < until:
        parts.append((entry.start, until))
    if begin < entry.end:
        parts.append((begin, entry.end))
    return parts


cdef int64_t used_now(str name, state) except? -1:
    """Return what a HostState says is used of a class; else 0."""
    if name == 'VCPU':
        return number_or_zero(state.vcpus_used)
    if name == 'MEMORY_MB':
        return (
            number_or_zero(state.total_usable_ram_mb)
            - number_or_zero(state.free_ram_mb)
        )
    if name == 'DISK_GB':
        return disk_gb_used(state)
    return 0


cdef int64_t disk_gb_used(state) except? -1:
    # Nova's consume_from_request lowers free_disk_mb and leaves disk_mb_used
    # as it is. A HostState lives for one request, so what its free disk has
    # lost since it was first seen here is what the request has consumed.
    cdef int64_t free_mb = number_or_zero(state.free_disk_mb)
    first = getattr(state, 'blazar_sched_free_disk_mb', None)
    if first is None:
        first = state.blazar_sched_free_disk_mb = free_mb
    cdef int64_t consumed = max(<int64_t> first - free_mb, 0)
    return -(-(number_or_zero(state.disk_mb_used) + consumed) // 1024)


cdef int64_t number_or_zero(value) except? -1:
    return value if value else 0


cdef bint integer(value, int64_t least, int64_t most, int64_t *into):
    """Take a Python integer, unless it is something else or out of range."""
    cdef int overflow = 0
    if not PyLong_CheckExact(value):
        return False
    into[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return not overflow and least <= into[0] <= most


cdef int64_t take_time(str field, value) except -1:
    cdef int64_t time = 0
    if not integer(value, 0, TIME_LIMIT - 1, &time):
        raise errors.InvalidWindow(field, value)
    return time


cdef int64_t take_end(str field, int64_t start, value) except -1:
    """Take the end of a window: after its start, and finite or FOREVER."""
    cdef int64_t end = 0
    if (
        not integer(value, start + 1, FOREVER, &end)
        or TIME_LIMIT <= end < FOREVER
    ):
        raise errors.InvalidWindow(field, value)
    return end


cdef Py_ssize_t take_count(value) except -1:
    cdef int64_t count = 0
    if not integer(value, 0, AMOUNT_LIMIT, &count):
        raise errors.InvalidAmount('count', value)
    return count


cdef tuple take_amounts(str field, values, int classes, int64_t least):
    """Take one integer per class, each from ``least`` to AMOUNT_LIMIT."""
    cdef int64_t amount
    cdef tuple amounts
    try:
        amounts = tuple(values)
    except TypeError:
        raise errors.InvalidAmount(field, values) from None
    if len(amounts) != classes:
        raise errors.InvalidAmount(field, values)
    for value in amounts:
        if not integer(value, least, AMOUNT_LIMIT, &amount):
            raise errors.InvalidAmount(field, value)
    return amounts


cdef int take_delta(
    Entry entry, const int64_t[::1] flat, Py_ssize_t first
) except -1:
    """Take the amounts of an entry from a column."""
    cdef int i
    for i in range(entry.classes):
        if not -AMOUNT_LIMIT <= flat[first + i] <= AMOUNT_LIMIT:
            raise errors.InvalidAmount('amounts', flat[first + i])
        entry.delta[i] = <int32_t> flat[first + i]
    return 0


cdef int check_name(str field, name) except -1:
    if not isinstance(name, str) or not name:
        raise errors.InvalidName(field, name)
    return 0


cdef int check_names(str field, names) except -1:
    """Refuse what is no string, or empty, or there twice."""
    cdef set seen = set()
    for name in names:
        check_name(field, name)
        if name in seen:
            raise errors.InvalidName(field, name)
        seen.add(name)
    return 0


cdef list take_list(str field, values, Py_ssize_t length):
    """Take a column as Python objects."""
    if not isinstance(values, (list, tuple)):
        values = memoryview(values).tolist()
    if len(values) != length:
        raise errors.InvalidColumn(field, len(values), length)
    return list(values)


cdef const int64_t[::1] take_column(str field, values, Py_ssize_t length):
    """Take a column of integers; without a copy if they are 64-bit."""
    cdef const int64_t[::1] column
    cdef int64_t number
    if isinstance(values, array.array) and values.typecode == 'q':
        if len(values) != length:
            raise errors.InvalidColumn(field, len(values), length)
        column = values
        return column
    values = take_list(field, values, length)
    for value in values:
        if not integer(value, -FOREVER, FOREVER, &number):
            raise refusal(field, value)
    column = array.array('q', values)
    return column


cdef refusal(str field, value):
    """Return the error for what is no integer in a column."""
    if field == 'rows':
        return errors.UnknownHost(value)
    if field in ('starts', 'ends'):
        return errors.InvalidWindow(field.removesuffix('s'), value)
    return errors.InvalidAmount(field, value)
