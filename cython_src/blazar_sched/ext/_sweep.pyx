# SPDX-License-Identifier: Apache-2.0
"""The sweep: the first start at which enough rows fit at the same time.

A request can start on a row at each time at which a free run of the row
continues for the duration. One walk over the rows collects the starts of all
runs in a stretch of time. The starts are counted into slices of time: the
number of rows that fit at any time in a slice is an upper bound for the number
that fit at once, so only a slice with enough rows is counted again, second by
second. The stretches double in length while they have few runs. So a near
answer is cheap, a far one costs at most twice the walk to it, and the memory
stays small.
"""

from blazar_sched.ext._fit cimport (
    ask_directories,
    find_places,
    look_on,
    number_of,
    Turn,
    turn_to,
)
from blazar_sched.ext._row cimport (
    CHUNK,
    chunk_until,
    LANES,
    Row,
    sums_of,
    times_of,
)
from blazar_sched.ext._scan cimport blocked, limits, lower, Place, Request
from libc.stdint cimport int32_t, INT64_MAX as FOREVER, int64_t, uint32_t
from libc.stdlib cimport calloc, free, realloc


cdef int64_t first_start(
    const Sweep *sweep, int64_t after, int64_t last, Stretch *stretch
) noexcept nogil:
    """Return the first start from ``after`` to ``last``, or NO_START.

    :param stretch: set to the stretch with the start; the caller frees its
        starts.
    """
    cdef int64_t at = NO_START, span = FIRST_STRETCH
    stretch.starts, stretch.room = NULL, 0
    if sweep.enough > sweep.count:
        return NO_START
    stretch.high = after
    while at == NO_START and stretch.high <= last:
        stretch.low = stretch.high
        stretch.high = min(last + 1, stretch.low + span)
        at = NO_MEMORY
        if walk(sweep, stretch):
            at = first_between(
                sweep, stretch, stretch.low, stretch.high
            )
        if stretch.runs <= POOR * sweep.count:
            span *= 2
    return at


cdef inline bint walk(const Sweep *sweep, Stretch *stretch) noexcept nogil:
    """Collect the starts of all rows; False without memory."""
    cdef Turn turns[2]
    cdef Turn *turn = &turns[0]
    cdef Turn *following = &turns[1]
    cdef int32_t limit[LANES]
    cdef Py_ssize_t i = 0, j, number
    cdef int classes = sweep.request.classes
    stretch.runs = 0
    stretch.end = FOREVER
    if sweep.duration < FOREVER - stretch.high:
        stretch.end = stretch.high + sweep.duration
    turn_to(turn, sweep.rows, sweep.numbers, 0, sweep.count, stretch.low)
    ask_directories(turn)
    while i < sweep.count:
        turn_to(
            following, sweep.rows, sweep.numbers, i + turn.count,
            sweep.count, stretch.low,
        )
        find_places(turn, sweep.request.lanes)
        ask_directories(following)
        look_on(turn, sweep.request.lanes, stretch.high)
        for j in range(turn.count):
            number = number_of(sweep.numbers, i + j)
            limits(
                sweep.request, sweep.rows.capacity + number * classes, limit
            )
            if not walk_row(
                sweep, stretch, i + j, turn.row[j], limit, &turn.place[j]
            ):
                return False
        i += turn.count
        turn, following = following, turn
    return True


cdef inline bint walk_row(
    const Sweep *sweep, Stretch *stretch, Py_ssize_t i, const Row *row,
    const int32_t *limit, const Place *place,
) noexcept nogil:
    """Collect the starts of one row, run by run; False without memory.

    A processor cannot predict where runs begin and end, and a misprediction
    costs more than writing. So starts are written at every step, and kept if
    a run that is long enough ends there.
    """
    cdef const Request *request = sweep.request
    cdef int32_t within[LANES]
    cdef const int32_t *most = limit
    cdef const int32_t *sums
    cdef const uint32_t *times
    cdef Py_ssize_t c, step = place.step, runs
    cdef int64_t since = 0, at
    cdef bint was = False, fits
    for c in range(place.chunk, row.chunks):
        if row.first[c] >= (stretch.end if was else stretch.high):
            break
        if row.lifted:
            lower(request, limit, row, c, within)
            most = within
        if (
            was and chunk_until(row, c) <= stretch.end
            and not blocked(request, most, row.peak + c * request.lanes)
        ):
            continue
        if not make_room(stretch):
            return False
        runs = stretch.runs
        times = times_of(row.chunk[c])
        sums = sums_of(row.chunk[c]) + step * request.lanes
        while step < row.chunk[c].steps and times[step] < stretch.end:
            at = times[step]
            fits = not blocked(request, most, sums)
            runs += note(
                stretch, runs, i, since, at - sweep.duration
            ) & was & (not fits)
            since = since if was else max(at, stretch.low)
            was = fits
            sums += request.lanes
            step += 1
        stretch.runs = runs
        step = 0
    if not make_room(stretch):
        return False
    # The last start of a run that continues is after this stretch.
    stretch.runs += was & note(
        stretch, stretch.runs, i, since, stretch.high
    )
    return True


cdef inline bint note(
    const Stretch *stretch, Py_ssize_t run, Py_ssize_t i, int64_t first,
    int64_t last,
) noexcept nogil:
    """Write the starts of a run; return whether it has any."""
    stretch.starts[run].i = <int> i
    stretch.starts[run].first = <uint32_t> first
    stretch.starts[run].last = <uint32_t> min(last, stretch.high - 1)
    return (first <= last) & (first < stretch.high)


cdef inline bint make_room(Stretch *stretch) noexcept nogil:
    """Reserve room for the runs of one more chunk."""
    cdef Py_ssize_t room = 2 * stretch.room + 2 * CHUNK
    cdef Starts *starts
    if stretch.runs + CHUNK <= stretch.room:
        return True
    starts = <Starts *> realloc(stretch.starts, room * sizeof(Starts))
    if starts == NULL:
        return False
    stretch.starts, stretch.room = starts, room
    return True


cdef inline int64_t first_between(
    const Sweep *sweep, const Stretch *stretch, int64_t low, int64_t high
) noexcept nogil:
    """Return the first start of a part of the stretch, or NO_START."""
    cdef int64_t at = NO_START, slice, begin, fitting = 0
    cdef int shift = 0
    cdef int32_t *change
    while (high - low) >> shift >= SLICES:
        shift += 1
    change = <int32_t *> calloc(((high - low) >> shift) + 2, sizeof(int32_t))
    if change == NULL:
        return NO_MEMORY
    count_starts(stretch, low, high, shift, change)
    for slice in range(((high - 1 - low) >> shift) + 1):
        fitting += change[slice]
        if fitting < sweep.enough:
            continue
        at = begin = low + (slice << shift)
        if shift > 0:
            at = first_between(
                sweep, stretch, begin, min(high, begin + (1 << shift))
            )
        if at != NO_START:
            break
    free(change)
    return at


cdef inline void count_starts(
    const Stretch *stretch, int64_t low, int64_t high, int shift,
    int32_t *change,
) noexcept nogil:
    """Add the changes of the number of rows to start on, by slice.

    :param shift: a slice has 2 ** shift seconds.
    """
    cdef Py_ssize_t i
    cdef int64_t first, last
    for i in range(stretch.runs):
        first = max(<int64_t> stretch.starts[i].first, low)
        last = min(<int64_t> stretch.starts[i].last, high - 1)
        if first <= last:
            change[(first - low) >> shift] += 1
            change[((last - low) >> shift) + 1] -= 1
