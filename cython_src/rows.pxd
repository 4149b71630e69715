# SPDX-License-Identifier: Apache-2.0
"""Row storage: the steps of one host, flat and sorted.

``times`` and ``sums`` hold what the plain-Python Timeline holds: the sums
from one time to the next, the first time 0, no two neighbours in ``sums``
equal. Everything else reads a row through the functions here. A finite time
fits uint32 and a sum int32, since both limits are checked on the way in.
"""

from libc.stdint cimport int32_t
from libc.stdint cimport int64_t
from libc.stdint cimport INT64_MAX as FOREVER
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc
from libc.stdlib cimport free
from libc.stdlib cimport realloc
from libc.string cimport memcmp
from libc.string cimport memcpy
from libc.string cimport memmove

cdef enum:
    AMOUNT_LIMIT = 2147483647


cdef struct Row:
    Py_ssize_t steps        # how many there are
    Py_ssize_t size         # and how many there is room for
    uint32_t *times         # steps
    int32_t *sums           # steps x lanes
    Py_ssize_t entries      # on this host


cdef inline int row_init(Row *row, int lanes) except -1:
    """Make a row of one step from 0 on, with nothing in any lane."""
    row.steps = row.size = 1
    row.entries = 0
    row.times = <uint32_t *> calloc(1, sizeof(uint32_t))
    row.sums = <int32_t *> calloc(lanes, sizeof(int32_t))
    if row.times == NULL or row.sums == NULL:
        row_free(row)
        raise MemoryError
    return 0


cdef inline int row_copy(Row *row, const Row *source, int lanes) except -1:
    row_init(row, lanes)
    try:
        row_resize(row, lanes, source.steps)
    except MemoryError:
        row_free(row)
        raise
    row.steps = source.steps
    row.entries = source.entries
    memcpy(row.times, source.times, row.steps * sizeof(uint32_t))
    memcpy(row.sums, source.sums, row.steps * lanes * sizeof(int32_t))
    return 0


cdef inline void row_free(Row *row) noexcept nogil:
    free(row.times)
    free(row.sums)
    row.times = NULL
    row.sums = NULL


cdef inline int row_reserve(Row *row, int lanes, Py_ssize_t more) except -1:
    """Make room for more steps; on failure the row is as it was."""
    cdef Py_ssize_t size = row.steps + more
    if size > row.size:
        row_resize(row, lanes, size + size // 2)
    return 0


cdef inline int row_resize(Row *row, int lanes, Py_ssize_t size) except -1:
    """Have room for so many steps, no fewer than there are."""
    cdef void *times = realloc(row.times, size * sizeof(uint32_t))
    if times == NULL:
        raise MemoryError
    row.times = <uint32_t *> times
    cdef void *sums = realloc(row.sums, size * lanes * sizeof(int32_t))
    if sums == NULL:
        raise MemoryError
    row.sums = <int32_t *> sums
    row.size = size
    return 0


cdef inline const int32_t *row_sums(
    const Row *row, int lanes, Py_ssize_t step
) noexcept nogil:
    return row.sums + step * lanes


cdef inline int64_t row_until(
    const Row *row, Py_ssize_t step
) noexcept nogil:
    """Return when a step ends."""
    return row.times[step + 1] if step + 1 < row.steps else FOREVER


cdef inline Py_ssize_t row_find(const Row *row, int64_t at) noexcept nogil:
    """Return the step that holds at an instant, in O(log steps)."""
    cdef Py_ssize_t low = 0, high = row.steps, middle
    while high - low > 1:
        middle = (low + high) >> 1
        if row.times[middle] <= at:
            low = middle
        else:
            high = middle
    return low


cdef inline Py_ssize_t row_excess(
    const Row *row, int lanes, int64_t start, int64_t end,
    const int32_t *delta, int sign,
) noexcept nogil:
    """Return where row_raise would pass AMOUNT_LIMIT, or -1.

    The answer is step * lanes + lane of the first such sum.
    """
    cdef Py_ssize_t step = row_find(row, start)
    cdef int lane
    cdef int64_t value
    while step < row.steps and row.times[step] < end:
        for lane in range(lanes):
            value = row.sums[step * lanes + lane]
            value += sign * delta[lane]
            if not -AMOUNT_LIMIT <= value <= AMOUNT_LIMIT:
                return step * lanes + lane
        step += 1
    return -1


cdef inline void row_raise(
    Row *row, int lanes, int64_t start, int64_t end,
    const int32_t *delta, int sign,
) noexcept nogil:
    """Add ``sign * delta`` to the lanes over a window.

    The row has room for two more steps, and row_excess found nothing.
    """
    cdef Py_ssize_t first = row_cut(row, lanes, start)
    cdef Py_ssize_t last = row.steps
    cdef Py_ssize_t step
    cdef int lane
    if end != FOREVER:
        last = row_cut(row, lanes, end)
    for step in range(first, last):
        for lane in range(lanes):
            row.sums[step * lanes + lane] += sign * delta[lane]
    row_merge(row, lanes, last)
    row_merge(row, lanes, first)


cdef inline Py_ssize_t row_cut(
    Row *row, int lanes, int64_t at
) noexcept nogil:
    """Make a step begin at an instant; return it. There is room for it."""
    cdef Py_ssize_t step = row_find(row, at)
    if row.times[step] == at:
        return step
    row_shift(row, lanes, step, step + 1)
    row.times[step + 1] = <uint32_t> at
    return step + 1


cdef inline void row_merge(
    Row *row, int lanes, Py_ssize_t step
) noexcept nogil:
    """Drop a step that goes on as the one before it."""
    if not 0 < step < row.steps:
        return
    cdef const int32_t *sums = row_sums(row, lanes, step)
    if memcmp(sums - lanes, sums, lanes * sizeof(int32_t)) == 0:
        row_shift(row, lanes, step + 1, step)


cdef inline void row_shift(
    Row *row, int lanes, Py_ssize_t step, Py_ssize_t to
) noexcept nogil:
    """Move a step and all after it to another position."""
    cdef Py_ssize_t behind = row.steps - step
    memmove(row.times + to, row.times + step, behind * sizeof(uint32_t))
    memmove(
        row.sums + to * lanes, row.sums + step * lanes,
        behind * lanes * sizeof(int32_t),
    )
    row.steps += to - step


cdef struct Border:
    int64_t at
    int sign                # 1 where an entry begins, -1 where it ends
    const int32_t *delta


cdef inline int row_build(
    Row *row, int lanes, const Border *borders, Py_ssize_t count,
    int64_t *sums, int64_t *at,
) noexcept nogil:
    """Give a new row the steps of entries, from their ascending borders.

    The row has room for a step per border and one more; ``sums`` is room for
    one number per lane. Return -1, or the lane that passes AMOUNT_LIMIT, and
    when it does.
    """
    cdef Py_ssize_t i = 0
    cdef int lane
    for lane in range(lanes):
        sums[lane] = 0
    while i < count:
        at[0] = borders[i].at
        while i < count and borders[i].at == at[0]:
            for lane in range(lanes):
                sums[lane] += borders[i].sign * borders[i].delta[lane]
            i += 1
        for lane in range(lanes):
            if not -AMOUNT_LIMIT <= sums[lane] <= AMOUNT_LIMIT:
                return lane
        row_append(row, lanes, at[0], sums)
    return -1


cdef inline void row_append(
    Row *row, int lanes, int64_t at, const int64_t *sums
) noexcept nogil:
    """Begin a last step, unless it goes on as the one before it."""
    cdef int lane
    cdef Py_ssize_t step = row.steps if at > 0 else 0
    row.times[step] = <uint32_t> at
    for lane in range(lanes):
        row.sums[step * lanes + lane] = <int32_t> sums[lane]
    row.steps = step + 1
    row_merge(row, lanes, step)
