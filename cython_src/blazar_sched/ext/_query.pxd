# SPDX-License-Identifier: Apache-2.0
"""A request and its rows, and the order of picked rows.

The functions with a body run once per step, row or entry:
`_timeline_index.pyx` says why they are inline.
"""

cimport cython
from blazar_sched.ext._entries cimport Entries
from blazar_sched.ext._fit cimport number_of, Rows
from blazar_sched.ext._host_state cimport HostStates
from blazar_sched.ext._hosts cimport Hosts
from blazar_sched.ext._row cimport Row
from blazar_sched.ext._scan cimport limits, Request
from libc.stdint cimport int32_t, int64_t


@cython.final
cdef class Query:
    cdef Request request
    cdef Rows rows
    cdef const int *numbers         # of the requested rows; NULL for all
    cdef const int64_t *room        # by requested row; NULL for capacities
    cdef Py_ssize_t count           # of requested rows
    cdef Py_ssize_t answers         # with those for hosts without a row
    cdef int *known                 # the rows and their room, if there are
    cdef int64_t *known_room        # hosts without a row
    cdef const int[::1] asked
    cdef const int64_t[::1] given
    cdef bint everyone
    cdef bint has_room
    cdef Row *view                  # the rows without the ignored entries
    cdef int *past                  # the rows of the view that are copies
    cdef Py_ssize_t copies
    cdef int want(self, int classes, amounts, bint whole) except -1
    cdef int about(self, rows, headroom) except -1
    cdef int begin(
        self, Hosts hosts, const Entries *entries, ignore, bint any_host=*
    ) except -1
    cdef int leave_out(self, int classes) except -1
    cdef void spread(
        self, char *answer, size_t size, const void *free
    ) noexcept
    cdef int look_past(
        self, Hosts hosts, const Entries *entries, str ignore
    ) except -1
    cdef int open_view(self, Hosts hosts) except -1
    cdef int look_past_one(
        self, Hosts hosts, const Entries *entries, Py_ssize_t i
    ) except -1
    cdef void only(self, HostStates looked) noexcept
    cdef bint plain(self) noexcept

    cdef inline const int64_t *room_of(self, Py_ssize_t i) noexcept:
        if self.room != NULL:
            return self.room + i * self.request.classes
        return (
            self.rows.capacity
            + number_of(self.numbers, i) * self.request.classes
        )

    cdef inline const Row *look(self, Py_ssize_t i, int32_t *limit) noexcept:
        """Return the i-th requested row, and write its limits."""
        limits(&self.request, self.room_of(i), limit)
        return &self.rows.row[number_of(self.numbers, i)]


cdef enum:
    NO_ROW = -1             # what `rows` returns for an unknown host
    TOGETHER = 128          # rows that fit into the nearest cache


cdef enum Order:
    FIRST, TIGHTEST, FREEST, FULLEST


cdef Order take_order(order) except? FULLEST


cdef struct Run:
    int64_t copies          # how many fit; 0 unless the order needs it
    int64_t length          # negated if the longest is first
    Py_ssize_t i


cdef int compare_runs(const void *a, const void *b) noexcept nogil


cdef struct Least:
    Run *run                # a heap: the first is the greatest
    Py_ssize_t count
    Py_ssize_t most         # the limit


cdef void keep_runs(
    Query query, int64_t start, int64_t end, const char *fits,
    Py_ssize_t first, Py_ssize_t last, Order order, Least *least,
) noexcept
