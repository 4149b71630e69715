# SPDX-License-Identifier: Apache-2.0
"""Arguments of queries and changes, converted to C.

The functions with a body run once per step, row or entry:
`_timeline_index.pyx` says why they are inline.
"""

from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.stdint cimport int32_t, int64_t


cdef inline bint integer(value, int64_t least, int64_t most, int64_t *into):
    """Convert a Python integer; False if it is invalid or out of range."""
    cdef int overflow = 0
    if not PyLong_CheckExact(value):
        return False
    into[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return not overflow and least <= into[0] <= most


cdef int64_t take_time(str field, value) except -1


cdef int64_t take_end(str field, int64_t start, value) except -1


cdef Py_ssize_t take_count(str field, value) except -1


cdef int take_amounts(
    str field, values, int classes, int64_t least, int64_t *into
) except -1


cdef int take_delta(
    const int64_t *amounts, int classes, bint whole, int32_t *delta
) except -1


cdef str exact(text)


cdef str take_name(str field, name)


cdef list take_names(str field, names)
