# SPDX-License-Identifier: Apache-2.0
"""The registry: all entries by id, and the entries of each owner in order.

The entries are in one array without holes. Two hash tables with slots of 4
bytes refer to it: by id, and by owner to the first entry of the owner. The
entries of an owner form a ring, in the order of insertion. All operations are
O(1), except for growing the array.

A table consists of buckets of one cache line each. A name whose bucket is full
is counted in the bucket and goes to the next one. So a search ends at the
first bucket with count 0, and a removal leaves no tombstone. The bits of a
slot that no position needs are a tag from the hash: a slot with another tag
belongs to another name, and its entry need not be read.
"""

from blazar_sched.ext._memory cimport give_back, prefetch
from blazar_sched.ext._name cimport Name, name_hash, same_name
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset
from posix.stdlib cimport posix_memalign


cdef void entries_free(Entries *entries) noexcept:
    cdef Py_ssize_t i
    for i in range(entries.count):
        entry_release(&entries.entry[i])
    free(entries.entry)
    free(entries.amounts)
    free(entries.table[BY_ID].bucket)
    free(entries.table[BY_OWNER].bucket)


cdef uint64_t entries_bytes(const Entries *entries) noexcept nogil:
    return (
        entries.size * (sizeof(Entry) + entries.classes * sizeof(int32_t))
        + (entries.table[BY_ID].size + entries.table[BY_OWNER].size)
        * sizeof(Bucket)
    )


cdef inline uint32_t tag_of(uint64_t hash) noexcept nogil:
    return <uint32_t> hash << TAG_SHIFT


cdef inline void lead_to(uint32_t *slot, uint32_t i) noexcept nogil:
    """Set the entry to which the slot of a name refers."""
    slot[0] = slot[0] & ~<uint32_t> MOST | (i + 1)


cdef inline bint may_be(uint32_t slot, uint32_t tag) noexcept nogil:
    """Return whether a slot is not empty and has this tag."""
    return 0 < (slot ^ tag) <= MOST


cdef uint32_t *find_slot(
    const Entries *entries, int which, const Name *name
) noexcept:
    """Return the slot of a name, NULL if there is none."""
    cdef const Table *table = &entries.table[which]
    cdef uint64_t hash = name_hash(name), b = home(table, hash), _
    cdef uint32_t tag = tag_of(hash)
    cdef Bucket *bucket
    cdef Name other
    cdef int k
    for _ in range(table.size):
        bucket = &table.bucket[b]
        for k in range(SLOTS):
            if may_be(bucket.slot[k], tag):
                other = entry_name(
                    &entries.entry[position(bucket.slot[k])], which
                )
                if same_name(&other, name):
                    return &bucket.slot[k]
        if bucket.passed == 0:
            break
        b = next_bucket(table, b)
    return NULL


cdef Py_ssize_t entries_find(
    const Entries *entries, int which, const Name *name
) noexcept:
    """Return the entry with an id, or the first of an owner; else -1."""
    cdef const uint32_t *slot = find_slot(entries, which, name)
    return -1 if slot == NULL else position(slot[0])


cdef void entries_ask(
    const Entries *entries, int which, const Name *name
) noexcept:
    """Prefetch the bucket of a name."""
    cdef const Table *table = &entries.table[which]
    if table.size > 0:
        prefetch(&table.bucket[home(table, name_hash(name))])


cdef void entries_ask_on(
    const Entries *entries, int which, const Name *name
) noexcept:
    """Prefetch the entries that may have a name; its bucket is cached."""
    cdef const Table *table = &entries.table[which]
    cdef uint64_t hash = name_hash(name)
    cdef const Bucket *bucket
    cdef int k
    if table.size > 0:
        bucket = &table.bucket[home(table, hash)]
        if bucket.passed > 0:
            prefetch(bucket + 1)
        for k in range(SLOTS):
            if may_be(bucket.slot[k], tag_of(hash)):
                prefetch(&entries.entry[position(bucket.slot[k])])


cdef void fill_slot(
    Table *table, const Name *name, uint32_t i
) noexcept:
    """Insert a new name for an entry; the table has room for it."""
    cdef uint64_t hash = name_hash(name), b = home(table, hash)
    cdef Bucket *bucket
    cdef int k
    table.count += 1
    while True:
        bucket = &table.bucket[b]
        for k in range(SLOTS):
            if bucket.slot[k] == 0:
                bucket.slot[k] = tag_of(hash) | (i + 1)
                return
        bucket.passed += 1
        b = next_bucket(table, b)


cdef void clear_slot(
    Table *table, const Name *name, uint32_t *slot
) noexcept:
    """Remove a name, and its count in the full buckets before its own."""
    cdef uint64_t b = home(table, name_hash(name))
    cdef Bucket *bucket = &table.bucket[b]
    table.count -= 1
    slot[0] = 0
    while not &bucket.slot[0] <= slot < &bucket.slot[0] + SLOTS:
        bucket.passed -= 1
        b = next_bucket(table, b)
        bucket = &table.bucket[b]


cdef bint resize_table(
    Entries *entries, int which, uint64_t size
) noexcept:
    """Resize a table; False, and unchanged, without memory."""
    cdef Table *table = &entries.table[which]
    cdef Table old = table[0]
    cdef void *buckets = NULL
    cdef uint64_t b
    cdef Py_ssize_t i
    cdef Name name
    cdef int k
    if posix_memalign(&buckets, sizeof(Bucket), size * sizeof(Bucket)) != 0:
        return False
    memset(buckets, 0, size * sizeof(Bucket))
    table.bucket, table.size, table.count = <Bucket *> buckets, size, 0
    for b in range(old.size):
        for k in range(SLOTS):
            i = position(old.bucket[b].slot[k])
            if i >= 0:
                name = entry_name(&entries.entry[i], which)
                fill_slot(table, &name, <uint32_t> i)
    free(old.bucket)
    return True


# Entries

cdef uint64_t table_size(uint64_t names) noexcept nogil:
    """Return the number of buckets that the names fill to five sixths."""
    return names * 6 // (5 * SLOTS) + 1


cdef bint entries_reserve(
    Entries *entries, Py_ssize_t more
) noexcept:
    """Reserve room for more entries; False without memory."""
    cdef Py_ssize_t count = entries.count + more
    cdef uint64_t names
    if count > MOST:
        return False
    # realloc grows a large block without a copy.
    if count > entries.size and not entries_resize(
        entries, count if more > 1 else count + count // 64 + 16
    ):
        return False
    for which in range(2):
        names = entries.table[which].count + more
        # In a fuller table, too many names would find their bucket full.
        if (
            names > entries.table[which].size * (SLOTS - 1)
            and not resize_table(entries, which, table_size(names))
        ):
            return False
    return True


cdef bint entries_resize(
    Entries *entries, Py_ssize_t size
) noexcept nogil:
    cdef void *moved = realloc(entries.entry, size * sizeof(Entry))
    if moved == NULL:
        return False
    entries.entry = <Entry *> moved
    moved = realloc(
        entries.amounts, size * entries.classes * sizeof(int32_t)
    )
    if moved == NULL:
        return False
    entries.amounts = <int32_t *> moved
    entries.size = size
    return True


cdef void entries_tidy(Entries *entries) noexcept:
    """Shrink the array and the tables if much of them is unused."""
    cdef uint64_t names
    if entries.count + entries.count // 32 + 64 < entries.size:
        entries_resize(entries, entries.count + entries.count // 64 + 16)
        if entries.count > MANY:
            give_back()
    for which in range(2):
        names = entries.table[which].count
        if table_size(names) * 4 // 3 + 1 < entries.table[which].size:
            resize_table(entries, which, table_size(names))


cdef Py_ssize_t entries_append(
    Entries *entries, const Entry *entry, const int32_t *amounts
) noexcept:
    """Add a new entry; there is room for it.

    The references of the caller to the names are transferred.
    """
    cdef Py_ssize_t i = entries.count
    cdef Name id = entry_name(entry, BY_ID)
    entries.entry[i] = entry[0]
    memcpy(
        amounts_of(entries, i), amounts, entries.classes * sizeof(int32_t)
    )
    entries.count += 1
    fill_slot(&entries.table[BY_ID], &id, <uint32_t> i)
    link(entries, <uint32_t> i)
    return i


cdef void entries_remove(
    Entries *entries, Py_ssize_t i
) noexcept:
    """Remove an entry; the last entry moves to its position.

    The references to its names are transferred to the caller.
    """
    cdef uint32_t last = <uint32_t> (entries.count - 1)
    cdef Name id = entry_name(&entries.entry[i], BY_ID)
    unlink(entries, <uint32_t> i)
    clear_slot(&entries.table[BY_ID], &id, find_slot(entries, BY_ID, &id))
    if <Py_ssize_t> last != i:
        move_entry(entries, last, <uint32_t> i)
    entries.count -= 1


cdef void entries_to_end(
    Entries *entries, Py_ssize_t i
) noexcept:
    """Move an entry to the end of the ring of its owner."""
    unlink(entries, <uint32_t> i)
    link(entries, <uint32_t> i)


cdef void link(Entries *entries, uint32_t i) noexcept:
    """Add an entry at the end of the ring of its owner."""
    cdef Entry *entry = &entries.entry[i]
    cdef Name owner = entry_name(entry, BY_OWNER)
    cdef Py_ssize_t first = entries_find(entries, BY_OWNER, &owner)
    if first < 0:
        fill_slot(&entries.table[BY_OWNER], &owner, i)
        entry.next = entry.previous = i
        return
    entry.next = <uint32_t> first
    entry.previous = entries.entry[first].previous
    entries.entry[entry.previous].next = i
    entries.entry[first].previous = i


cdef void unlink(Entries *entries, uint32_t i) noexcept:
    cdef Entry *entry = &entries.entry[i]
    cdef Name owner = entry_name(entry, BY_OWNER)
    cdef uint32_t *slot = find_slot(entries, BY_OWNER, &owner)
    if entry.next == i:
        clear_slot(&entries.table[BY_OWNER], &owner, slot)
        return
    if position(slot[0]) == i:
        lead_to(slot, entry.next)
    entries.entry[entry.previous].next = entry.next
    entries.entry[entry.next].previous = entry.previous


cdef void move_entry(
    Entries *entries, uint32_t i, uint32_t to
) noexcept:
    """Move an entry to a position to which nothing refers."""
    cdef Entry *entry = &entries.entry[to]
    cdef Name name
    cdef uint32_t *slot
    entry[0] = entries.entry[i]
    memcpy(
        amounts_of(entries, to), amounts_of(entries, i),
        entries.classes * sizeof(int32_t),
    )
    for which in range(2):
        name = entry_name(entry, which)
        slot = find_slot(entries, which, &name)
        if position(slot[0]) == i:
            lead_to(slot, to)
    if entry.next == i:
        entry.next = entry.previous = to
    else:
        entries.entry[entry.previous].next = to
        entries.entry[entry.next].previous = to
