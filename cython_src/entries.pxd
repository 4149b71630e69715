# SPDX-License-Identifier: Apache-2.0
"""The registry: every entry by its id, and each owner's entries in order.

Entries lie in one array without holes. Two tables of 4 bytes a slot lead
there: by id, and by owner to the first of its entries; the entries of one
owner are a ring, in the order in which they came. Tables are open-addressed
with linear probing, and a removal closes its gap (Knuth, TAOCP 6.4, R), so
that nothing is left to clean up. All is O(1), moving the array aside.
"""

from libc.stdint cimport int32_t
from libc.stdint cimport int64_t
from libc.stdint cimport INT64_MAX as FOREVER
from libc.stdint cimport UINT32_MAX as NEVER
from libc.stdint cimport uint32_t
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc
from libc.stdlib cimport free
from libc.stdlib cimport realloc
from libc.string cimport memcpy
from memory cimport give_back
from memory cimport prefetch
from name cimport Name
from name cimport name_hash
from name cimport name_keep
from name cimport name_release
from name cimport same_name

cdef enum:
    # A flag of an entry; those below it say which of its names are text.
    WHOLE = 4

    # From so many entries on, memory is given back to the system.
    MANY = 1 << 16

    # Which name of an entry is meant.
    BY_ID = 0
    BY_OWNER = 1


cdef extern from *:
    """
    #pragma pack(push, 4)
    typedef struct {
        uint64_t name[2][2];
        uint32_t row : 29;
        uint32_t flags : 3;
        uint32_t start, end, next, previous;
    } blazar_entry;             /* 52 bytes */
    #pragma pack(pop)
    """
    ctypedef struct Entry 'blazar_entry':
        uint64_t name[2][2]     # id and owner: high and low, see name.pxd
        uint32_t row            # of its host
        uint32_t flags
        uint32_t start
        uint32_t end            # NEVER for FOREVER
        uint32_t next           # of the same owner; the last one leads to the
        uint32_t previous       # first, and the first one back to the last


cdef struct Table:
    uint32_t *slot          # position of an entry + 1; 0 where there is none
    uint64_t size
    uint64_t count


cdef struct Entries:
    int classes
    Py_ssize_t count
    Py_ssize_t size
    Entry *entry            # count
    int32_t *amounts        # count x classes
    Table table[2]          # BY_ID, BY_OWNER


cdef inline int64_t entry_end(const Entry *entry) noexcept nogil:
    return FOREVER if entry.end == NEVER else entry.end


cdef inline Name entry_name(const Entry *entry, int which) noexcept nogil:
    cdef Name name
    name.high = entry.name[which][0]
    name.low = entry.name[which][1]
    name.text = entry.flags >> which & 1
    return name


cdef inline void entry_rename(
    Entry *entry, int which, const Name *name
) noexcept nogil:
    entry.name[which][0] = name.high
    entry.name[which][1] = name.low
    entry.flags &= ~(<uint32_t> 1 << which)
    entry.flags |= <uint32_t> name.text << which


cdef inline void entry_keep(const Entry *entry) noexcept:
    """Hold on to the names of an entry."""
    cdef Name name
    for which in range(2):
        name = entry_name(entry, which)
        name_keep(&name)


cdef inline void entry_release(const Entry *entry) noexcept:
    cdef Name name
    for which in range(2):
        name = entry_name(entry, which)
        name_release(&name)


cdef inline int32_t *amounts_of(
    const Entries *entries, Py_ssize_t i
) noexcept nogil:
    return entries.amounts + i * entries.classes


cdef inline void delta_of(
    const Entries *entries, Py_ssize_t i, int sign, int32_t *delta
) noexcept nogil:
    """Write what an entry adds to each lane, times ``sign``."""
    cdef const int32_t *amounts = amounts_of(entries, i)
    cdef int lane, classes = entries.classes
    cdef bint shared = False, whole = entries.entry[i].flags & WHOLE != 0
    for lane in range(classes):
        delta[lane] = sign * amounts[lane]
        shared = shared or amounts[lane] > 0
    delta[classes] = sign * shared
    delta[classes + 1] = sign * whole


cdef inline void entries_free(Entries *entries) noexcept:
    cdef Py_ssize_t i
    for i in range(entries.count):
        entry_release(&entries.entry[i])
    free(entries.entry)
    free(entries.amounts)
    free(entries.table[BY_ID].slot)
    free(entries.table[BY_OWNER].slot)


cdef inline uint64_t entries_bytes(const Entries *entries) noexcept nogil:
    return (
        entries.size * (sizeof(Entry) + entries.classes * sizeof(int32_t))
        + (entries.table[BY_ID].size + entries.table[BY_OWNER].size)
        * sizeof(uint32_t)
    )


# Tables

cdef inline uint64_t home(const Table *table, uint64_t hash) noexcept nogil:
    """Return where a hash belongs: its upper half, as a part of the size."""
    return (hash >> 32) * table.size >> 32


cdef inline uint64_t home_of(
    const Entries *entries, int which, uint32_t i
) noexcept:
    cdef Name name = entry_name(&entries.entry[i], which)
    return home(&entries.table[which], name_hash(&name))


cdef inline uint64_t find_slot(
    const Entries *entries, int which, const Name *name
) noexcept:
    """Return the slot that leads to a name, else the empty one for it."""
    cdef const Table *table = &entries.table[which]
    cdef uint64_t slot = home(table, name_hash(name))
    cdef Name other
    while table.slot[slot] != 0:
        other = entry_name(&entries.entry[table.slot[slot] - 1], which)
        if same_name(&other, name):
            return slot
        slot = slot + 1 if slot + 1 < table.size else 0
    return slot


cdef inline Py_ssize_t entries_find(
    const Entries *entries, int which, const Name *name
) noexcept:
    """Return the entry with an id, or an owner's first, or -1."""
    if entries.table[which].count == 0:
        return -1
    cdef uint64_t slot = find_slot(entries, which, name)
    return <Py_ssize_t> entries.table[which].slot[slot] - 1


cdef inline void entries_ask(
    const Entries *entries, int which, const Name *name
) noexcept:
    """Ask for the memory that finding a name needs."""
    cdef const Table *table = &entries.table[which]
    if table.size > 0:
        prefetch(&table.slot[home(table, name_hash(name))])


cdef inline void clear_slot(
    Entries *entries, int which, uint64_t slot
) noexcept:
    """Empty a slot; whom it kept away from home moves nearer."""
    cdef Table *table = &entries.table[which]
    cdef uint64_t gap = slot, wanted
    table.count -= 1
    while True:
        slot = slot + 1 if slot + 1 < table.size else 0
        if table.slot[slot] == 0:
            break
        wanted = home_of(entries, which, table.slot[slot] - 1)
        # Does the way from home to here lead over the gap?
        if gap <= slot:
            if gap < wanted <= slot:
                continue
        elif wanted > gap or wanted <= slot:
            continue
        table.slot[gap] = table.slot[slot]
        gap = slot
    table.slot[gap] = 0


cdef inline bint resize_table(
    Entries *entries, int which, uint64_t size
) noexcept:
    """Give a table another size; False, and nothing done, without memory."""
    cdef Table *table = &entries.table[which]
    cdef Table old = table[0]
    cdef uint64_t i, slot
    table.slot = <uint32_t *> calloc(size, sizeof(uint32_t))
    if table.slot == NULL:
        table.slot = old.slot
        return False
    table.size = size
    for i in range(old.size):
        if old.slot[i] == 0:
            continue
        slot = home_of(entries, which, old.slot[i] - 1)
        while table.slot[slot] != 0:
            slot = slot + 1 if slot + 1 < table.size else 0
        table.slot[slot] = old.slot[i]
    free(old.slot)
    return True


# Entries

cdef inline uint64_t table_size(uint64_t names) noexcept nogil:
    return names * 5 // 3 + 16


cdef inline bint entries_reserve(
    Entries *entries, Py_ssize_t more
) noexcept:
    """Make room for more entries; False without memory."""
    cdef Py_ssize_t count = entries.count + more
    cdef uint64_t names
    # A large block of memory grows without being copied.
    if count > entries.size and not entries_resize(
        entries, count if more > 1 else count + count // 32 + 16
    ):
        return False
    for which in range(2):
        names = entries.table[which].count + more
        # Fuller ones have longer ways to go.
        if names * 10 > entries.table[which].size * 7 and not resize_table(
            entries, which, table_size(names)
        ):
            return False
    return True


cdef inline bint entries_resize(
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


cdef inline void entries_tidy(Entries *entries) noexcept:
    """Give back memory if much of it is not used. Without memory, do not."""
    cdef uint64_t names
    if entries.count + entries.count // 16 + 64 < entries.size:
        entries_resize(entries, entries.count + entries.count // 32 + 16)
        if entries.count > MANY:
            give_back()
    for which in range(2):
        names = entries.table[which].count
        if names * 9 // 4 + 64 < entries.table[which].size:
            resize_table(entries, which, table_size(names))


cdef inline Py_ssize_t entries_append(
    Entries *entries, const Entry *entry, const int32_t *amounts
) noexcept:
    """Register an entry that is not there; there is room for it.

    It takes over the hold that the caller has on the names.
    """
    cdef Py_ssize_t i = entries.count
    cdef Name id = entry_name(entry, BY_ID)
    cdef uint64_t slot = find_slot(entries, BY_ID, &id)
    entries.entry[i] = entry[0]
    memcpy(
        amounts_of(entries, i), amounts, entries.classes * sizeof(int32_t)
    )
    entries.count += 1
    entries.table[BY_ID].slot[slot] = <uint32_t> (i + 1)
    entries.table[BY_ID].count += 1
    link(entries, <uint32_t> i)
    return i


cdef inline void entries_remove(
    Entries *entries, Py_ssize_t i
) noexcept:
    """Take an entry out; the last one takes its place.

    The hold on its names goes to the caller.
    """
    cdef uint32_t last = <uint32_t> (entries.count - 1)
    cdef Name id = entry_name(&entries.entry[i], BY_ID)
    unlink(entries, <uint32_t> i)
    clear_slot(entries, BY_ID, find_slot(entries, BY_ID, &id))
    if <Py_ssize_t> last != i:
        move_entry(entries, last, <uint32_t> i)
    entries.count -= 1


cdef inline void entries_to_end(
    Entries *entries, Py_ssize_t i
) noexcept:
    """Make an entry the last one of its owner."""
    unlink(entries, <uint32_t> i)
    link(entries, <uint32_t> i)


cdef inline void link(Entries *entries, uint32_t i) noexcept:
    """Put an entry at the end of its owner's ring."""
    cdef Table *table = &entries.table[BY_OWNER]
    cdef Entry *entry = &entries.entry[i]
    cdef Name owner = entry_name(entry, BY_OWNER)
    cdef uint64_t slot = find_slot(entries, BY_OWNER, &owner)
    cdef uint32_t first
    if table.slot[slot] == 0:
        table.slot[slot] = i + 1
        table.count += 1
        entry.next = entry.previous = i
        return
    first = table.slot[slot] - 1
    entry.next = first
    entry.previous = entries.entry[first].previous
    entries.entry[entry.previous].next = i
    entries.entry[first].previous = i


cdef inline void unlink(Entries *entries, uint32_t i) noexcept:
    cdef Table *table = &entries.table[BY_OWNER]
    cdef Entry *entry = &entries.entry[i]
    cdef Name owner = entry_name(entry, BY_OWNER)
    cdef uint64_t slot = find_slot(entries, BY_OWNER, &owner)
    if entry.next == i:
        clear_slot(entries, BY_OWNER, slot)
        return
    if table.slot[slot] == i + 1:
        table.slot[slot] = entry.next + 1
    entries.entry[entry.previous].next = entry.next
    entries.entry[entry.next].previous = entry.previous


cdef inline void move_entry(
    Entries *entries, uint32_t i, uint32_t to
) noexcept:
    """Move an entry to a place that nothing leads to."""
    cdef Entry *entry = &entries.entry[to]
    cdef Name name
    cdef uint64_t slot
    entry[0] = entries.entry[i]
    memcpy(
        amounts_of(entries, to), amounts_of(entries, i),
        entries.classes * sizeof(int32_t),
    )
    for which in range(2):
        name = entry_name(entry, which)
        slot = find_slot(entries, which, &name)
        if entries.table[which].slot[slot] == i + 1:
            entries.table[which].slot[slot] = to + 1
    if entry.next == i:
        entry.next = entry.previous = to
    else:
        entries.entry[entry.previous].next = to
        entries.entry[entry.next].previous = to
