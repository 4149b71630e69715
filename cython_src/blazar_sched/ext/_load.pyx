# SPDX-License-Identifier: Apache-2.0
"""The bulk load: hosts and entries from columns, then all rows at once."""

from blazar_sched.ext._arguments cimport (
    integer,
    take_delta,
    take_name,
    take_names,
)
from blazar_sched.ext._batch cimport OVERFLOW
from blazar_sched.ext._entries cimport (
    amounts_of,
    BY_ID,
    BY_OWNER,
    delta_of,
    Entries,
    entries_append,
    entries_ask,
    entries_find,
    entries_reserve,
    Entry,
    entry_keep,
    entry_rename,
    WHOLE,
)
from blazar_sched.ext._horizon cimport short_time
from blazar_sched.ext._hosts cimport Hosts
from blazar_sched.ext._memory cimport prefetch
from blazar_sched.ext._name cimport Name, take_text
from blazar_sched.ext._row cimport LANES, Row, row_pack
from blazar_sched.ext._scan cimport AMOUNT_LIMIT, Excess
from libc.stdint cimport (
    int32_t,
    INT64_MAX as FOREVER,
    int64_t,
    UINT32_MAX as NEVER,
    uint32_t,
    uint64_t,
)
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memset

import array

from blazar_sched.ext import errors

cdef int64_t TIME_LIMIT = errors.TIME_LIMIT


cdef enum:
    AHEAD = 64              # names that are converted together
    LEAD = 8                # borders from the prefetch of one to its use


cdef list take_list(str field, values, Py_ssize_t length):
    """Return a column as a list of this length."""
    if not isinstance(values, (list, tuple)):
        values = memoryview(values).tolist()
    if len(values) != length:
        raise errors.InvalidColumn(field, len(values), length)
    return list(values)


cdef const int64_t[::1] take_column(str field, values, Py_ssize_t length):
    """Return a column of integers, without a copy if they are 64-bit."""
    cdef const int64_t[::1] column
    cdef int64_t number
    if not isinstance(values, (list, tuple)):
        buffer = memoryview(values)
        if buffer.format in ('l', 'q') and buffer.ndim == 1:
            if len(buffer) != length:
                raise errors.InvalidColumn(field, len(buffer), length)
            column = values
            return column
    values = take_list(field, values, length)
    for value in values:
        if not integer(value, -FOREVER, FOREVER, &number):
            raise refusal(field, value)
    column = array.array('q', values)
    return column


cdef refusal(str field, value):
    """Return the error for an invalid value in a column."""
    if field == 'rows':
        return errors.UnknownHost(value)
    if field in ('starts', 'ends'):
        return errors.InvalidWindow(field.removesuffix('s'), value)
    return errors.InvalidAmount(field, value)


cdef int load_hosts(Hosts hosts, names, capacity) except -1:
    cdef const int64_t[::1] flat = take_column(
        'capacity', capacity, len(names) * hosts.classes
    )
    cdef list taken = take_names('hosts', names)
    cdef int64_t own[LANES]
    cdef Py_ssize_t i
    cdef int lane
    hosts.reserve(len(taken))
    for i in range(len(taken)):
        for lane in range(hosts.classes):
            own[lane] = flat[i * hosts.classes + lane]
            if not 0 <= own[lane] <= AMOUNT_LIMIT:
                raise errors.InvalidAmount('capacity', own[lane])
        hosts.insert(i, taken[i], own)
    return 0


cdef int load_entries(
    Hosts hosts, Entries *entries, ids, owners, rows, starts, ends, amounts,
    whole,
) except -1:
    cdef Py_ssize_t i, named = 0, count = len(ids)
    cdef int classes = hosts.classes, which
    cdef const int64_t[::1] flat = take_column(
        'amounts', amounts, count * classes
    )
    cdef list owner = take_list('owners', owners, count)
    cdef const int64_t[::1] number = take_column('rows', rows, count)
    cdef const int64_t[::1] start = take_column('starts', starts, count)
    cdef const int64_t[::1] end = take_column('ends', ends, count)
    cdef list alone = take_list('whole', whole, count)
    cdef list id = list(ids)
    cdef Name name[AHEAD][2]
    cdef int32_t delta[LANES]
    cdef Entry entry
    # Doubles the room, because more parts may follow.
    if not entries_reserve(entries, max(count, entries.count)):
        raise MemoryError
    for i in range(count):
        if i % AHEAD == 0:
            # Lets other threads run: none of them sees these entries yet.
            with nogil:
                pass
            named = load_names(
                entries, id, owner, i, min(i + AHEAD, count), name
            )
        if i == named:
            # One of both names is invalid.
            take_name('id', id[i])
            take_name('owner', owner[i])
        if not 0 <= number[i] < hosts.count:
            raise errors.UnknownHost(number[i])
        if not 0 <= start[i] < TIME_LIMIT:
            raise errors.InvalidWindow('start', start[i])
        if end[i] <= start[i] or TIME_LIMIT <= end[i] < FOREVER:
            raise errors.InvalidWindow('end', end[i])
        if entries_find(entries, BY_ID, &name[i % AHEAD][BY_ID]) >= 0:
            raise errors.EntryExists(id[i])
        take_delta(&flat[i * classes], classes, bool(alone[i]), delta)
        entry.flags = WHOLE if delta[classes + 1] else 0
        for which in range(2):
            entry_rename(&entry, which, &name[i % AHEAD][which])
        entry.row = <uint32_t> number[i]
        entry.start = <uint32_t> start[i]
        entry.end = short_time(end[i])
        entry_keep(&entry)
        entries_append(entries, &entry, delta)
        hosts.count_entry(number[i], delta, 1)
    return 0


cdef Py_ssize_t load_names(
    const Entries *entries, list ids, list owners, Py_ssize_t first,
    Py_ssize_t last, Name name[AHEAD][2],
) except -1:
    """Convert some names, and prefetch their buckets.

    Return the position of the first invalid name, else ``last``.
    """
    cdef Py_ssize_t i
    cdef str text
    try:
        for i in range(first, last):
            # The list keeps a reference to the converted name.
            ids[i] = text = take_name('id', ids[i])
            take_text(text, &name[i - first][BY_ID])
            owners[i] = text = take_name('owner', owners[i])
            take_text(text, &name[i - first][BY_OWNER])
            entries_ask(entries, BY_ID, &name[i - first][BY_ID])
            entries_ask(entries, BY_OWNER, &name[i - first][BY_OWNER])
    except errors.InvalidName:
        return i
    return last


cdef int load_rows(Hosts hosts, const Entries *entries) except -1:
    """Build the steps of new rows from the entries."""
    cdef Excess excess
    cdef Py_ssize_t number
    excess.at = 0
    with nogil:
        number = build_rows(
            hosts.row, hosts.count, hosts.lanes, entries, &excess
        )
    if number == NO_ROW:
        for number in range(hosts.count):
            hosts.lower_ceiling(number)
        return 0
    if number == NO_ROOM:
        raise MemoryError
    raise errors.AmountOverflow(
        hosts.names[number], hosts.lane_names[excess.lane], excess.at
    )


cdef enum:
    NO_ROW = -1
    NO_ROOM = -2


cdef Py_ssize_t build_rows(
    Row *rows, Py_ssize_t count, int lanes, const Entries *entries,
    Excess *excess,
) noexcept nogil:
    """Return NO_ROW, NO_ROOM, or the row in which a sum overflows.

    A border is the start or the end of an entry. Its upper half is the time,
    its lower half twice the position of the entry, plus 1 for an end.
    O(n log n).
    """
    cdef Py_ssize_t i, number, failed = NO_ROW
    cdef const Entry *entry
    # By row, the end of its borders; after they are written, their begin.
    cdef Py_ssize_t *at = <Py_ssize_t *> calloc(
        count + 1, sizeof(Py_ssize_t)
    )
    cdef uint64_t *border = <uint64_t *> malloc(
        (2 * entries.count + 1) * sizeof(uint64_t)
    )
    if at == NULL or border == NULL:
        free(at)
        free(border)
        return NO_ROOM
    for i in range(entries.count):
        at[entries.entry[i].row] += 1 + (entries.entry[i].end != NEVER)
    for number in range(count):
        at[number + 1] += at[number]
    for i in range(entries.count):
        entry = &entries.entry[i]
        at[entry.row] -= 1
        border[at[entry.row]] = <uint64_t> entry.start << 32 | 2 * i
        if entry.end != NEVER:
            at[entry.row] -= 1
            border[at[entry.row]] = <uint64_t> entry.end << 32 | 2 * i + 1
    for number in range(count):
        failed = build_row(
            &rows[number], lanes, entries, border + at[number],
            at[number + 1] - at[number], excess,
        )
        if failed != NO_ROW:
            failed = number if failed == OVERFLOW else NO_ROOM
            break
    free(at)
    free(border)
    return failed


cdef int compare_borders(const void *a, const void *b) noexcept nogil:
    cdef uint64_t x = (<const uint64_t *> a)[0]
    cdef uint64_t y = (<const uint64_t *> b)[0]
    return (x > y) - (x < y)


cdef int build_row(
    Row *row, int lanes, const Entries *entries, uint64_t *border,
    Py_ssize_t count, Excess *excess,
) noexcept nogil:
    """Return NO_ROW, NO_ROOM or OVERFLOW."""
    cdef uint32_t *times = <uint32_t *> malloc(
        (count + 1) * sizeof(uint32_t)
    )
    cdef int32_t *sums = <int32_t *> malloc(
        (count + 1) * lanes * sizeof(int32_t)
    )
    cdef Py_ssize_t steps
    cdef int failed = NO_ROW
    if times == NULL or sums == NULL:
        failed = NO_ROOM
    else:
        qsort(border, count, sizeof(uint64_t), compare_borders)
        steps = add_up(lanes, entries, border, count, times, sums, excess)
        if steps < 0:
            failed = OVERFLOW
        elif not row_pack(row, lanes, times, sums, steps):
            failed = NO_ROOM
    free(times)
    free(sums)
    return failed


cdef Py_ssize_t add_up(
    int lanes, const Entries *entries, const uint64_t *border,
    Py_ssize_t count, uint32_t *times, int32_t *sums, Excess *excess,
) noexcept nogil:
    """Write the steps between ascending borders; return their number or -1."""
    cdef int64_t value[LANES]
    cdef int32_t delta[LANES]
    cdef Py_ssize_t i = 0, steps = 0, entry
    cdef uint32_t at = 0
    cdef int lane
    memset(value, 0, sizeof(value))
    while True:
        while i < count and border[i] >> 32 == at:
            if i + LEAD < count:
                entry = (border[i + LEAD] & NEVER) >> 1
                prefetch(&entries.entry[entry])
                prefetch(amounts_of(entries, entry))
            entry = (border[i] & NEVER) >> 1
            delta_of(entries, entry, -1 if border[i] & 1 else 1, delta)
            for lane in range(lanes):
                value[lane] += delta[lane]
            i += 1
        excess.lane = differs(lanes, value, sums, steps)
        if excess.lane >= 0 or steps == 0:
            times[steps] = at
            for lane in range(lanes):
                if not -AMOUNT_LIMIT <= value[lane] <= AMOUNT_LIMIT:
                    excess.lane, excess.at = lane, at
                    return -1
                sums[steps * lanes + lane] = <int32_t> value[lane]
            steps += 1
        if i == count:
            return steps
        at = <uint32_t> (border[i] >> 32)


cdef int differs(
    int lanes, const int64_t *value, const int32_t *sums, Py_ssize_t steps
) noexcept nogil:
    """Return a lane that differs from the last step; -1 if none does."""
    cdef int lane
    if steps > 0:
        for lane in range(lanes):
            if value[lane] != sums[(steps - 1) * lanes + lane]:
                return lane
    return -1
