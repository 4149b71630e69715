# SPDX-License-Identifier: Apache-2.0
"""A batch of changes."""

cimport cython
from blazar_sched.ext._entries cimport Entry
from blazar_sched.ext._hosts cimport Hosts
from blazar_sched.ext._name cimport Name
from blazar_sched.ext._scan cimport Excess
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef enum:
    # The kinds of changes, and what applying a change did.
    NOTHING = 0
    ADD
    REMOVE
    MOVE
    CAPACITY
    DROP
    INSERT                  # a CAPACITY added a new host

    # The reasons of a failure.
    FINE = 0
    REFUSED
    UNKNOWN_HOST
    UNKNOWN_ENTRY
    ENTRY_EXISTS
    HOST_IN_USE
    OVERFLOW
    OVER_CAPACITY
    OUT_OF_MEMORY


cdef struct Change:
    int kind
    bint named              # the id is a str
    PyObject *parts         # the change, as a tuple
    PyObject *host          # an exact str, or an invalid value
    PyObject *refusal       # the error in the fields after the names
    Name id
    Name owner
    int64_t start
    int64_t end
    int32_t *delta          # by lane, of an entry; shares its memory with
    int64_t *capacity       # by class
    # For undoing an applied change. Delta, capacity and host then have their
    # values from before the change, too.
    int did
    Py_ssize_t row
    Entry entry             # before the change; the new one of an ADD


cdef struct Worse:
    PyObject *host
    int64_t start
    int64_t end
    uint32_t lanes          # that were increased: a bit for each


@cython.final
cdef class Batch:
    cdef int classes
    cdef Change *change
    cdef Py_ssize_t changes
    cdef object refusal     # the error in the change after the last one
    cdef bint judged        # whether capacity is checked
    cdef int64_t *amounts   # of the changes
    cdef tuple given        # owns the objects of the changes
    cdef list kept
    cdef Worse *worse
    cdef Py_ssize_t worses
    cdef Py_ssize_t worse_room
    # The failure: the reason, the change and the host.
    cdef int failure
    cdef Py_ssize_t failed
    cdef PyObject *where
    cdef Excess excess
    cdef int read(self, changes) except -1
    cdef int read_one(self, given, Change *change) except -1
    cdef int read_add(self, tuple parts, Change *change) except -1
    cdef int read_id(self, id, Change *change) except -1
    cdef int read_host(self, host, Change *change) except -1
    cdef int read_window(self, start, end, Change *change) except -1
    cdef PyObject *keep(self, taken, given) except NULL
    cdef bint fail(self, int failure) noexcept
    cdef bint note_worse(
        self, Hosts hosts, Py_ssize_t row, int64_t start, int64_t end,
        uint32_t lanes,
    ) noexcept
    cdef tell(self, tuple lanes)
