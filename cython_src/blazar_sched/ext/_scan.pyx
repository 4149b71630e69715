# SPDX-License-Identifier: Apache-2.0
"""Walks over the steps of one row.

O(log steps + chunks + CHUNK) at most: a chunk that is completely inside the
window is skipped if its peak gives the answer.
"""

from blazar_sched.ext._row cimport (
    Chunk,
    chunk_step,
    chunk_until,
    LANES,
    Row,
    row_chunk,
    sums_of,
    times_of,
)
from libc.stdint cimport int32_t, INT64_MAX as FOREVER, int64_t, uint32_t


cdef void ask(
    Request *request, int classes, const int64_t *amounts, bint whole
) noexcept nogil:
    """Initialize a request for amounts, or for a whole host."""
    cdef int i
    request.classes = classes
    request.lanes = classes + 2
    request.asked = 0
    for i in range(classes):
        request.amount[i] = 0 if whole else amounts[i]
        if request.amount[i] > 0:
            request.lane[request.asked] = i
            request.asked += 1
    if whole:
        request.lane[request.asked] = classes
        request.asked += 1
    request.lane[request.asked] = classes + 1
    request.asked += 1


cdef int64_t next_change(
    const Request *request, const int32_t *limit, const Row *row,
    Place *place, int64_t start, int64_t end, bint to_blocked,
) noexcept nogil:
    """Return the first time in a window that is blocked, or that is free.

    If there is no such time, return the end of the window.

    :param place: the step at the start; set to the step at the returned time.
    """
    cdef int32_t within[LANES]
    cdef const int32_t *most = limit
    cdef const Chunk *chunk
    cdef const uint32_t *times
    cdef const int32_t *sums
    cdef Py_ssize_t c = place.chunk, step = place.step
    cdef int64_t at = start
    while True:
        if row.lifted:
            lower(request, limit, row, c, within)
            most = within
        if (
            to_blocked and step == 0 and chunk_until(row, c) <= end
            and not blocked(request, most, row.peak + c * request.lanes)
        ):
            c += 1
        else:
            chunk = row.chunk[c]
            times = times_of(chunk)
            sums = sums_of(chunk) + step * request.lanes
            while True:
                if blocked(request, most, sums) == to_blocked:
                    place.chunk, place.step = c, step
                    return at
                step += 1
                if step == chunk.steps:
                    break
                at = times[step]
                if at >= end:
                    return end
                sums += request.lanes
            c += 1
            step = 0
        if c == row.chunks or row.first[c] >= end:
            return end
        at = row.first[c]


cdef int64_t first_blocked(
    const Request *request, const int32_t *limit, const Row *row,
    int64_t start, int64_t end,
) noexcept nogil:
    cdef Place place = place_of(row, start)
    return next_change(request, limit, row, &place, start, end, True)


cdef int64_t free_since(
    const Request *request, const int32_t *limit, const Row *row, int64_t at
) noexcept nogil:
    """Return the begin of the free run that contains a time."""
    cdef int32_t within[LANES]
    cdef Py_ssize_t c = row_chunk(row, at)
    cdef Py_ssize_t step = chunk_step(row.chunk[c], at)
    cdef int64_t since = times_of(row.chunk[c])[step]
    while True:
        lower(request, limit, row, c, within)
        if blocked(request, within, row.peak + c * request.lanes):
            while step > 0:
                if blocked(
                    request, within,
                    sums_of(row.chunk[c]) + (step - 1) * request.lanes,
                ):
                    return since
                step -= 1
                since = times_of(row.chunk[c])[step]
        since = row.first[c]
        if c == 0:
            return since
        c -= 1
        step = row.chunk[c].steps


cdef void peak(
    const Row *row, int lanes, int64_t start, int64_t end, int64_t *most
) noexcept nogil:
    """Write the maximum of each lane within a window."""
    cdef Place place = place_of(row, start)
    cdef Py_ssize_t c = place.chunk, step = place.step
    cdef int64_t sums[LANES]
    cdef int lane
    for lane in range(lanes):
        most[lane] = -FOREVER
    while c < row.chunks and (step > 0 or row.first[c] < end):
        if step == 0 and chunk_until(row, c) <= end:
            lifted(row, lanes, c, row.peak + c * lanes, sums)
            for lane in range(lanes):
                most[lane] = max(most[lane], sums[lane])
            step = row.chunk[c].steps
        while (
            step < row.chunk[c].steps and times_of(row.chunk[c])[step] < end
        ):
            lifted(
                row, lanes, c, sums_of(row.chunk[c]) + step * lanes, sums
            )
            for lane in range(lanes):
                most[lane] = max(most[lane], sums[lane])
            step += 1
        c += 1
        step = 0


cdef Excess row_excess(
    const Row *row, int lanes, int64_t start, int64_t end,
    const int32_t *delta,
) noexcept nogil:
    """Return the first sum in a window that would exceed AMOUNT_LIMIT."""
    cdef Excess excess
    cdef Py_ssize_t c = row_chunk(row, start)
    cdef Py_ssize_t step = chunk_step(row.chunk[c], start)
    cdef const uint32_t *times
    cdef int64_t value
    cdef int lane
    excess.lane, excess.at, excess.short = -1, start, 0
    while c < row.chunks:
        times = times_of(row.chunk[c])
        while step < row.chunk[c].steps:
            if times[step] >= end:
                return excess
            for lane in range(lanes):
                value = row.lift[c * lanes + lane]
                value += sums_of(row.chunk[c])[step * lanes + lane]
                value += delta[lane]
                if not -AMOUNT_LIMIT <= value <= AMOUNT_LIMIT:
                    excess.lane = lane
                    excess.at = max(start, <int64_t> times[step])
                    return excess
            step += 1
        c += 1
        step = 0
    return excess


cdef Excess over_capacity(
    const Row *row, int lanes, int64_t start, int64_t end,
    const int64_t *capacity, uint32_t worse,
) noexcept nogil:
    """Return the first excess in a window, in an increased lane.

    :param worse: a bit for each increased lane.
    """
    cdef Excess excess
    cdef int64_t sums[LANES]
    cdef Py_ssize_t c = row_chunk(row, start)
    cdef Py_ssize_t step = chunk_step(row.chunk[c], start)
    cdef const uint32_t *times
    excess.lane, excess.at, excess.short = -1, start, 0
    while c < row.chunks:
        times = times_of(row.chunk[c])
        if times[step] >= end and step == 0:
            return excess
        lifted(row, lanes, c, row.peak + c * lanes, sums)
        judge(&excess, lanes, sums, capacity, worse)
        if excess.lane < 0:
            # Even the peaks of all lanes together are within the limits.
            step = row.chunk[c].steps
        while step < row.chunk[c].steps and times[step] < end:
            lifted(
                row, lanes, c, sums_of(row.chunk[c]) + step * lanes, sums
            )
            judge(&excess, lanes, sums, capacity, worse)
            if excess.lane >= 0:
                excess.at = max(start, <int64_t> times[step])
                return excess
            step += 1
        c += 1
        step = 0
        excess.lane = -1
    return excess


cdef void judge(
    Excess *excess, int lanes, const int64_t *sums, const int64_t *capacity,
    uint32_t worse,
) noexcept nogil:
    """Set the first lane with an excess, -1 if there is none."""
    cdef int classes = lanes - 2, lane
    cdef int64_t takers
    excess.lane = -1
    for lane in range(classes):
        if worse >> lane & 1 and sums[lane] > capacity[lane]:
            excess.lane = lane
            excess.short = sums[lane] - capacity[lane]
            return
    # All shared entries together count as one beside whole-host entries.
    takers = sums[classes + 1] + min(sums[classes], 1)
    if sums[classes + 1] > 0 and takers > 1 and worse >> classes & 3:
        excess.lane = classes + 1
        excess.short = takers - 1
