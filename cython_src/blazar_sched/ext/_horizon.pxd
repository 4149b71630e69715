# SPDX-License-Identifier: Apache-2.0
"""Horizons: how long each row keeps fitting a request.

The functions with a body run once per step, row or entry:
`_timeline_index.pyx` says why they are inline.
"""

from blazar_sched.ext._row cimport LANES, Row
from blazar_sched.ext._scan cimport limits, Request
from libc.stdint cimport (
    int32_t,
    INT64_MAX as FOREVER,
    int64_t,
    UINT32_MAX as NEVER,
    uint32_t,
    uint64_t,
)
from libc.string cimport memcmp, memcpy


cdef struct Horizon:
    Request request
    bint given              # whether each query gives the room
    uint64_t used           # the number of the last query that used it
    uint64_t seen           # the number of processed touches
    int64_t clock
    uint32_t soonest        # a lower bound of ``until``
    uint32_t *begin         # size
    uint32_t *until         # size; 0 for a row without values
    int32_t *limit          # size x asked, if the room is given


cdef struct Horizons:
    Py_ssize_t most         # the limit of horizons; 0 disables them
    Py_ssize_t count
    Py_ssize_t size         # rows per horizon
    uint64_t queries
    Horizon *horizon        # most
    uint32_t *touched       # size: the last changed rows, in a ring
    uint64_t touches        # the number of all touches so far


cdef inline uint32_t short_time(int64_t at) noexcept nogil:
    return NEVER if at == FOREVER else <uint32_t> at


cdef void horizons_clear(Horizons *horizons) noexcept nogil


cdef uint64_t horizons_bytes(const Horizons *horizons) noexcept nogil


cdef void horizons_touch(
    Horizons *horizons, Py_ssize_t number
) noexcept nogil


cdef Horizon *horizons_get(
    Horizons *horizons, const Request *request, bint given, Py_ssize_t rows
) noexcept nogil


cdef void horizon_set(
    Horizon *horizon, int64_t now, Py_ssize_t rows
) noexcept nogil


cdef void horizon_look_all(
    Horizon *horizon, const Row *rows, const int64_t *capacity,
    Py_ssize_t count,
) noexcept nogil


cdef void horizon_look(
    Horizon *horizon, const Row *row, Py_ssize_t number, const int32_t *limit
) noexcept nogil


cdef inline uint32_t horizon_of(
    Horizon *horizon, const Row *row, Py_ssize_t number, const int64_t *room
) noexcept nogil:
    """Return the first time from the clock on at which a row is blocked."""
    cdef int32_t limit[LANES]
    cdef size_t size = horizon.request.asked * sizeof(int32_t)
    cdef int32_t *kept
    limits(&horizon.request, room, limit)
    if horizon.given:
        kept = horizon.limit + number * horizon.request.asked
        if memcmp(kept, limit, size) != 0:
            memcpy(kept, limit, size)
            horizon.until[number] = 0
    if horizon.until[number] <= horizon.clock:
        horizon_look(horizon, row, number, limit)
    return horizon.begin[number]


cdef void horizon_fits(
    const Horizon *horizon, Py_ssize_t count, int64_t end, char *answer
) noexcept nogil
