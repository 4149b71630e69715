# SPDX-License-Identifier: Apache-2.0
"""Skyline rows. `_row.pyx` describes their structure.

The functions with a body run once per step, row or entry:
`_timeline_index.pyx` says why they are inline.
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
    CHUNK = 32              # the limit of steps per chunk
    PACKED = 28             # steps per chunk after a bulk load
    ROOM = 2                # steps by which a chunk grows
    JOINED = 28             # neighbours with fewer steps are joined
    LANES = 32              # the limit of lanes


cdef struct Chunk:
    uint16_t steps          # number of steps
    uint16_t room           # steps for which there is memory
    # Then follow the times, room x uint32, and the sums, room x lanes x int32.


cdef struct Row:
    uint32_t chunks         # number of chunks
    uint32_t room           # chunks for which there is memory
    uint32_t entries        # of the host
    int64_t lifted          # a bound for the magnitude of any lift
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
    """Return the chunk with the step at a time."""
    cdef Py_ssize_t low = 0, n = row.chunks, half
    while n > 1:
        half = n >> 1
        low += half if row.first[low + half] <= at else 0
        n -= half
    return low


cdef inline Py_ssize_t chunk_step(
    const Chunk *chunk, int64_t at
) noexcept nogil:
    """Return the step of a chunk at a time, at least 0."""
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
    """Return the end of the last step of a chunk."""
    return row.first[c + 1] if c + 1 < row.chunks else FOREVER


cdef void chunk_peak(
    Row *row, int lanes, Py_ssize_t c
) noexcept nogil


cdef bint row_raise(
    Row *row, int lanes, int64_t start, int64_t end, const int32_t *delta
) noexcept nogil
