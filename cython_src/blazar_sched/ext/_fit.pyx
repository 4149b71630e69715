# SPDX-License-Identifier: Apache-2.0
"""Fit: whether a request fits many rows over one window, by their steps.

The cost of a row is the latency of memory: a few dependent cache lines. So the
rows are processed in groups, one cache line of each row at a time, and each
pass over a group prefetches the lines of the next pass.
"""

from blazar_sched.ext._memory cimport prefetch
from blazar_sched.ext._row cimport (
    Chunk,
    chunk_bytes,
    chunk_step,
    chunk_until,
    LANES,
    PACKED,
    Row,
    row_chunk,
    sums_of,
)
from blazar_sched.ext._scan cimport limits, next_change, Request
from libc.stdint cimport int32_t, int64_t


cdef void turn_to(
    Turn *turn, const Rows *rows, const int *numbers, Py_ssize_t first,
    Py_ssize_t count, int64_t at
) noexcept nogil:
    """Begin a group of the rows from ``first`` on, all at the same time."""
    cdef Py_ssize_t j
    turn.count = min(<Py_ssize_t> TURN, count - first)
    for j in range(turn.count):
        turn.row[j] = &rows.row[number_of(numbers, first + j)]
        turn.at[j] = at
        prefetch(turn.row[j])


cdef void ask_directories(const Turn *turn) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(turn.count):
        prefetch(turn.row[j].first)
        prefetch(turn.row[j].chunk)


cdef void find_places(Turn *turn, int lanes) noexcept nogil:
    cdef const Row *row
    cdef const char *sums
    cdef Py_ssize_t j
    for j in range(turn.count):
        row = turn.row[j]
        turn.place[j].chunk = row_chunk(row, turn.at[j])
        prefetch(row.chunk[turn.place[j].chunk])
        prefetch(<const char *> row.chunk[turn.place[j].chunk] + 64)
    for j in range(turn.count):
        row = turn.row[j]
        turn.place[j].step = chunk_step(
            row.chunk[turn.place[j].chunk], turn.at[j]
        )
        sums = <const char *> (
            sums_of(row.chunk[turn.place[j].chunk])
            + turn.place[j].step * lanes
        )
        prefetch(sums)
        prefetch(sums + 64)


cdef void look_on(Turn *turn, int lanes, int64_t end) noexcept nogil:
    """Prefetch the next chunk where the window continues in it."""
    cdef const Row *row
    cdef const Chunk *chunk
    cdef Py_ssize_t j, c
    for j in range(turn.count):
        row = turn.row[j]
        c = turn.place[j].chunk
        if chunk_until(row, c) < end:
            chunk = row.chunk[c + 1]
            prefetch(chunk)
            prefetch(<const char *> chunk + chunk_bytes(0, PACKED))
            prefetch(row.peak + (c + 1) * lanes)


cdef void fit(
    const Request *request, const Rows *rows, const int *numbers,
    const int64_t *room, Py_ssize_t count, int64_t start, int64_t end,
    char *answer,
) noexcept nogil:
    """Write a 1 for each row that fits, else a 0.

    :param numbers: the row numbers, ``count``; NULL for the first rows.
    :param room: count x classes; NULL for the capacities.
    """
    cdef Turn turns[2]
    cdef Turn *turn = &turns[0]
    cdef Turn *following = &turns[1]
    cdef int32_t limit[LANES]
    cdef Py_ssize_t i = 0, j, number
    cdef int classes = request.classes
    turn_to(turn, rows, numbers, 0, count, start)
    ask_directories(turn)
    while i < count:
        turn_to(following, rows, numbers, i + turn.count, count, start)
        find_places(turn, request.lanes)
        ask_directories(following)
        look_on(turn, request.lanes, end)
        for j in range(turn.count):
            number = number_of(numbers, i + j)
            limits(
                request,
                rows.capacity + number * classes if room == NULL
                else room + (i + j) * classes,
                limit,
            )
            answer[i + j] = next_change(
                request, limit, turn.row[j], &turn.place[j], start, end, True
            ) == end
        i += turn.count
        turn, following = following, turn
