# SPDX-License-Identifier: Apache-2.0
"""Horizons: how long each row keeps fitting a request, from the clock on.

``begin`` is the first time at or after the clock at which the row is blocked,
``until`` the time at which it is free again. So the answer for a window that
starts at the clock is one comparison, while the clock is before ``until``. The
values of a row are computed again if the row has changed or the clock has
reached ``until``. Setting the clock back discards the values of all rows.

A changed row is only recorded; a horizon processes the records when it is used
next.

If a query gives the room of its rows, as queries by Nova's HostStates do, the
limits for which the values were computed are stored beside them.
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
    """Discard all horizons, because row numbers changed."""
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
    """Record that a row has changed."""
    if number < horizons.size:
        horizons.touched[horizons.touches % horizons.size] = (
            <uint32_t> number
        )
        horizons.touches += 1


cdef void horizon_refresh(
    Horizon *horizon, const Horizons *horizons
) noexcept nogil:
    """Discard the values of the rows that changed since the last use."""
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
    """Return the horizon of a request, NULL without horizons or memory.

    A new horizon replaces the least recently used one.
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
    # The lanes distinguish a whole host from amounts that are all 0.
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
        # The caller walks over the rows instead.
        horizons_clear(horizons)
        return NULL
    return horizon


cdef void horizon_set(
    Horizon *horizon, int64_t now, Py_ssize_t rows
) noexcept nogil:
    """Set the clock, before any row is queried."""
    if now < horizon.clock:
        memset(horizon.until, 0, rows * sizeof(uint32_t))
        horizon.soonest = 0
    horizon.clock = now


cdef void horizon_look(
    Horizon *horizon, const Row *row, Py_ssize_t number, const int32_t *limit
) noexcept nogil:
    """Compute when a row is blocked next, and until when."""
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
    """Compute outdated values of all rows, by their capacities."""
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
    """Write the answers of all rows for the window from the clock on."""
    cdef uint32_t last = short_time(end)
    cdef const uint32_t *begin = horizon.begin
    cdef Py_ssize_t i
    for i in range(count):
        answer[i] = begin[i] >= last
