# SPDX-License-Identifier: Apache-2.0
"""Walks over the steps of one row.

The functions with a body run once per step, row or entry:
`_timeline_index.pyx` says why they are inline.
"""

from blazar_sched.ext._row cimport (
    Chunk,
    chunk_step,
    chunk_until,
    LANES,
    Row,
    row_chunk,
    times_of,
)
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint32_t


cdef enum:
    AMOUNT_LIMIT = 2147483647


cdef struct Request:
    int classes             # of the index; there are two more lanes
    int lanes
    int asked               # number of lanes that can block it
    int lane[LANES]         # these lanes, the classes first
    int64_t amount[LANES]   # by class


cdef void ask(
    Request *request, int classes, const int64_t *amounts, bint whole
) noexcept nogil


cdef inline int32_t clamped(int64_t value) noexcept nogil:
    # All sums are between the bounds, so clamping changes no answer.
    return <int32_t> max(<int64_t> INT32_MIN, min(value, <int64_t> INT32_MAX))


cdef inline void limits(
    const Request *request, const int64_t *room, int32_t *limit
) noexcept nogil:
    """Write, by requested lane, the largest sum on which the request fits."""
    cdef int k, lane
    cdef int64_t far = <int64_t> 1 << 40
    for k in range(request.asked):
        lane = request.lane[k]
        limit[k] = 0
        if lane < request.classes:
            limit[k] = clamped(
                max(-far, min(room[lane], far)) - request.amount[lane]
            )


cdef inline void lower(
    const Request *request, const int32_t *limit, const Row *row,
    Py_ssize_t c, int32_t *within,
) noexcept nogil:
    """Write the limits for the stored sums of a chunk, without its lift."""
    cdef const int32_t *lift = row.lift + c * request.lanes
    cdef int k
    for k in range(request.asked):
        within[k] = clamped(<int64_t> limit[k] - lift[request.lane[k]])


cdef inline bint blocked(
    const Request *request, const int32_t *limit, const int32_t *sums
) noexcept nogil:
    """Return whether the request does not fit in addition to the sums."""
    cdef int k
    cdef bint over = False
    # Without branches, which would be mispredicted.
    for k in range(request.asked):
        over |= sums[request.lane[k]] > limit[k]
    return over


cdef struct Place:
    Py_ssize_t chunk
    Py_ssize_t step         # in the chunk


cdef inline Place place_of(const Row *row, int64_t at) noexcept nogil:
    """Return the step at a time."""
    cdef Place place
    place.chunk = row_chunk(row, at)
    place.step = chunk_step(row.chunk[place.chunk], at)
    return place


cdef int64_t next_change(
    const Request *request, const int32_t *limit, const Row *row,
    Place *place, int64_t start, int64_t end, bint to_blocked,
) noexcept nogil


cdef int64_t first_blocked(
    const Request *request, const int32_t *limit, const Row *row,
    int64_t start, int64_t end,
) noexcept nogil


cdef int64_t free_since(
    const Request *request, const int32_t *limit, const Row *row, int64_t at
) noexcept nogil


cdef void peak(
    const Row *row, int lanes, int64_t start, int64_t end, int64_t *most
) noexcept nogil


cdef inline int64_t place_until(
    const Row *row, const Place *place
) noexcept nogil:
    """Return the end of a step."""
    cdef const Chunk *chunk = row.chunk[place.chunk]
    if place.step + 1 < chunk.steps:
        return times_of(chunk)[place.step + 1]
    return chunk_until(row, place.chunk)


cdef inline void next_place(const Row *row, Place *place) noexcept nogil:
    """Move to the next step, which exists."""
    place.step += 1
    if place.step == row.chunk[place.chunk].steps:
        place.chunk += 1
        place.step = 0


cdef struct Excess:
    int lane                # the lane above its limit; -1 for none
    int64_t at
    int64_t short           # the excess


cdef Excess row_excess(
    const Row *row, int lanes, int64_t start, int64_t end,
    const int32_t *delta,
) noexcept nogil


cdef Excess over_capacity(
    const Row *row, int lanes, int64_t start, int64_t end,
    const int64_t *capacity, uint32_t worse,
) noexcept nogil


cdef inline void lifted(
    const Row *row, int lanes, Py_ssize_t c, const int32_t *sums,
    int64_t *values,
) noexcept nogil:
    cdef int lane
    for lane in range(lanes):
        values[lane] = <int64_t> sums[lane] + row.lift[c * lanes + lane]
