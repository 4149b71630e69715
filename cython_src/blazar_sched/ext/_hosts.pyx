# SPDX-License-Identifier: Apache-2.0
"""The hosts in row order, with their steps and capacities."""

cimport cython
from blazar_sched.ext._fit cimport Rows
from blazar_sched.ext._row cimport (
    LANES,
    Row,
    row_bytes,
    row_free,
    row_init,
    sums_of,
    times_of,
)
from blazar_sched.ext._scan cimport AMOUNT_LIMIT, lifted, peak
from cpython.dict cimport PyDict_GetItem
from cpython.long cimport PyLong_AsSsize_t
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport (
    int32_t,
    INT64_MAX as FOREVER,
    int64_t,
    uint32_t,
    uint64_t,
)
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove, memset


@cython.final
cdef class Hosts:
    def __cinit__(self, tuple lane_names):
        self.lane_names = lane_names
        self.lanes = <int> len(lane_names)
        self.classes = self.lanes - 2
        self.names = []
        self.numbers = {}

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            row_free(&self.row[i])
        free(self.row)
        free(self.capacity)
        free(self.debt)
        free(self.ceiling)

    cdef Py_ssize_t number(self, host) noexcept:
        """Return the row number of a host, -1 for an unknown host.

        :param host: unknown unless an exact str.
        """
        cdef PyObject *number
        if not PyUnicode_CheckExact(host):
            return -1
        number = PyDict_GetItem(self.numbers, host)
        return -1 if number == NULL else PyLong_AsSsize_t(<object> number)

    cdef tuple capacities(self, Py_ssize_t number):
        cdef int64_t *own = self.capacity + number * self.classes
        return tuple([own[i] for i in range(self.classes)])

    cdef void resize(
        self, Py_ssize_t number, const int64_t *capacity
    ) noexcept:
        memcpy(
            self.capacity + number * self.classes, capacity,
            self.classes * sizeof(int64_t),
        )

    cdef int insert(
        self, Py_ssize_t number, str host, const int64_t *capacity
    ) except -1:
        """Insert a new host at a row; the row numbers after it increase."""
        cdef Row row
        self.reserve(self.count + 1)
        if not row_init(&row, self.lanes):
            raise MemoryError
        self.shift(number, number + 1)
        self.row[number] = row
        self.resize(number, capacity)
        memset(
            self.debt + number * self.classes, 0,
            self.classes * sizeof(int64_t),
        )
        memset(
            self.ceiling + number * self.classes, 0,
            self.classes * sizeof(int64_t),
        )
        self.names.insert(number, host)
        self.renumber(number)
        return 0

    cdef int delete(self, Py_ssize_t number) except -1:
        """Remove a host; the row numbers after it decrease."""
        del self.numbers[self.names[number]]
        del self.names[number]
        row_free(&self.row[number])
        self.shift(number + 1, number)
        self.renumber(number)
        return 0

    cdef int reserve(self, Py_ssize_t count) except -1:
        """Reserve room for a number of hosts."""
        cdef Py_ssize_t size = count
        cdef size_t wide = self.classes * sizeof(int64_t)
        cdef void *moved
        if count <= self.size:
            return 0
        if count == self.size + 1:
            # More hosts may be added one by one.
            size += count // 8 + 8
        moved = realloc(self.row, size * sizeof(Row))
        if moved == NULL:
            raise MemoryError
        self.row = <Row *> moved
        moved = realloc(self.capacity, size * wide)
        if moved == NULL:
            raise MemoryError
        self.capacity = <int64_t *> moved
        moved = realloc(self.debt, size * wide)
        if moved == NULL:
            raise MemoryError
        self.debt = <int64_t *> moved
        moved = realloc(self.ceiling, size * wide)
        if moved == NULL:
            raise MemoryError
        self.ceiling = <int64_t *> moved
        self.size = size
        return 0

    cdef void shift(self, Py_ssize_t number, Py_ssize_t to) noexcept:
        """Move a row and all rows after it to another position."""
        cdef Py_ssize_t behind = self.count - number
        cdef size_t wide = self.classes * sizeof(int64_t)
        memmove(self.row + to, self.row + number, behind * sizeof(Row))
        memmove(
            self.capacity + to * self.classes,
            self.capacity + number * self.classes, behind * wide,
        )
        memmove(
            self.debt + to * self.classes,
            self.debt + number * self.classes, behind * wide,
        )
        memmove(
            self.ceiling + to * self.classes,
            self.ceiling + number * self.classes, behind * wide,
        )
        self.count += to - number

    cdef int renumber(self, Py_ssize_t number) except -1:
        """Set the row numbers of the hosts from a row on."""
        cdef Py_ssize_t i
        for i in range(number, self.count):
            self.numbers[self.names[i]] = i
        self.numbering += 1
        return 0

    cdef Rows rows(self) noexcept:
        cdef Rows rows
        rows.row = self.row
        rows.capacity = self.capacity
        rows.count = self.count
        return rows

    cdef void count_entry(
        self, Py_ssize_t number, const int32_t *amounts, int sign
    ) noexcept:
        """Count an added entry of a host; with sign -1, a removed one."""
        cdef int i
        self.row[number].entries += sign
        for i in range(self.classes):
            if amounts[i] < 0:
                self.debt[number * self.classes + i] -= sign * amounts[i]

    cdef void raise_ceiling(
        self, Py_ssize_t number, const int32_t *delta
    ) noexcept:
        cdef int i
        for i in range(self.classes):
            self.ceiling[number * self.classes + i] += max(delta[i], 0)

    cdef bint may_exceed(
        self, Py_ssize_t number, const int32_t *delta
    ) noexcept:
        """Return whether row_raise might exceed AMOUNT_LIMIT; False is exact.

        Nearly always in O(R), by the bounds. The caller has raised the
        ceiling.
        """
        cdef int64_t *ceiling = self.ceiling + number * self.classes
        cdef const int64_t *debt = self.debt + number * self.classes
        cdef int i
        for i in range(self.classes):
            if delta[i] < 0 and debt[i] - delta[i] > AMOUNT_LIMIT:
                return True
            if delta[i] > 0 and ceiling[i] > AMOUNT_LIMIT:
                self.lower_ceiling(number)
                self.raise_ceiling(number, delta)
                if ceiling[i] > AMOUNT_LIMIT:
                    return True
        return False

    cdef void lower_ceiling(self, Py_ssize_t number) noexcept:
        """Set the ceiling to the exact maxima of the sums of a row."""
        cdef int64_t most[LANES]
        peak(&self.row[number], self.lanes, 0, FOREVER, most)
        memcpy(
            self.ceiling + number * self.classes, most,
            self.classes * sizeof(int64_t),
        )

    cdef list steps(self, Py_ssize_t number):
        """Return the [times, sums] of a row as Python lists."""
        cdef const Row *row = &self.row[number]
        cdef int64_t sums[LANES]
        cdef uint32_t c
        cdef Py_ssize_t step
        times, all_sums = [], []
        for c in range(row.chunks):
            for step in range(row.chunk[c].steps):
                lifted(
                    row, self.lanes, c,
                    sums_of(row.chunk[c]) + step * self.lanes, sums,
                )
                times.append(times_of(row.chunk[c])[step])
                all_sums.append(tuple([sums[i] for i in range(self.lanes)]))
        return [times, all_sums]

    cdef uint64_t bytes(self) noexcept:
        cdef Py_ssize_t i
        cdef uint64_t size = self.size * (
            sizeof(Row) + 3 * self.classes * sizeof(int64_t)
        )
        for i in range(self.count):
            # The array has the Row itself.
            size += row_bytes(&self.row[i], self.lanes) - sizeof(Row)
        return size
