# SPDX-License-Identifier: Apache-2.0
"""The sweep: the first start at which enough rows fit at the same time.

A row fits from any start in its free runs that leaves the duration. Starts
are counted into slices of time, ahead of those of a stretch that doubles each
time, so that a near answer is cheap and a far one costs twice the walk to it.
How many rows fit somewhere in a slice is no less than how many fit at once:
only a slice with enough of them is swept again, second by second.
"""

from fit cimport ask_directories
from fit cimport find_places
from fit cimport number_of
from fit cimport Rows
from fit cimport Turn
from fit cimport turn_to
from libc.stdint cimport int32_t
from libc.stdint cimport int64_t
from libc.stdint cimport INT64_MAX as FOREVER
from libc.stdlib cimport calloc
from libc.stdlib cimport free
from row cimport LANES
from row cimport Row
from scan cimport limits
from scan cimport next_change
from scan cimport Place
from scan cimport Request

cdef enum:
    FIRST_STRETCH = 3 * 24 * 3600   # seconds
    SLICES = 1 << 16                # the most of a stretch

    NO_START = -1
    NO_MEMORY = -2


cdef struct Sweep:
    const Request *request
    const Rows *rows
    const int *numbers      # count; NULL for the first ones
    Py_ssize_t count
    Py_ssize_t enough
    int64_t duration


cdef struct Slices:
    int64_t low             # of the stretch, and its end
    int64_t high
    int shift               # a slice has 2 ** shift seconds
    int32_t *change         # of the number of rows from each slice on


cdef inline int64_t first_start(
    const Sweep *sweep, int64_t after, int64_t last
) noexcept nogil:
    """Return the first start from ``after`` to ``last``, or NO_START."""
    cdef int64_t low = after, span = FIRST_STRETCH, high, at
    if sweep.enough > sweep.count:
        return NO_START
    while low <= last:
        high = last + 1 if span > last - low else low + span
        at = first_between(sweep, low, high)
        if at != NO_START:
            return at
        low = high
        span *= 2
    return NO_START


cdef inline int64_t first_between(
    const Sweep *sweep, int64_t low, int64_t high
) noexcept nogil:
    cdef Slices slices
    cdef int64_t at = NO_START, slice, begin, fitting = 0
    slices.low, slices.high, slices.shift = low, high, 0
    while (high - low) >> slices.shift >= SLICES:
        slices.shift += 1
    slices.change = <int32_t *> calloc(
        ((high - low) >> slices.shift) + 2, sizeof(int32_t)
    )
    if slices.change == NULL:
        return NO_MEMORY
    count_starts(sweep, &slices)
    for slice in range(((high - 1 - low) >> slices.shift) + 1):
        fitting += slices.change[slice]
        if fitting < sweep.enough:
            continue
        at = begin = low + (slice << slices.shift)
        if slices.shift > 0:
            at = first_between(
                sweep, begin, min(high, begin + (1 << slices.shift))
            )
        if at != NO_START:
            break
    free(slices.change)
    return at


cdef inline void count_starts(
    const Sweep *sweep, Slices *slices
) noexcept nogil:
    cdef Turn turn
    cdef int32_t limit[LANES]
    cdef Py_ssize_t i = 0, j, number
    cdef int classes = sweep.request.classes
    while i < sweep.count:
        turn_to(
            &turn, sweep.rows, sweep.numbers, i, sweep.count, slices.low
        )
        ask_directories(&turn)
        find_places(&turn, sweep.request.lanes)
        for j in range(turn.count):
            number = number_of(sweep.numbers, i + j)
            limits(
                sweep.request, sweep.rows.capacity + number * classes, limit
            )
            count_row(sweep, slices, turn.row[j], limit, &turn.place[j])
        i += turn.count


cdef inline void count_row(
    const Sweep *sweep, Slices *slices, const Row *row, const int32_t *limit,
    Place *place,
) noexcept nogil:
    """Count the starts of one row, run by run."""
    cdef const Request *request = sweep.request
    cdef int64_t begin, until, end = FOREVER, last
    if sweep.duration < FOREVER - slices.high:
        end = slices.high + sweep.duration
    begin = next_change(
        request, limit, row, place, slices.low, slices.high, False
    )
    while begin < slices.high:
        until = next_change(request, limit, row, place, begin, end, True)
        # The last start of the run; one without end has no last one.
        last = slices.high
        if until != FOREVER:
            last = until - sweep.duration
        if last >= begin:
            slices.change[(begin - slices.low) >> slices.shift] += 1
            last = min(last, slices.high - 1)
            slices.change[((last - slices.low) >> slices.shift) + 1] -= 1
        if until >= slices.high:
            break
        begin = next_change(
            request, limit, row, place, until, slices.high, False
        )
