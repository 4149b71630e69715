# SPDX-License-Identifier: Apache-2.0
"""A skyline row: the steps of one host, in chunks.

A step has the sums of the lanes from its time to the next time. The first time
is 0, and no two neighbours are equal, as in the plain-Python Timeline. A chunk
has a few dozen steps. A directory has the first time of each chunk, its peak
in each lane, and its lift: an amount to add to all sums of the chunk. A change
only lifts the chunks that are completely inside its window. So a change, and a
query for the peak, cost O(log steps + CHUNK + chunks in the window).

A finite time fits into uint32 and a sum into int32; the limits are checked
before a change. A stored sum is a sum from before its chunk was lifted, so it
fits, too.
"""

from libc.stdint cimport (
    INT32_MAX,
    int32_t,
    INT64_MAX as FOREVER,
    int64_t,
    uint16_t,
    uint32_t,
    uint64_t,
)
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove, memset


cdef inline size_t directory_bytes(int lanes, Py_ssize_t room) noexcept nogil:
    return room * (
        sizeof(Chunk *) + sizeof(uint32_t) + 2 * lanes * sizeof(int32_t)
    )


# Memory. Without memory, functions return False and change nothing.

cdef inline Chunk *chunk_new(int lanes, Py_ssize_t room) noexcept nogil:
    cdef Chunk *chunk = <Chunk *> malloc(chunk_bytes(lanes, room))
    if chunk != NULL:
        chunk.steps = 0
        chunk.room = <uint16_t> room
    return chunk


cdef bint chunk_resize(
    Chunk **place, int lanes, Py_ssize_t room
) noexcept nogil:
    """Resize a chunk to room for a number of steps, at least its own."""
    cdef Chunk *chunk = place[0]
    cdef Py_ssize_t old = chunk.room
    cdef size_t sums = chunk.steps * lanes * sizeof(int32_t)
    if room < old:
        memmove(times_of(chunk) + room, times_of(chunk) + old, sums)
        chunk.room = <uint16_t> room
    cdef void *moved = realloc(chunk, chunk_bytes(lanes, room))
    if moved == NULL:
        # After shrinking, the old block serves as well.
        return room < old
    chunk = place[0] = <Chunk *> moved
    if room > old:
        memmove(times_of(chunk) + room, times_of(chunk) + old, sums)
        chunk.room = <uint16_t> room
    return True


cdef bint row_widen(
    Row *row, int lanes, Py_ssize_t room
) noexcept nogil:
    """Resize the directory to room for a number of chunks."""
    cdef Py_ssize_t n = row.chunks
    cdef char *block = <char *> malloc(directory_bytes(lanes, room))
    if block == NULL:
        return False
    cdef Row old = row[0]
    row.room = <uint32_t> room
    row.chunk = <Chunk **> block
    row.first = <uint32_t *> (row.chunk + room)
    row.lift = <int32_t *> (row.first + room)
    row.peak = row.lift + room * lanes
    if n > 0:
        memcpy(row.chunk, old.chunk, n * sizeof(Chunk *))
        memcpy(row.first, old.first, n * sizeof(uint32_t))
        memcpy(row.lift, old.lift, n * lanes * sizeof(int32_t))
        memcpy(row.peak, old.peak, n * lanes * sizeof(int32_t))
    free(old.chunk)
    return True


cdef bint row_init(Row *row, int lanes) noexcept nogil:
    """Initialize a row with one step from 0 on, with 0 in all lanes."""
    cdef int32_t nothing[LANES]
    cdef uint32_t since = 0
    memset(row, 0, sizeof(Row))
    memset(nothing, 0, sizeof(nothing))
    return row_pack(row, lanes, &since, nothing, 1)


cdef void row_free(Row *row) noexcept nogil:
    cdef uint32_t c
    for c in range(row.chunks):
        free(row.chunk[c])
    free(row.chunk)
    memset(row, 0, sizeof(Row))


cdef bint row_pack(
    Row *row, int lanes, const uint32_t *times, const int32_t *sums,
    Py_ssize_t steps,
) noexcept nogil:
    """Replace the steps of a row; no two new neighbours are equal."""
    cdef Py_ssize_t chunks = (steps + PACKED - 1) // PACKED
    cdef Py_ssize_t c, done = 0, n
    cdef Chunk *chunk
    cdef Row packed
    memset(&packed, 0, sizeof(Row))
    if not row_widen(&packed, lanes, chunks):
        return False
    for c in range(chunks):
        # Evenly, so that each chunk has some room to grow.
        n = (steps - done) // (chunks - c)
        chunk = chunk_new(lanes, n)
        if chunk == NULL:
            row_free(&packed)
            return False
        chunk.steps = <uint16_t> n
        memcpy(times_of(chunk), times + done, n * sizeof(uint32_t))
        memcpy(
            sums_of(chunk), sums + done * lanes, n * lanes * sizeof(int32_t)
        )
        packed.chunk[c] = chunk
        packed.first[c] = times[done]
        packed.chunks += 1
        memset(packed.lift + c * lanes, 0, lanes * sizeof(int32_t))
        chunk_peak(&packed, lanes, c)
        done += n
    packed.entries = row.entries
    row_free(row)
    row[0] = packed
    return True


cdef bint row_copy(
    Row *row, const Row *source, int lanes
) noexcept nogil:
    """Initialize a row as a copy of another row."""
    cdef uint32_t c
    cdef size_t size
    cdef Chunk *chunk
    memset(row, 0, sizeof(Row))
    if not row_widen(row, lanes, source.chunks):
        return False
    for c in range(source.chunks):
        size = chunk_bytes(lanes, source.chunk[c].room)
        chunk = <Chunk *> malloc(size)
        if chunk == NULL:
            row_free(row)
            return False
        memcpy(chunk, source.chunk[c], size)
        row.chunk[c] = chunk
        row.chunks += 1
    size = source.chunks * lanes * sizeof(int32_t)
    memcpy(row.first, source.first, source.chunks * sizeof(uint32_t))
    memcpy(row.lift, source.lift, size)
    memcpy(row.peak, source.peak, size)
    row.lifted = source.lifted
    row.entries = source.entries
    return True


cdef uint64_t row_bytes(const Row *row, int lanes) noexcept nogil:
    cdef uint32_t c
    cdef uint64_t size = sizeof(Row) + directory_bytes(lanes, row.room)
    for c in range(row.chunks):
        size += chunk_bytes(lanes, row.chunk[c].room)
    return size


# Changing

cdef void chunk_peak(
    Row *row, int lanes, Py_ssize_t c
) noexcept nogil:
    """Compute the peak of a chunk."""
    cdef const int32_t *sums = sums_of(row.chunk[c])
    cdef int32_t *peak = row.peak + c * lanes
    cdef Py_ssize_t step
    cdef int lane
    for lane in range(lanes):
        peak[lane] = sums[lane]
    for step in range(1, row.chunk[c].steps):
        for lane in range(lanes):
            peak[lane] = max(peak[lane], sums[step * lanes + lane])


cdef void chunk_settle(
    Row *row, int lanes, Py_ssize_t c
) noexcept nogil:
    """Add the lift of a chunk to its sums."""
    cdef int32_t *sums = sums_of(row.chunk[c])
    cdef int32_t *lift = row.lift + c * lanes
    cdef Py_ssize_t step
    cdef int lane
    if not row.lifted:
        return
    for step in range(row.chunk[c].steps):
        for lane in range(lanes):
            sums[step * lanes + lane] = <int32_t> (
                <int64_t> sums[step * lanes + lane] + lift[lane]
            )
    for lane in range(lanes):
        row.peak[c * lanes + lane] = <int32_t> (
            <int64_t> row.peak[c * lanes + lane] + lift[lane]
        )
        lift[lane] = 0


cdef bint row_raise(
    Row *row, int lanes, int64_t start, int64_t end, const int32_t *delta
) noexcept nogil:
    """Add ``delta`` to the lanes over a window; see row_excess first."""
    cdef Py_ssize_t first, last
    if not row_cut(row, lanes, start):
        return False
    if end != FOREVER and not row_cut(row, lanes, end):
        row_merge(row, lanes, start)
        return False
    first = row_chunk(row, start)
    last = row.chunks if end == FOREVER else row_chunk(row, end)
    if row.first[first] < start:
        chunk_add(row, lanes, first, start, end, delta)
        first += 1
    if last < row.chunks and first <= last and row.first[last] < end:
        chunk_add(row, lanes, last, start, end, delta)
    if first < last:
        row_lift(row, lanes, first, last, delta)
    if end != FOREVER:
        row_merge(row, lanes, end)
    row_merge(row, lanes, start)
    return True


cdef void row_lift(
    Row *row, int lanes, Py_ssize_t first, Py_ssize_t last,
    const int32_t *delta,
) noexcept nogil:
    """Lift some chunks, eight at a time."""
    cdef int32_t eight[8 * LANES]
    cdef int32_t *lift = row.lift + first * lanes
    cdef Py_ssize_t c, i, n = (last - first) * lanes, wide = 8 * lanes
    cdef int64_t most = 0
    for i in range(wide):
        eight[i] = delta[i % lanes]
        most = max(most, <int64_t> eight[i], -<int64_t> eight[i])
    if row.lifted + most > INT32_MAX:
        for c in range(row.chunks):
            chunk_settle(row, lanes, c)
        row.lifted = 0
    row.lifted += most
    while n >= wide:
        for i in range(wide):
            lift[i] += eight[i]
        lift += wide
        n -= wide
    for i in range(n):
        lift[i] += eight[i]


cdef void chunk_add(
    Row *row, int lanes, Py_ssize_t c, int64_t start, int64_t end,
    const int32_t *delta,
) noexcept nogil:
    """Add to the steps of a chunk that begin within a window."""
    cdef Chunk *chunk = row.chunk[c]
    cdef const uint32_t *times = times_of(chunk)
    cdef int32_t *peak = row.peak + c * lanes
    cdef Py_ssize_t step = 0
    cdef int32_t *sums
    cdef int lane
    cdef bint sinks = False     # a sum that equals the peak decreases
    chunk_settle(row, lanes, c)
    if times[0] < start:
        step = chunk_step(chunk, start)
    sums = sums_of(chunk) + step * lanes
    while step < chunk.steps and times[step] < end:
        for lane in range(lanes):
            sinks |= (delta[lane] < 0) & (sums[lane] == peak[lane])
            sums[lane] += delta[lane]
            peak[lane] = max(peak[lane], sums[lane])
        sums += lanes
        step += 1
    if sinks:
        chunk_peak(row, lanes, c)


cdef bint row_cut(Row *row, int lanes, int64_t at) noexcept nogil:
    """Split a step at a time."""
    cdef Py_ssize_t c = row_chunk(row, at)
    cdef Py_ssize_t step = chunk_step(row.chunk[c], at)
    if times_of(row.chunk[c])[step] == at:
        return True
    if row.chunk[c].steps == CHUNK:
        if not row_split(row, lanes, c):
            return False
        c = row_chunk(row, at)
        step = chunk_step(row.chunk[c], at)
    if (
        row.chunk[c].steps == row.chunk[c].room
        and not chunk_resize(
            &row.chunk[c], lanes, min(row.chunk[c].steps + ROOM, CHUNK)
        )
    ):
        return False
    chunk_shift(row.chunk[c], lanes, step, step + 1)
    times_of(row.chunk[c])[step + 1] = <uint32_t> at
    return True


cdef void chunk_shift(
    Chunk *chunk, int lanes, Py_ssize_t step, Py_ssize_t to
) noexcept nogil:
    """Move a step and the steps after it to another position."""
    cdef uint32_t *times = times_of(chunk)
    cdef int32_t *sums = sums_of(chunk)
    cdef size_t behind = chunk.steps - step
    memmove(times + to, times + step, behind * sizeof(uint32_t))
    memmove(
        sums + to * lanes, sums + step * lanes,
        behind * lanes * sizeof(int32_t),
    )
    chunk.steps = <uint16_t> (chunk.steps + to - step)


cdef bint row_split(
    Row *row, int lanes, Py_ssize_t c
) noexcept nogil:
    """Move the second half of a chunk to a new chunk."""
    cdef Chunk *chunk = row.chunk[c]
    cdef Py_ssize_t kept = chunk.steps // 2, given = chunk.steps - kept
    cdef Chunk *other
    if (
        row.chunks == row.room
        and not row_widen(row, lanes, row.chunks + row.chunks // 4 + 1)
    ):
        return False
    other = chunk_new(lanes, given + ROOM)
    if other == NULL:
        return False
    memcpy(times_of(other), times_of(chunk) + kept, given * sizeof(uint32_t))
    memcpy(
        sums_of(other), sums_of(chunk) + kept * lanes,
        given * lanes * sizeof(int32_t),
    )
    other.steps = <uint16_t> given
    chunk.steps = <uint16_t> kept
    row_shift(row, lanes, c, c + 1)
    row.chunk[c + 1] = other
    row.first[c + 1] = times_of(other)[0]
    chunk_peak(row, lanes, c)
    chunk_peak(row, lanes, c + 1)
    chunk_resize(&row.chunk[c], lanes, kept + ROOM)
    return True


cdef void row_shift(
    Row *row, int lanes, Py_ssize_t c, Py_ssize_t to
) noexcept nogil:
    """Move a chunk and the chunks after it to another position."""
    cdef size_t behind = row.chunks - c
    cdef size_t wide = lanes * sizeof(int32_t)
    memmove(row.chunk + to, row.chunk + c, behind * sizeof(Chunk *))
    memmove(row.first + to, row.first + c, behind * sizeof(uint32_t))
    memmove(row.lift + to * lanes, row.lift + c * lanes, behind * wide)
    memmove(row.peak + to * lanes, row.peak + c * lanes, behind * wide)
    row.chunks = <uint32_t> (row.chunks + to - c)


cdef void row_merge(Row *row, int lanes, int64_t at) noexcept nogil:
    """Remove the step that begins at a time if its sums do not change."""
    cdef Py_ssize_t c = row_chunk(row, at)
    cdef Py_ssize_t step = chunk_step(row.chunk[c], at)
    cdef Py_ssize_t before = c if step > 0 else c - 1
    cdef const int32_t *sums
    cdef const int32_t *prior
    cdef int lane
    if before < 0 or times_of(row.chunk[c])[step] != at:
        return
    sums = sums_of(row.chunk[c]) + step * lanes
    if step > 0:
        prior = sums - lanes
    else:
        prior = sums_of(row.chunk[before])
        prior += (row.chunk[before].steps - 1) * lanes
    for lane in range(lanes):
        if (
            <int64_t> sums[lane] + row.lift[c * lanes + lane]
            != <int64_t> prior[lane] + row.lift[before * lanes + lane]
        ):
            return
    chunk_shift(row.chunk[c], lanes, step + 1, step)
    if step == 0 and row.chunk[c].steps > 0:
        row.first[c] = times_of(row.chunk[c])[0]
        chunk_peak(row, lanes, c)
    row_tidy(row, lanes, c)


cdef void row_tidy(Row *row, int lanes, Py_ssize_t c) noexcept nogil:
    """Free memory after a chunk has lost a step."""
    cdef Chunk *chunk = row.chunk[c]
    if chunk.steps == 0:
        free(chunk)
        row_shift(row, lanes, c + 1, c)
    elif chunk.steps <= JOINED // 2 and (
        (c + 1 < row.chunks and row_join(row, lanes, c))
        or (c > 0 and row_join(row, lanes, c - 1))
    ):
        pass
    elif chunk.room - chunk.steps > ROOM:
        chunk_resize(&row.chunk[c], lanes, chunk.steps + ROOM // 2)
    if 4 * (row.chunks + 1) < row.room:
        row_widen(row, lanes, 2 * row.chunks)


cdef bint row_join(
    Row *row, int lanes, Py_ssize_t c
) noexcept nogil:
    """Join a chunk with the next one, if both have few steps."""
    cdef Chunk *other = row.chunk[c + 1]
    cdef Py_ssize_t steps = row.chunk[c].steps, more = other.steps
    if steps + more > JOINED:
        return False
    if (
        steps + more > row.chunk[c].room
        and not chunk_resize(&row.chunk[c], lanes, steps + more + ROOM)
    ):
        return False
    chunk_settle(row, lanes, c)
    chunk_settle(row, lanes, c + 1)
    memcpy(
        times_of(row.chunk[c]) + steps, times_of(other),
        more * sizeof(uint32_t),
    )
    memcpy(
        sums_of(row.chunk[c]) + steps * lanes, sums_of(other),
        more * lanes * sizeof(int32_t),
    )
    row.chunk[c].steps = <uint16_t> (steps + more)
    free(other)
    row_shift(row, lanes, c + 2, c + 1)
    chunk_peak(row, lanes, c)
    return True
