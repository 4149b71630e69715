# SPDX-License-Identifier: Apache-2.0
"""The hosts in row order, with their steps and capacities."""

cimport cython
from blazar_sched.ext._fit cimport Rows
from blazar_sched.ext._row cimport Row
from libc.stdint cimport int32_t, int64_t, uint64_t


@cython.final
cdef class Hosts:
    cdef int classes
    cdef int lanes
    cdef tuple lane_names
    cdef Py_ssize_t count
    cdef Py_ssize_t size
    cdef Row *row           # count
    cdef int64_t *capacity  # count x classes
    # Bounds for the sums of a row, by class: how far its entries can decrease
    # a sum below 0, and an upper bound.
    cdef int64_t *debt      # count x classes
    cdef int64_t *ceiling   # count x classes
    cdef list names
    cdef dict numbers       # name: row
    cdef Py_ssize_t numbering   # increases when row numbers change
    cdef Py_ssize_t number(self, host) noexcept
    cdef tuple capacities(self, Py_ssize_t number)
    cdef void resize(
        self, Py_ssize_t number, const int64_t *capacity
    ) noexcept
    cdef int insert(
        self, Py_ssize_t number, str host, const int64_t *capacity
    ) except -1
    cdef int delete(self, Py_ssize_t number) except -1
    cdef int reserve(self, Py_ssize_t count) except -1
    cdef void shift(self, Py_ssize_t number, Py_ssize_t to) noexcept
    cdef int renumber(self, Py_ssize_t number) except -1
    cdef Rows rows(self) noexcept
    cdef void count_entry(
        self, Py_ssize_t number, const int32_t *amounts, int sign
    ) noexcept
    cdef void raise_ceiling(
        self, Py_ssize_t number, const int32_t *delta
    ) noexcept
    cdef bint may_exceed(
        self, Py_ssize_t number, const int32_t *delta
    ) noexcept
    cdef void lower_ceiling(self, Py_ssize_t number) noexcept
    cdef list steps(self, Py_ssize_t number)
    cdef uint64_t bytes(self) noexcept
