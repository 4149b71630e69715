# SPDX-License-Identifier: Apache-2.0
"""A list of keys, which are sorted once all are there."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset


cdef enum:
    DIGITS = 8
    BASE = 256


cdef inline int digit_of(uint64_t key, int digit) noexcept nogil:
    return <int> (key >> 8 * digit & (BASE - 1))


cdef bint keys_add(Keys *keys, uint64_t key) noexcept nogil:
    """Append a key; False without memory."""
    cdef Py_ssize_t room = 2 * keys.room + 64
    cdef void *moved
    if keys.count == keys.room:
        moved = realloc(keys.key, room * sizeof(uint64_t))
        if moved == NULL:
            return False
        keys.key, keys.room = <uint64_t *> moved, room
    keys.key[keys.count] = key
    keys.count += 1
    return True


cdef bint keys_sort(Keys *keys) noexcept nogil:
    """Sort the keys, digit by digit; False without memory.

    Digits that all keys have in common, as most times have, take no turn.
    """
    cdef Py_ssize_t place[DIGITS][BASE]
    cdef Py_ssize_t i, count = keys.count, before, own
    cdef int digit, value
    cdef uint64_t *other
    if count == 0:
        return True
    other = <uint64_t *> malloc(count * sizeof(uint64_t))
    if other == NULL:
        return False
    memset(place, 0, sizeof(place))
    for i in range(count):
        for digit in range(DIGITS):
            place[digit][digit_of(keys.key[i], digit)] += 1
    for digit in range(DIGITS):
        if place[digit][digit_of(keys.key[0], digit)] == count:
            continue
        before = 0
        for value in range(BASE):
            own = place[digit][value]
            place[digit][value] = before
            before += own
        for i in range(count):
            value = digit_of(keys.key[i], digit)
            other[place[digit][value]] = keys.key[i]
            place[digit][value] += 1
        keys.key, other, keys.room = other, keys.key, count
    free(other)
    return True


cdef bint keys_sort_distinct(Keys *keys) noexcept nogil:
    """Sort the keys, and keep one of equal keys; False without memory."""
    cdef Py_ssize_t i, kept = 0
    if not keys_sort(keys):
        return False
    for i in range(keys.count):
        if kept == 0 or keys.key[i] != keys.key[kept - 1]:
            keys.key[kept] = keys.key[i]
            kept += 1
    keys.count = kept
    return True


cdef void keys_free(Keys *keys) noexcept nogil:
    free(keys.key)
    keys.key, keys.count, keys.room = NULL, 0, 0
