# SPDX-License-Identifier: Apache-2.0
"""Horizons: for one request, how long each row keeps fitting it from now on.

For a row that was looked at, ``begin`` is when it is first blocked at or
after the clock, and ``until`` when it is free again after that; so the answer
to any window that starts now is one comparison, for as long as the clock is
before ``until``. A row that has changed since, or whose ``until`` has come,
is looked at anew. A clock that is set back makes all of them anew.

What changes is only noted, and a horizon takes that in when it is next used.

Where the room of a row is given with the query, as Nova's HostStates do, the
limits that it was looked at under are kept beside it.
"""

from blazar_sched.ext._row cimport LANES, Row
from blazar_sched.ext._scan cimport (
    limits,
    next_change,
    Place,
    place_of,
    Request,
)
from libc.stdint cimport (
    int32_t,
    INT64_MAX as FOREVER,
    int64_t,
    UINT32_MAX as NEVER,
    uint32_t,
    uint64_t,
)
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memset


cdef void horizon_free(Horizon *horizon) noexcept nogil:
    free(horizon.begin)
    free(horizon.until)
    free(horizon.limit)
    memset(horizon, 0, sizeof(Horizon))


cdef void horizons_clear(Horizons *horizons) noexcept nogil:
    """Forget all, because rows came or went."""
    cdef Py_ssize_t i
    for i in range(horizons.count):
        horizon_free(&horizons.horizon[i])
    free(horizons.touched)
    horizons.touched = NULL
    horizons.count = horizons.size = 0


cdef uint64_t horizons_bytes(const Horizons *horizons) noexcept nogil:
    cdef uint64_t size = (
        horizons.most * sizeof(Horizon) + horizons.size * sizeof(uint32_t)
    )
    cdef Py_ssize_t i
    cdef int width
    for i in range(horizons.count):
        width = 2
        if horizons.horizon[i].given:
            width += horizons.horizon[i].request.asked
        size += horizons.size * width * sizeof(uint32_t)
    return size


cdef void horizons_touch(
    Horizons *horizons, Py_ssize_t number
) noexcept nogil:
    """Have a row looked at anew."""
    if number < horizons.size:
        horizons.touched[horizons.touches % horizons.size] = (
            <uint32_t> number
        )
        horizons.touches += 1


cdef void horizon_refresh(
    Horizon *horizon, const Horizons *horizons
) noexcept nogil:
    """Take in what was touched since the last time."""
    cdef uint64_t i
    if horizon.seen == horizons.touches:
        return
    if horizons.touches - horizon.seen > <uint64_t> horizons.size:
        memset(horizon.until, 0, horizons.size * sizeof(uint32_t))
    else:
        for i in range(horizon.seen, horizons.touches):
            horizon.until[horizons.touched[i % horizons.size]] = 0
    horizon.seen = horizons.touches
    horizon.soonest = 0


cdef Horizon *horizons_get(
    Horizons *horizons, const Request *request, bint given, Py_ssize_t rows
) noexcept nogil:
    """Return the horizon of a request, maybe a new one in the place of the
    one that was not used the longest; NULL if there are none, or no memory.
    """
    cdef Py_ssize_t i
    cdef Horizon *horizon
    if horizons.most == 0:
        return NULL
    if rows > horizons.size:
        horizons_clear(horizons)
        horizons.touched = <uint32_t *> malloc(rows * sizeof(uint32_t))
        if horizons.touched == NULL:
            return NULL
        horizons.size = rows
    horizons.queries += 1
    for i in range(horizons.count):
        horizon = &horizons.horizon[i]
        if horizon.given == given and same_request(&horizon.request, request):
            horizon.used = horizons.queries
            horizon_refresh(horizon, horizons)
            return horizon
    if horizons.count < horizons.most:
        horizon = &horizons.horizon[horizons.count]
        horizons.count += 1
    else:
        horizon = horizons.horizon
        for i in range(horizons.count):
            if horizons.horizon[i].used < horizon.used:
                horizon = &horizons.horizon[i]
    return horizon_new(horizons, horizon, request, given)


cdef bint same_request(
    const Request *a, const Request *b
) noexcept nogil:
    # The lanes asked tell a whole host from no amounts.
    return (
        a.asked == b.asked and a.lane[0] == b.lane[0]
        and memcmp(a.amount, b.amount, a.classes * sizeof(int64_t)) == 0
    )


cdef Horizon *horizon_new(
    Horizons *horizons, Horizon *horizon, const Request *request, bint given
) noexcept nogil:
    horizon_free(horizon)
    horizon.request = request[0]
    horizon.given = given
    horizon.used = horizons.queries
    horizon.seen = horizons.touches
    horizon.begin = <uint32_t *> calloc(horizons.size, sizeof(uint32_t))
    horizon.until = <uint32_t *> calloc(horizons.size, sizeof(uint32_t))
    if given:
        horizon.limit = <int32_t *> calloc(
            horizons.size * request.asked, sizeof(int32_t)
        )
    if (
        horizon.begin == NULL or horizon.until == NULL
        or (given and horizon.limit == NULL)
    ):
        # As if no rows had come: the caller scans, and all begin anew.
        horizons_clear(horizons)
        return NULL
    return horizon


cdef void horizon_set(
    Horizon *horizon, int64_t now, Py_ssize_t rows
) noexcept nogil:
    """Set the clock, before the rows are asked for."""
    if now < horizon.clock:
        memset(horizon.until, 0, rows * sizeof(uint32_t))
        horizon.soonest = 0
    horizon.clock = now


cdef void horizon_look(
    Horizon *horizon, const Row *row, Py_ssize_t number, const int32_t *limit
) noexcept nogil:
    """See from when to when a row is blocked next."""
    cdef const Request *request = &horizon.request
    cdef Place place = place_of(row, horizon.clock)
    cdef int64_t begin = next_change(
        request, limit, row, &place, horizon.clock, FOREVER, True
    )
    cdef int64_t until = FOREVER
    if begin != FOREVER:
        until = next_change(
            request, limit, row, &place, begin, FOREVER, False
        )
    horizon.begin[number] = short_time(begin)
    horizon.until[number] = short_time(until)


cdef void horizon_look_all(
    Horizon *horizon, const Row *rows, const int64_t *capacity,
    Py_ssize_t count,
) noexcept nogil:
    """Bring all rows to the clock, with their capacities for room."""
    cdef int32_t limit[LANES]
    cdef Py_ssize_t i
    cdef uint32_t soonest = NEVER
    if horizon.clock < horizon.soonest:
        return
    for i in range(count):
        if horizon.until[i] <= horizon.clock:
            limits(
                &horizon.request, capacity + i * horizon.request.classes,
                limit,
            )
            horizon_look(horizon, &rows[i], i, limit)
        soonest = min(soonest, horizon.until[i])
    horizon.soonest = soonest


cdef void horizon_fits(
    const Horizon *horizon, Py_ssize_t count, int64_t end, char *answer
) noexcept nogil:
    """Answer for all rows over the window from the clock on."""
    cdef uint32_t last = short_time(end)
    cdef const uint32_t *begin = horizon.begin
    cdef Py_ssize_t i
    for i in range(count):
        answer[i] = begin[i] >= last
