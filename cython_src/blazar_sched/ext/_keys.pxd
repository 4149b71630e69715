# SPDX-License-Identifier: Apache-2.0
"""A list of keys, which are sorted once all are there."""

from libc.stdint cimport uint64_t


cdef struct Keys:
    uint64_t *key           # count
    Py_ssize_t count
    Py_ssize_t room


cdef bint keys_add(Keys *keys, uint64_t key) noexcept nogil


cdef bint keys_sort(Keys *keys) noexcept nogil


cdef bint keys_sort_distinct(Keys *keys) noexcept nogil


cdef void keys_free(Keys *keys) noexcept nogil
