# SPDX-License-Identifier: Apache-2.0
"""A request and its rows, converted to C; the order of picked rows."""

cimport cython
from blazar_sched.ext._arguments cimport exact, take_amounts
from blazar_sched.ext._entries cimport (
    BY_OWNER,
    delta_of,
    Entries,
    entries_find,
    Entry,
    entry_end,
)
from blazar_sched.ext._host_state cimport HostStates
from blazar_sched.ext._hosts cimport Hosts
from blazar_sched.ext._name cimport Name, take_text
from blazar_sched.ext._row cimport LANES, Row, row_copy, row_free, row_raise
from blazar_sched.ext._scan cimport (
    ask,
    Excess,
    first_blocked,
    free_since,
    peak,
    Request,
    row_excess,
)
from libc.stdint cimport int32_t, INT64_MAX as FOREVER, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from blazar_sched.ext import errors


@cython.final
cdef class Query:
    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.copies):
            row_free(&self.view[self.past[i]])
        free(self.view)
        free(self.past)
        free(self.known)
        free(self.known_room)

    cdef int want(self, int classes, amounts, bint whole) except -1:
        """Convert the request."""
        cdef int64_t taken[LANES]
        if not whole:
            take_amounts('amounts', amounts, classes, 0, taken)
        ask(&self.request, classes, taken, whole)
        return 0

    cdef int about(self, rows, headroom) except -1:
        """Convert the rows of the query, and their headroom."""
        self.everyone = rows is None
        if not self.everyone:
            self.asked = rows
        self.has_room = headroom is not None
        if self.has_room:
            self.given = headroom
        return 0

    cdef int begin(
        self, Hosts hosts, const Entries *entries, ignore,
        bint any_host=False,
    ) except -1:
        """Refer to the rows, which must not change before the answer.

        :param ignore: an owner whose entries are ignored, a tuple of owners,
            or None.
        :param any_host: whether the hosts may be without a row; the caller
            calls `spread`.
        """
        cdef Py_ssize_t i, without = 0
        self.rows = hosts.rows()
        self.count = hosts.count
        if not self.everyone:
            self.count = self.asked.shape[0]
            self.numbers = &self.asked[0] if self.count else NULL
            for i in range(self.count):
                if any_host and self.numbers[i] == NO_ROW:
                    without += 1
                elif not 0 <= self.numbers[i] < hosts.count:
                    raise errors.UnknownHost(self.numbers[i])
        if self.has_room:
            if self.given.shape[0] != self.count * hosts.classes:
                raise errors.InvalidAmount('headroom', self.given.base)
            self.room = &self.given[0] if self.count else NULL
        self.answers = self.count
        if without:
            self.leave_out(hosts.classes)
        if isinstance(ignore, tuple):
            # Without duplicates, and without running code of subclasses.
            for owner in {exact(o) for o in ignore if isinstance(o, str)}:
                self.look_past(hosts, entries, owner)
        elif isinstance(ignore, str):
            self.look_past(hosts, entries, exact(ignore))
        return 0

    cdef int leave_out(self, int classes) except -1:
        """Leave the hosts without a row out of the query."""
        cdef Py_ssize_t i, k = 0
        cdef size_t size = classes * sizeof(int64_t)
        self.known = <int *> malloc(self.count * sizeof(int))
        self.known_room = <int64_t *> malloc(self.count * size)
        if self.known == NULL or self.known_room == NULL:
            raise MemoryError
        for i in range(self.count):
            if self.numbers[i] == NO_ROW:
                continue
            self.known[k] = self.numbers[i]
            if self.room != NULL:
                memcpy(
                    self.known_room + k * classes, self.room + i * classes,
                    size,
                )
            k += 1
        self.numbers = self.known
        if self.room != NULL:
            self.room = self.known_room
        self.count = k
        return 0

    cdef void spread(
        self, char *answer, size_t size, const void *unused
    ) noexcept:
        """Move the answers to their positions, between those left out.

        :param size: of one answer.
        :param unused: the answer for a host without a row.
        """
        cdef Py_ssize_t i, k = self.count
        if self.known == NULL:
            return
        for i in range(self.answers - 1, -1, -1):
            if self.asked[i] == NO_ROW:
                memcpy(answer + i * size, unused, size)
            else:
                k -= 1
                memmove(answer + i * size, answer + k * size, size)

    cdef int look_past(
        self, Hosts hosts, const Entries *entries, str ignore
    ) except -1:
        """Replace the rows of an owner by copies without its entries."""
        cdef Name owner
        cdef Py_ssize_t first, i
        take_text(ignore, &owner)
        first = i = entries_find(entries, BY_OWNER, &owner)
        if first < 0:
            return 0
        if self.view == NULL:
            self.open_view(hosts)
        while True:
            self.look_past_one(hosts, entries, i)
            i = entries.entry[i].next
            if i == first:
                break
        return 0

    cdef int open_view(self, Hosts hosts) except -1:
        """Copy the array of rows, so that copies can replace some of them."""
        self.past = <int *> malloc(hosts.count * sizeof(int))
        self.view = <Row *> malloc(hosts.count * sizeof(Row))
        if self.past == NULL or self.view == NULL:
            raise MemoryError
        memcpy(self.view, hosts.row, hosts.count * sizeof(Row))
        self.rows.row = self.view
        return 0

    cdef int look_past_one(
        self, Hosts hosts, const Entries *entries, Py_ssize_t i
    ) except -1:
        cdef const Entry *entry = &entries.entry[i]
        cdef Row *row = &self.view[entry.row]
        cdef int32_t delta[LANES]
        cdef Excess excess
        if row.chunk == hosts.row[entry.row].chunk:
            if not row_copy(row, &hosts.row[entry.row], hosts.lanes):
                raise MemoryError
            self.past[self.copies] = <int> entry.row
            self.copies += 1
        delta_of(entries, i, -1, delta)
        excess = row_excess(
            row, hosts.lanes, entry.start, entry_end(entry), delta
        )
        if excess.lane >= 0:
            raise errors.AmountOverflow(
                hosts.names[entry.row], hosts.lane_names[excess.lane],
                excess.at,
            )
        if not row_raise(
            row, hosts.lanes, entry.start, entry_end(entry), delta
        ):
            raise MemoryError
        return 0

    cdef void only(self, HostStates looked) noexcept:
        """Set the rows and their room to those of HostStates."""
        self.everyone = False
        self.numbers = looked.number
        self.room = looked.room
        self.count = looked.known

    cdef bint plain(self) noexcept:
        """Return whether the query is about all rows, and unchanged."""
        return self.everyone and self.room == NULL and self.view == NULL

cdef dict ORDERS = {
    'first': FIRST, 'tightest': TIGHTEST, 'freest': FREEST,
    'fullest': FULLEST,
}


cdef Order take_order(order) except? FULLEST:
    if not isinstance(order, str) or order not in ORDERS:
        raise errors.InvalidName('order', order)
    return ORDERS[order]


cdef int compare_runs(const void *a, const void *b) noexcept nogil:
    cdef const Run *x = <const Run *> a
    cdef const Run *y = <const Run *> b
    if x.copies != y.copies:
        return (x.copies > y.copies) - (x.copies < y.copies)
    if x.length != y.length:
        return (x.length > y.length) - (x.length < y.length)
    return (x.i > y.i) - (x.i < y.i)


cdef void keep(Least *least, Run run) noexcept:
    """Keep a run if it is among the `most` least, in O(log most)."""
    cdef Py_ssize_t i, child
    if least.count < least.most:
        i = least.count
        least.count += 1
        while i > 0 and compare_runs(&least.run[(i - 1) // 2], &run) < 0:
            least.run[i] = least.run[(i - 1) // 2]
            i = (i - 1) // 2
        least.run[i] = run
        return
    if least.most == 0 or compare_runs(&run, &least.run[0]) > 0:
        return
    i = 0
    while 2 * i + 1 < least.count:
        child = 2 * i + 1
        if (
            child + 1 < least.count
            and compare_runs(&least.run[child], &least.run[child + 1]) < 0
        ):
            child += 1
        if compare_runs(&least.run[child], &run) < 0:
            break
        least.run[i] = least.run[child]
        i = child
    least.run[i] = run


cdef void keep_runs(
    Query query, int64_t start, int64_t end, const char *fits,
    Py_ssize_t first, Py_ssize_t last, Order order, Least *least,
) noexcept:
    """Keep the runs of some of the requested rows, if they fit."""
    cdef Py_ssize_t i
    cdef int32_t limit[LANES]
    cdef const Row *row
    cdef Run run
    for i in range(first, last):
        if not fits[i]:
            continue
        run = Run(0, 0, i)
        if order != FIRST:
            row = query.look(i, limit)
            run.length = run_around(&query.request, limit, row, start, end)
        if order == FREEST:
            run.length = -run.length
        elif order == FULLEST:
            run.copies = copies(
                &query.request, query.room_of(i), row, start, end
            )
        keep(least, run)


cdef int64_t run_around(
    const Request *request, const int32_t *limit, const Row *row,
    int64_t start, int64_t end,
) noexcept:
    """Return the length of the free run that contains the window."""
    cdef int64_t until = FOREVER
    if end != FOREVER:
        until = first_blocked(request, limit, row, end, FOREVER)
    return until - free_since(request, limit, row, start)


cdef int64_t copies(
    const Request *request, const int64_t *room, const Row *row,
    int64_t start, int64_t end,
) noexcept:
    """Return how often a request that fits does; 1 for whole hosts."""
    cdef int64_t most[LANES]
    cdef int64_t least = FOREVER
    cdef int k, lane
    peak(row, request.lanes, start, end, most)
    for k in range(request.asked):
        lane = request.lane[k]
        if lane < request.classes:
            least = min(
                least, (room[lane] - most[lane]) // request.amount[lane]
            )
        elif lane == request.classes:
            least = 1
    return least
