# SPDX-License-Identifier: Apache-2.0
"""What queries ask of one row: walks over its steps, O(log steps + walked).

A request holds only the classes that it asks for. ``limits`` has, for each of
these, the most that the lane may hold already.
"""

from libc.stdint cimport int32_t
from libc.stdint cimport int64_t
from libc.stdint cimport INT64_MAX as FOREVER
from rows cimport Row
from rows cimport row_find
from rows cimport row_sums


cdef struct Request:
    int classes             # of the index
    int lanes
    bint whole              # the whole host is asked for
    int asked               # how many classes are
    int *lane               # which
    int64_t *amount         # and how much of each


cdef inline bint blocked(
    const Request *request, const int64_t *limits, const Row *row,
    Py_ssize_t step,
) noexcept nogil:
    """Say whether the request does not fit on top of a step."""
    cdef const int32_t *sums = row_sums(row, request.lanes, step)
    cdef int k
    if sums[request.classes + 1] > 0:
        return True
    if request.whole:
        return sums[request.classes] > 0
    for k in range(request.asked):
        if sums[request.lane[k]] > limits[k]:
            return True
    return False


cdef inline int64_t first_change(
    const Request *request, const int64_t *limits, const Row *row,
    int64_t start, int64_t end, bint to_blocked,
) noexcept nogil:
    """Return the first instant in a window that is blocked, or is free.

    If there is none, return the end of the window.
    """
    cdef Py_ssize_t step = row_find(row, start)
    cdef int64_t at = start
    while at < end:
        if blocked(request, limits, row, step) == to_blocked:
            return at
        step += 1
        if step == row.steps:
            return end
        at = row.times[step]
    return end


cdef inline int64_t first_blocked(
    const Request *request, const int64_t *limits, const Row *row,
    int64_t start, int64_t end,
) noexcept nogil:
    return first_change(request, limits, row, start, end, True)


cdef inline int64_t first_free(
    const Request *request, const int64_t *limits, const Row *row,
    int64_t start, int64_t end,
) noexcept nogil:
    return first_change(request, limits, row, start, end, False)


cdef inline int64_t free_since(
    const Request *request, const int64_t *limits, const Row *row, int64_t at
) noexcept nogil:
    """Return where the free run begins that an instant lies in."""
    cdef Py_ssize_t step = row_find(row, at)
    while step > 0 and not blocked(request, limits, row, step - 1):
        step -= 1
    return row.times[step]


cdef inline void peak(
    const Row *row, int lanes, int64_t start, int64_t end, int64_t *most
) noexcept nogil:
    """Write the most that each lane reaches within a window."""
    cdef Py_ssize_t step = row_find(row, start)
    cdef const int32_t *sums = row_sums(row, lanes, step)
    cdef int lane
    for lane in range(lanes):
        most[lane] = sums[lane]
    step += 1
    while step < row.steps and row.times[step] < end:
        sums = row_sums(row, lanes, step)
        for lane in range(lanes):
            most[lane] = max(most[lane], sums[lane])
        step += 1
