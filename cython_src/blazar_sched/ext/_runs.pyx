# SPDX-License-Identifier: Apache-2.0
"""The free runs of many rows, and the edges of the entries on them.

A run is a key: the begin in the upper half, the end in the lower half. So
sorted keys are runs in the order of their begins.
"""

from blazar_sched.ext._entries cimport Entries, Entry, entry_end
from blazar_sched.ext._fit cimport number_of
from blazar_sched.ext._horizon cimport short_time
from blazar_sched.ext._keys cimport Keys, keys_add
from blazar_sched.ext._query cimport Query
from blazar_sched.ext._row cimport LANES, Row
from blazar_sched.ext._scan cimport next_change, Place, place_of
from libc.stdint cimport (
    int32_t,
    INT64_MAX as FOREVER,
    int64_t,
    uint64_t,
)
from libc.stdlib cimport calloc, free


cdef bint find_runs(
    Query query, int64_t duration, int64_t first, int64_t last, Keys *runs
) noexcept:
    """Collect the runs of the requested rows; False without memory.

    :param first: runs before this time are left out, and cut
    :param last: the last begin of a run
    """
    cdef Py_ssize_t i
    for i in range(query.count):
        if not find_runs_of(query, i, duration, first, last, runs):
            return False
    return True


cdef bint find_runs_of(
    Query query, Py_ssize_t i, int64_t duration, int64_t first, int64_t last,
    Keys *runs,
) noexcept:
    """Collect the runs of one row; False without memory."""
    cdef int32_t limit[LANES]
    cdef const Row *row = query.look(i, limit)
    cdef Place place = place_of(row, first)
    cdef int64_t begin, end = first
    while end != FOREVER:
        begin = next_change(
            &query.request, limit, row, &place, end, FOREVER, False
        )
        if begin > last:
            break
        end = next_change(
            &query.request, limit, row, &place, begin, FOREVER, True
        )
        if (
            (end == FOREVER or end - begin >= duration)
            and not keys_add(runs, <uint64_t> begin << 32 | short_time(end))
        ):
            return False
    return True


cdef bint find_edges(
    Query query, const Entries *entries, int64_t start, int64_t end,
    Keys *starts, Keys *ends,
) noexcept:
    """Collect the starts and ends in a window; False without memory."""
    cdef char *is_asked = <char *> calloc(query.rows.count + 1, 1)
    cdef const Entry *entry
    cdef Py_ssize_t i
    cdef bint done = is_asked != NULL
    if done:
        for i in range(query.count):
            is_asked[number_of(query.numbers, i)] = True
        for i in range(entries.count):
            entry = &entries.entry[i]
            if not is_asked[entry.row]:
                continue
            if start <= entry.start < end:
                done &= keys_add(starts, entry.start)
            if start <= entry_end(entry) < end:
                done &= keys_add(ends, entry.end)
    free(is_asked)
    return done
