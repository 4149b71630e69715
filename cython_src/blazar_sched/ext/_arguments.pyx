# SPDX-License-Identifier: Apache-2.0
"""Arguments of queries and changes: converted to C, or refused."""

from blazar_sched.ext._scan cimport AMOUNT_LIMIT
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, INT64_MAX as FOREVER, int64_t

from blazar_sched.ext import errors

cdef extern from 'Python.h':
    object PyUnicode_FromObject(object text)

cdef int64_t TIME_LIMIT = errors.TIME_LIMIT


cdef int64_t take_time(str field, value) except -1:
    cdef int64_t time = 0
    if not integer(value, 0, TIME_LIMIT - 1, &time):
        raise errors.InvalidWindow(field, value)
    return time


cdef int64_t take_end(str field, int64_t start, value) except -1:
    """Convert the end of a window: after its start, finite or FOREVER."""
    cdef int64_t end = 0
    if (
        not integer(value, start + 1, FOREVER, &end)
        or TIME_LIMIT <= end < FOREVER
    ):
        raise errors.InvalidWindow(field, value)
    return end


cdef Py_ssize_t take_count(str field, value) except -1:
    cdef int64_t count = 0
    if not integer(value, 0, AMOUNT_LIMIT, &count):
        raise errors.InvalidAmount(field, value)
    return count


cdef int take_amounts(
    str field, values, int classes, int64_t least, int64_t *into
) except -1:
    """Convert one integer per class, from ``least`` to AMOUNT_LIMIT."""
    cdef tuple amounts
    cdef int i
    try:
        amounts = tuple(values)
    except TypeError:
        raise errors.InvalidAmount(field, values) from None
    if len(amounts) != classes:
        raise errors.InvalidAmount(field, values)
    for i in range(classes):
        if not integer(amounts[i], least, AMOUNT_LIMIT, &into[i]):
            raise errors.InvalidAmount(field, amounts[i])
    return 0


cdef int take_delta(
    const int64_t *amounts, int classes, bint whole, int32_t *delta
) except -1:
    """Write what an entry adds to each lane."""
    cdef int i
    cdef bint given = False, shared = False
    for i in range(classes):
        if not -AMOUNT_LIMIT <= amounts[i] <= AMOUNT_LIMIT:
            raise errors.InvalidAmount('amounts', amounts[i])
        delta[i] = <int32_t> amounts[i]
        given = given or delta[i] != 0
        shared = shared or delta[i] > 0
    if given == whole:
        raise errors.InvalidAmount(
            'amounts', tuple([delta[i] for i in range(classes)])
        )
    delta[classes] = shared
    delta[classes + 1] = whole
    return 0


cdef str exact(text):
    """Return an exact str: comparing it runs no Python code."""
    return text if PyUnicode_CheckExact(text) else PyUnicode_FromObject(text)


cdef str take_name(str field, name):
    if not isinstance(name, str) or not name:
        raise errors.InvalidName(field, name)
    return exact(name)


cdef list take_names(str field, names):
    """Raise InvalidName for a name that is no string, empty or a duplicate."""
    cdef set seen = set()
    cdef list taken = []
    for name in names:
        name = take_name(field, name)
        if name in seen:
            raise errors.InvalidName(field, name)
        seen.add(name)
        taken.append(name)
    return taken
