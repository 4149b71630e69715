# SPDX-License-Identifier: Apache-2.0
"""Skyline rows. `_row.pyx` describes their structure.

The functions with a body run once per step, row or entry; `_timeline.pyx`
says what it costs to call them in another module.
"""

from libc.stdint cimport (
    int32_t,
    INT64_MAX as FOREVER,
    int64_t,
    uint16_t,
    uint32_t,
    uint64_t,
)


cdef enum:
    CHUNK = 32              # the most steps of a chunk
    PACKED = 28             # how many a bulk load puts into one
    ROOM = 2                # a chunk's memory grows by so many
    JOINED = 28             # two neighbours with no more become one
    LANES = 32              # the most that there are


cdef struct Chunk:
    uint16_t steps          # how many there are
    uint16_t room           # and how many there is room for
    # Then follow the times, room x uint32, and the sums, room x lanes x int32.


cdef struct Row:
    uint32_t chunks         # how many there are
    uint32_t room           # and how many there is room for
    uint32_t entries        # on this host
    int64_t lifted          # no lift is more, either way
    # The directory, one block of memory that begins with the chunks.
    Chunk **chunk
    uint32_t *first         # time, by chunk
    int32_t *lift           # chunks x lanes
    int32_t *peak           # chunks x lanes, of the stored sums


cdef inline uint32_t *times_of(const Chunk *chunk) noexcept nogil:
    return <uint32_t *> (chunk + 1)


cdef inline int32_t *sums_of(const Chunk *chunk) noexcept nogil:
    return <int32_t *> (times_of(chunk) + chunk.room)


cdef inline size_t chunk_bytes(int lanes, Py_ssize_t room) noexcept nogil:
    return sizeof(Chunk) + room * (1 + lanes) * sizeof(uint32_t)


cdef bint row_init(Row *row, int lanes) noexcept nogil


cdef void row_free(Row *row) noexcept nogil


cdef bint row_pack(
    Row *row, int lanes, const uint32_t *times, const int32_t *sums,
    Py_ssize_t steps,
) noexcept nogil


cdef bint row_copy(
    Row *row, const Row *source, int lanes
) noexcept nogil


cdef uint64_t row_bytes(const Row *row, int lanes) noexcept nogil


# Finding

cdef inline Py_ssize_t row_chunk(const Row *row, int64_t at) noexcept nogil:
    """Return the chunk whose steps hold at an instant."""
    cdef Py_ssize_t low = 0, n = row.chunks, half
    while n > 1:
        half = n >> 1
        low += half if row.first[low + half] <= at else 0
        n -= half
    return low


cdef inline Py_ssize_t chunk_step(
    const Chunk *chunk, int64_t at
) noexcept nogil:
    """Return the step of a chunk that holds at an instant, at least 0."""
    cdef const uint32_t *times = times_of(chunk)
    cdef Py_ssize_t low = 0, n = chunk.steps, half
    while n > 1:
        half = n >> 1
        low += half if times[low + half] <= at else 0
        n -= half
    return low


cdef inline int64_t chunk_until(
    const Row *row, Py_ssize_t c
) noexcept nogil:
    """Return when the last step of a chunk ends."""
    return row.first[c + 1] if c + 1 < row.chunks else FOREVER


cdef void chunk_peak(
    Row *row, int lanes, Py_ssize_t c
) noexcept nogil


cdef bint row_raise(
    Row *row, int lanes, int64_t start, int64_t end, const int32_t *delta
) noexcept nogil
