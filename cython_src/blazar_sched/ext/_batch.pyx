# SPDX-License-Identifier: Apache-2.0
"""A batch of changes: converted to C, applied, and undone if one fails.

All changes are converted first, because that may run Python code. Applying or
undoing the changes runs no Python code, so that no other thread sees a part of
the batch. The error is stored, and raised afterwards.
"""

cimport cython
from blazar_sched.ext._arguments cimport (
    exact,
    take_amounts,
    take_delta,
    take_end,
    take_name,
    take_time,
)
from blazar_sched.ext._hosts cimport Hosts
from blazar_sched.ext._name cimport take_text
from blazar_sched.ext._row cimport LANES
from blazar_sched.ext._scan cimport AMOUNT_LIMIT
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc

from blazar_sched.ext import errors


@cython.final
cdef class Batch:
    def __cinit__(self, int classes, bint judged):
        self.classes = classes
        self.judged = judged
        self.kept = []

    def __dealloc__(self):
        free(self.change)
        free(self.amounts)
        free(self.worse)

    # Conversion

    cdef int read(self, changes) except -1:
        """Convert the changes, up to the first invalid one."""
        cdef Py_ssize_t wide = self.classes + 2, count
        cdef Change *change
        self.given = tuple(changes)
        count = len(self.given)
        self.change = <Change *> calloc(count + 1, sizeof(Change))
        self.amounts = <int64_t *> malloc(
            (count + 1) * wide * sizeof(int64_t)
        )
        if self.change == NULL or self.amounts == NULL:
            raise MemoryError
        for each in self.given:
            change = &self.change[self.changes]
            change.capacity = self.amounts + self.changes * wide
            change.delta = <int32_t *> change.capacity
            try:
                self.read_one(each, change)
            except errors.TimelineError as error:
                self.refusal = error
                break
            self.changes += 1
        return 0

    cdef int read_one(self, given, Change *change) except -1:
        if not isinstance(given, (tuple, list)) or not given:
            raise errors.InvalidChange(given)
        cdef tuple parts = tuple(given)
        cdef Py_ssize_t size = len(parts)
        kind = parts[0]
        change.parts = self.keep(parts, given)
        if kind == 'add' and size == 8:
            self.read_add(parts, change)
        elif kind == 'remove' and size == 2:
            change.kind = REMOVE
            self.read_id(parts[1], change)
        elif kind == 'move' and size == 5:
            change.kind = MOVE
            self.read_id(parts[1], change)
            self.read_host(parts[2], change)
            self.read_window(parts[3], parts[4], change)
        elif kind == 'capacity' and size == 3:
            change.kind = CAPACITY
            take_name('host', parts[1])
            self.read_host(parts[1], change)
            take_amounts(
                'capacity', parts[2], self.classes, 0, change.capacity
            )
        elif kind == 'drop' and size == 2:
            change.kind = DROP
            self.read_host(parts[1], change)
        else:
            raise errors.InvalidChange(given)
        return 0

    cdef int read_add(self, tuple parts, Change *change) except -1:
        cdef int64_t amounts[LANES]
        change.kind = ADD
        take_name('id', parts[1])
        self.read_id(parts[1], change)
        take_text(
            <str> self.keep(take_name('owner', parts[2]), parts[2]),
            &change.owner,
        )
        self.read_host(parts[3], change)
        self.read_window(parts[4], parts[5], change)
        if change.refusal != NULL:
            return 0
        try:
            take_amounts(
                'amounts', parts[6], self.classes, -AMOUNT_LIMIT, amounts
            )
            take_delta(amounts, self.classes, bool(parts[7]), change.delta)
        except errors.TimelineError as error:
            change.refusal = self.keep(error, None)
        return 0

    cdef int read_id(self, id, Change *change) except -1:
        change.named = isinstance(id, str)
        if change.named:
            take_text(<str> self.keep(exact(id), id), &change.id)
        return 0

    cdef int read_host(self, host, Change *change) except -1:
        change.host = self.keep(
            exact(host) if isinstance(host, str) else host, host
        )
        return 0

    cdef int read_window(self, start, end, Change *change) except -1:
        # An unknown host or entry is reported before an invalid window.
        try:
            change.start = take_time('start', start)
            change.end = take_end('end', change.start, end)
        except errors.TimelineError as error:
            change.refusal = self.keep(error, None)
        return 0

    cdef PyObject *keep(self, taken, given) except NULL:
        """Keep a reference to a converted object, unless ``given`` has one."""
        if taken is not given:
            self.kept.append(taken)
        return <PyObject *> taken

    # Failures

    cdef bint fail(self, int failure) noexcept:
        self.failure = failure
        return False

    cdef bint note_worse(
        self, Hosts hosts, Py_ssize_t row, int64_t start, int64_t end,
        uint32_t lanes,
    ) noexcept:
        """Store increased lanes, to check them after the last change."""
        cdef void *moved
        if lanes == 0 or not self.judged:
            return True
        if self.worses == self.worse_room:
            self.worse_room = 2 * self.worse_room + 2
            moved = realloc(self.worse, self.worse_room * sizeof(Worse))
            if moved == NULL:
                self.worse_room = self.worses
                return self.fail(OUT_OF_MEMORY)
            self.worse = <Worse *> moved
        # The name of the host, because its row number may change.
        self.worse[self.worses] = Worse(
            <PyObject *> hosts.names[row], start, end, lanes
        )
        self.worses += 1
        return True

    # Errors

    cdef tell(self, tuple lanes):
        """Return the error for the failure, None without a failure."""
        cdef tuple parts
        if self.failure == FINE:
            return self.refusal
        if self.failure == OUT_OF_MEMORY:
            return MemoryError()
        where = <object> self.where if self.where != NULL else None
        if self.failure == OVERFLOW:
            return errors.AmountOverflow(
                where, lanes[self.excess.lane], self.excess.at
            )
        if self.failure == OVER_CAPACITY:
            return errors.OverCapacity(
                where, lanes[self.excess.lane], self.excess.at,
                self.excess.short,
            )
        if self.failure == REFUSED:
            return <object> self.change[self.failed].refusal
        parts = <tuple> self.change[self.failed].parts
        if self.failure == UNKNOWN_HOST:
            return errors.UnknownHost(parts[{ADD: 3, MOVE: 2, DROP: 1}[
                self.change[self.failed].kind
            ]])
        if self.failure == HOST_IN_USE:
            return errors.HostInUse(parts[1])
        if self.failure == ENTRY_EXISTS:
            return errors.EntryExists(parts[1])
        return errors.UnknownEntry(parts[1])
