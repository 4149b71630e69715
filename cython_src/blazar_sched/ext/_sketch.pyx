# SPDX-License-Identifier: Apache-2.0
"""The sketch: approximate levels of the free amounts, by stretch of time.

Time is divided into stretches with about the same number of steps. For each
stretch, class and row, the sketch has the levels of the least and of the most
free amount during the stretch: numbers from 0 to 15, two per byte. A request
fits on a row if the least is enough in all stretches that overlap the window.
It is blocked if the least is too small in a stretch inside the window, or the
most in a stretch that overlaps it. All other rows are looked up in the steps,
so that answers are exact. A column has the levels of all rows; the least of
eight stretches together has a column as well. The most, which is less useful,
has one column for two stretches. Classes are built when first requested.

A changed row is only recorded, and updated before the next query.
"""

from blazar_sched.ext._fit cimport Rows
from blazar_sched.ext._row cimport LANES, Row, sums_of, times_of
from blazar_sched.ext._scan cimport (
    lifted,
    next_place,
    Place,
    place_of,
    place_until,
    Request,
)
from libc.stdint cimport (
    INT64_MAX as FOREVER,
    int64_t,
    UINT32_MAX as NEVER,
    uint32_t,
    uint64_t,
    uint8_t,
)
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy, memset


cdef void sketch_clear(Sketch *sketch) noexcept nogil:
    """Discard the sketch; the next query builds it again."""
    cdef int k
    for k in range(sketch.lanes):
        free(sketch.level[sketch.lane[k]])
    sketch.lanes = 0
    free(sketch.border)
    free(sketch.changed)
    free(sketch.since)
    free(sketch.until)
    free(sketch.unsure)
    free(sketch.answer)
    free(sketch.by_rows)
    sketch.unsure = NULL
    sketch.answer = sketch.by_rows = NULL
    sketch.border = sketch.changed = sketch.since = sketch.until = NULL
    sketch.stretches = 0


cdef uint64_t sketch_bytes(const Sketch *sketch) noexcept nogil:
    if sketch.stretches == 0:
        return 0
    return (
        <uint64_t> sketch.columns * sketch.lanes * sketch.width
        + (sketch.stretches + 1) * sizeof(uint32_t)
        + 2 * sketch.width * (3 * sizeof(uint32_t) + sizeof(int) + 2)
    )


cdef void sketch_touch(
    Sketch *sketch, Py_ssize_t number, uint32_t start, uint32_t end
) noexcept nogil:
    """Record that a row has changed over a window."""
    if sketch.stretches == 0:
        return
    if number >= 2 * sketch.width:
        sketch_clear(sketch)
        return
    sketch.rows = max(sketch.rows, number + 1)
    sketch.writes += 1
    if sketch.since[number] == NEVER:
        sketch.changed[sketch.changes] = <uint32_t> number
        sketch.changes += 1
        sketch.since[number] = start
        sketch.until[number] = end
    else:
        sketch.since[number] = min(sketch.since[number], start)
        sketch.until[number] = max(sketch.until[number], end)


cdef inline uint8_t *column(
    const Sketch *sketch, int number, int lane
) noexcept nogil:
    return sketch.level[lane] + number * sketch.width


cdef inline uint8_t *least_in(
    const Sketch *sketch, int stretch, int lane
) noexcept nogil:
    return column(sketch, stretch, lane)


cdef inline uint8_t *most_in(
    const Sketch *sketch, int stretch, int lane
) noexcept nogil:
    return column(sketch, sketch.stretches + stretch // PAIR, lane)


cdef inline uint8_t *least_in_group(
    const Sketch *sketch, int group, int lane
) noexcept nogil:
    return column(sketch, sketch.stretches + sketch.pairs + group, lane)


cdef int stretch_at(const Sketch *sketch, uint32_t at) noexcept nogil:
    """Return the stretch that contains a time."""
    cdef int low = 0, high = sketch.stretches, middle
    while high - low > 1:
        middle = (low + high) >> 1
        if sketch.border[middle] <= at:
            low = middle
        else:
            high = middle
    return low


# Building

cdef int compare_times(
    const void *a, const void *b
) noexcept nogil:
    cdef uint32_t x = (<const uint32_t *> a)[0]
    cdef uint32_t y = (<const uint32_t *> b)[0]
    return (x > y) - (x < y)


cdef bint sketch_make(
    Sketch *sketch, const Rows *rows, int classes
) noexcept nogil:
    """Initialize the sketch; False, and none, without memory. O(steps)."""
    cdef size_t size
    sketch_clear(sketch)
    sketch.classes = classes
    sketch.rows = rows.count
    # With some room for new hosts.
    sketch.width = (rows.count // BLOCK + 2) * BLOCK // 2
    sketch.changes = 0
    sketch.writes = 0
    size = 2 * sketch.width
    sketch.changed = <uint32_t *> malloc(size * sizeof(uint32_t))
    sketch.since = <uint32_t *> malloc(size * sizeof(uint32_t))
    sketch.until = <uint32_t *> malloc(size * sizeof(uint32_t))
    sketch.unsure = <int *> malloc(size * sizeof(int))
    sketch.answer = <char *> malloc(size)
    sketch.by_rows = <char *> malloc(size)
    if (
        sketch.changed == NULL or sketch.since == NULL
        or sketch.until == NULL or sketch.unsure == NULL
        or sketch.answer == NULL or sketch.by_rows == NULL
        or not sketch_cut(sketch, rows)
    ):
        sketch_clear(sketch)
        return False
    memset(sketch.since, 0xff, size * sizeof(uint32_t))
    sketch_scale(sketch, rows)
    return True


cdef bint sketch_draw(
    Sketch *sketch, const Rows *rows, const Request *request
) noexcept nogil:
    """Build the lanes of a request that are requested first.

    False, and no sketch, without memory. O(steps).
    """
    cdef int drawn = sketch.lanes, k, lane
    cdef Py_ssize_t block
    for k in range(request.asked - 1):
        lane = request.lane[k]
        if is_drawn(sketch, lane):
            continue
        sketch.level[lane] = <uint8_t *> calloc(
            sketch.columns, sketch.width
        )
        if sketch.level[lane] == NULL:
            sketch_clear(sketch)
            return False
        sketch.lane[sketch.lanes] = lane
        sketch.lanes += 1
    if drawn < sketch.lanes:
        for block in range((rows.count + BLOCK - 1) // BLOCK):
            sketch_block(
                sketch, rows, drawn, block * BLOCK,
                min(rows.count, (block + 1) * BLOCK),
            )
    return True


cdef bint is_drawn(const Sketch *sketch, int lane) noexcept nogil:
    cdef int k
    for k in range(sketch.lanes):
        if sketch.lane[k] == lane:
            return True
    return False


cdef bint sketch_cut(Sketch *sketch, const Rows *rows) noexcept nogil:
    """Set the stretches, with equal numbers of a sample of the steps."""
    cdef uint32_t *times = <uint32_t *> malloc(
        (SAMPLE + 1) * sizeof(uint32_t)
    )
    cdef Py_ssize_t count, i
    cdef int stretches = 1
    cdef uint32_t at
    sketch.border = <uint32_t *> malloc(
        (sketch.most + 1) * sizeof(uint32_t)
    )
    if times == NULL or sketch.border == NULL:
        free(times)
        return False
    count = sample(rows, times)
    qsort(times, count, sizeof(uint32_t), compare_times)
    sketch.border[0] = 0
    for i in range(1, sketch.most):
        if count == 0:
            break
        at = times[(i - 1) * count // sketch.most]
        if at > sketch.border[stretches - 1]:
            sketch.border[stretches] = at
            stretches += 1
    sketch.border[stretches] = NEVER
    sketch.stretches = stretches
    sketch.pairs = (stretches + PAIR - 1) // PAIR
    sketch.columns = (
        stretches + sketch.pairs + (stretches + GROUP - 1) // GROUP
    )
    free(times)
    return True


cdef Py_ssize_t sample(
    const Rows *rows, uint32_t *times
) noexcept nogil:
    """Write the times of up to SAMPLE steps; return their number."""
    cdef Py_ssize_t i, total = 0, count = 0, every, step, skip = 0
    cdef uint32_t c
    for i in range(rows.count):
        for c in range(rows.row[i].chunks):
            total += rows.row[i].chunk[c].steps
    every = total // SAMPLE + 1
    for i in range(rows.count):
        for c in range(rows.row[i].chunks):
            step = skip
            while step < rows.row[i].chunk[c].steps:
                times[count] = times_of(rows.row[i].chunk[c])[step]
                count += 1
                step += every
            skip = step - rows.row[i].chunk[c].steps
    return count


cdef void sketch_scale(
    Sketch *sketch, const Rows *rows
) noexcept nogil:
    """Set the levels: the largest capacity, and less of it in steps of
    alternately 3/4 and 2/3.
    """
    cdef int lane, level
    cdef int64_t most
    cdef Py_ssize_t i
    for lane in range(sketch.classes):
        most = 1
        for i in range(rows.count):
            most = max(most, rows.capacity[i * sketch.classes + lane])
        sketch.least[lane][0] = -FOREVER
        sketch.least[lane][1] = 1
        for level in range(2, LEVELS):
            # 3/256, 1/64, 3/128, 1/32, … 1/2, 3/4, 1 of the largest.
            i = LEVELS - 1 - level
            sketch.least[lane][level] = max(
                sketch.least[lane][level - 1],
                (most * (3 if i & 1 else 4) >> 2) >> (i >> 1),
            )


cdef inline int level_of(
    const Sketch *sketch, int lane, int64_t left
) noexcept nogil:
    """Return the highest level that is not above the free amount."""
    cdef const int64_t *least = sketch.least[lane]
    cdef int level = 8 if left >= least[8] else 0
    if left >= least[level + 4]:
        level += 4
    if left >= least[level + 2]:
        level += 2
    if left >= least[level + 1]:
        level += 1
    return level


cdef struct Levels:
    int least[LANES]
    int most[LANES]


cdef void next_levels(
    const Sketch *sketch, const Rows *rows, Py_ssize_t number, Place *place,
    int stretch, Levels *levels,
) noexcept nogil:
    """Write the levels of a row in a stretch; move to the next stretch."""
    cdef int64_t least[LANES]
    cdef int64_t most[LANES]
    cdef int64_t left[LANES]
    cdef int classes = sketch.classes, lane
    cdef const Row *row = &rows.row[number]
    cdef int64_t end = FOREVER, until = 0
    if stretch + 1 < sketch.stretches:
        end = sketch.border[stretch + 1]
    for lane in range(classes + 1):
        least[lane], most[lane] = FOREVER, -FOREVER
    while until < end:
        what_is_left(
            row, classes, place, rows.capacity + number * classes, left
        )
        for lane in range(classes + 1):
            least[lane] = min(least[lane], left[lane])
            most[lane] = max(most[lane], left[lane])
        until = place_until(row, place)
        if until <= end and until != FOREVER:
            next_place(row, place)
    for lane in range(classes):
        levels.least[lane] = level_of(sketch, lane, least[lane])
        levels.most[lane] = level_of(sketch, lane, most[lane])
    levels.least[classes] = (LEVELS - 1) * <int> least[classes]
    levels.most[classes] = (LEVELS - 1) * <int> most[classes]


cdef void what_is_left(
    const Row *row, int classes, const Place *place, const int64_t *capacity,
    int64_t *left,
) noexcept nogil:
    """Write the free amounts of a step, and 1 if the host is free."""
    cdef int64_t sums[LANES]
    cdef int lanes = classes + 2, lane
    lifted(
        row, lanes, place.chunk,
        sums_of(row.chunk[place.chunk]) + place.step * lanes, sums,
    )
    for lane in range(classes):
        # Nothing is free on a host with a whole-host entry.
        left[lane] = 0 if sums[classes + 1] > 0 else (
            capacity[lane] - sums[lane]
        )
    left[classes] = sums[classes] <= 0 and sums[classes + 1] <= 0


cdef inline int get_level(
    const uint8_t *place, Py_ssize_t number
) noexcept nogil:
    return place[number >> 1] >> 4 * (number & 1) & 15


cdef inline void put_level(
    uint8_t *place, Py_ssize_t number, int level
) noexcept nogil:
    cdef int shift = 4 * (number & 1)
    place[number >> 1] = <uint8_t> (
        place[number >> 1] & ~(15 << shift) | level << shift
    )


cdef void put_most(
    Sketch *sketch, int stretch, int lane, Py_ssize_t number, int level
) noexcept nogil:
    """Set the most of a row in a stretch; the first of a pair is set first.
    """
    cdef uint8_t *place = most_in(sketch, stretch, lane)
    if stretch % PAIR > 0:
        level = max(level, get_level(place, number))
    put_level(place, number, level)


cdef void sketch_block(
    Sketch *sketch, const Rows *rows, int drawn, Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil:
    """Build rows that share their cache lines, stretch by stretch.

    :param drawn: the number of lanes that are built already.
    """
    cdef Place place[BLOCK]
    cdef Levels levels
    cdef int stretch, group, k, lane
    cdef Py_ssize_t number
    memset(place, 0, sizeof(place))
    for stretch in range(sketch.stretches):
        for number in range(first, last):
            next_levels(
                sketch, rows, number, &place[number - first], stretch,
                &levels,
            )
            for k in range(drawn, sketch.lanes):
                lane = sketch.lane[k]
                put_level(
                    least_in(sketch, stretch, lane), number,
                    levels.least[lane],
                )
                put_most(sketch, stretch, lane, number, levels.most[lane])
    for group in range(sketch.columns - sketch.stretches - sketch.pairs):
        draw_group(sketch, drawn, group, first >> 1, (last + 1) >> 1)


cdef void draw_group(
    Sketch *sketch, int drawn, int group, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    """Write the least levels of a group of stretches, for some bytes."""
    cdef int stretch, k, lane
    cdef Py_ssize_t i
    cdef int end = min((group + 1) * GROUP, sketch.stretches)
    cdef uint8_t *least
    cdef const uint8_t *level
    for k in range(drawn, sketch.lanes):
        lane = sketch.lane[k]
        least = least_in_group(sketch, group, lane)
        memset(least + first, 0xff, last - first)
        for stretch in range(group * GROUP, end):
            level = least_in(sketch, stretch, lane)
            for i in range(first, last):
                least[i] = least_of_both(least[i], level[i])


cdef inline uint8_t least_of_both(uint8_t a, uint8_t b) noexcept nogil:
    """Return the minima of the low halves and of the high halves."""
    return <uint8_t> (min(a & 15, b & 15) | min(a & 240, b & 240))


cdef void sketch_refresh(
    Sketch *sketch, const Rows *rows
) noexcept nogil:
    """Update the changed rows."""
    cdef Py_ssize_t i, number
    cdef Levels levels
    cdef int stretch, first, last, k, lane
    cdef Place place
    for i in range(sketch.changes):
        number = sketch.changed[i]
        first = stretch_at(sketch, sketch.since[number])
        # Whole pairs of stretches.
        first -= first % PAIR
        last = stretch_at(sketch, sketch.until[number] - 1)
        last += PAIR - 1 - last % PAIR
        last = min(last, sketch.stretches - 1)
        sketch.since[number] = NEVER
        place = place_of(&rows.row[number], sketch.border[first])
        for stretch in range(first, last + 1):
            next_levels(sketch, rows, number, &place, stretch, &levels)
            for k in range(sketch.lanes):
                lane = sketch.lane[k]
                change_least(
                    sketch, stretch, lane, number, levels.least[lane]
                )
                put_most(sketch, stretch, lane, number, levels.most[lane])
    sketch.changes = 0


cdef void change_least(
    Sketch *sketch, int stretch, int lane, Py_ssize_t number, int level
) noexcept nogil:
    """Set the least of a row in a stretch, and in the group of it."""
    cdef uint8_t *place = least_in(sketch, stretch, lane)
    cdef int group = stretch // GROUP, other
    cdef uint8_t *least = least_in_group(sketch, group, lane)
    cdef int old = get_level(place, number)
    put_level(place, number, level)
    if level > old and old == get_level(least, number):
        # No other stretch of the group may have the former least.
        for other in range(
            group * GROUP, min((group + 1) * GROUP, sketch.stretches)
        ):
            level = min(
                level, get_level(least_in(sketch, other, lane), number)
            )
        put_level(least, number, level)
    elif level < get_level(least, number):
        put_level(least, number, level)


cdef bint sketch_ready(
    Sketch *sketch, const Rows *rows, const Request *request
) noexcept nogil:
    """Update the sketch; False if there is none."""
    if sketch.most == 0 or rows.count == 0:
        return False
    # After many changes, other stretches may be better.
    if (
        sketch.stretches == 0 or sketch.rows != rows.count
        or sketch.writes > <uint64_t> rows.count * sketch.most
    ) and not sketch_make(sketch, rows, request.classes):
        return False
    sketch_refresh(sketch, rows)
    return sketch_draw(sketch, rows, request)


cdef bint sketch_look(
    const Sketch *sketch, const Request *request, int64_t start, int64_t end,
    Look *look,
) noexcept nogil:
    """Initialize a look; False if the sketch cannot answer the request."""
    cdef int k, lane, level
    cdef uint32_t last = NEVER if end == FOREVER else <uint32_t> end
    look.lanes = 0
    # The last lane, of whole-host entries, is part of all other lanes.
    for k in range(request.asked - 1):
        lane = request.lane[k]
        look.lane[k] = lane
        look.enough[k] = look.needed[k] = LEVELS - 1
        if lane < request.classes:
            level = level_of(sketch, lane, request.amount[lane])
            look.needed[k] = level
            if sketch.least[lane][level] < request.amount[lane]:
                level += 1
            look.enough[k] = level
        look.lanes += 1
    if look.lanes == 0:
        return False
    look.outer[0] = stretch_at(sketch, <uint32_t> start)
    look.outer[1] = stretch_at(sketch, last - 1) + 1
    look.inner[0] = look.outer[0]
    look.inner[1] = look.outer[1]
    if sketch.border[look.inner[0]] < start:
        look.inner[0] += 1
    if sketch.border[look.inner[1]] > last:
        look.inner[1] -= 1
    return True


cdef void lower_to(
    const uint8_t *level, Py_ssize_t bytes, uint8_t *low, uint8_t *high
) noexcept nogil:
    """Reduce the least levels of even and of odd rows by a column."""
    cdef Py_ssize_t i
    for i in range(bytes):
        low[i] = min(low[i], <uint8_t> (level[i] & 15))
        high[i] = min(high[i], <uint8_t> (level[i] >> 4))


cdef void look_tile(
    const Sketch *sketch, const Look *look, Py_ssize_t first,
    Py_ssize_t bytes, uint8_t *fits, uint8_t *open,
) noexcept nogil:
    """Write, by half and byte, whether rows fit, and whether they may."""
    cdef uint8_t least[2 * TILE]
    cdef uint8_t most[2 * TILE]
    cdef int k, lane, number
    memset(fits, 1, 2 * TILE)
    memset(open, 1, 2 * TILE)
    for k in range(look.lanes):
        lane = look.lane[k]
        memset(least, 15, sizeof(least))
        number = look.inner[0]
        while number < look.inner[1]:
            if number % GROUP == 0 and number + GROUP <= look.inner[1]:
                lower_to(
                    least_in_group(sketch, number // GROUP, lane) + first,
                    bytes, least, least + TILE,
                )
                number += GROUP
            else:
                lower_to(
                    least_in(sketch, number, lane) + first, bytes, least,
                    least + TILE,
                )
                number += 1
        memcpy(most, least, sizeof(least))
        for number in range(look.outer[0], look.outer[1]):
            if look.inner[0] <= number < look.inner[1]:
                continue
            lower_to(
                least_in(sketch, number, lane) + first, bytes, least,
                least + TILE,
            )
            lower_to(
                most_in(sketch, number, lane) + first, bytes, most,
                most + TILE,
            )
        at_least(least, <uint8_t> look.enough[k], fits)
        at_least(most, <uint8_t> look.needed[k], open)


cdef void at_least(
    const uint8_t *level, uint8_t least, uint8_t *still
) noexcept nogil:
    """Clear the rows of a tile whose level is too low."""
    cdef Py_ssize_t i
    for i in range(2 * TILE):
        still[i] &= level[i] >= least


cdef Py_ssize_t sketch_fits(
    Sketch *sketch, const Look *look
) noexcept nogil:
    """Write the answers of all rows that the sketch can decide.

    Write the numbers of the other rows; return their number.
    """
    cdef uint8_t fits[2 * TILE]
    cdef uint8_t open[2 * TILE]
    cdef Py_ssize_t tile, first, bytes, i, count = 0
    for tile in range((sketch.rows + 2 * TILE - 1) // (2 * TILE)):
        first = tile * TILE
        bytes = min(<Py_ssize_t> TILE, (sketch.rows + 1) // 2 - first)
        look_tile(sketch, look, first, bytes, fits, open)
        for i in range(bytes):
            sketch.answer[2 * (first + i)] = fits[i]
            sketch.answer[2 * (first + i) + 1] = fits[TILE + i]
        for i in range(2 * TILE):
            open[i] &= fits[i] ^ 1
        count = list_unsure(
            open, bytes, 2 * first, sketch.rows, sketch.unsure, count
        )
    return count


cdef Py_ssize_t list_unsure(
    const uint8_t *open, Py_ssize_t bytes, Py_ssize_t first, Py_ssize_t rows,
    int *unsure, Py_ssize_t count,
) noexcept nogil:
    """Append the numbers of the undecided rows of a tile; return the count.

    Eight bytes without such a row are skipped at once.
    """
    cdef const uint64_t *eight = <const uint64_t *> open
    cdef Py_ssize_t i, j, number
    cdef int half
    for i in range((bytes + 7) // 8):
        if eight[i] == 0 and eight[i + TILE // 8] == 0:
            continue
        for j in range(8 * i, min(8 * i + 8, bytes)):
            for half in range(2):
                number = first + 2 * j + half
                if open[half * TILE + j] and number < rows:
                    unsure[count] = <int> number
                    count += 1
    return count
