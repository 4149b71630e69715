# SPDX-License-Identifier: Apache-2.0
"""The registry of entries. `_entries.pyx` describes its structure.

The functions with a body run once per step, row or entry:
`_timeline_index.pyx` says why they are inline.
"""

from blazar_sched.ext._name cimport Name, name_keep, name_release
from libc.stdint cimport (
    int32_t,
    INT64_MAX as FOREVER,
    int64_t,
    UINT32_MAX as NEVER,
    uint32_t,
    uint64_t,
)


cdef enum:
    # A flag of an entry. The lower flags mark the names that are text.
    WHOLE = 4

    # From this number of entries on, memory is returned to the system.
    MANY = 1 << 16

    SLOTS = 15              # per bucket
    TAG_SHIFT = 26          # the lowest bit of the tag of a slot
    MOST = (1 << TAG_SHIFT) - 1     # the limit of entries

    # The names of an entry.
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
        uint64_t name[2][2]     # id and owner: high and low, see _name.pxd
        uint32_t row            # of its host
        uint32_t flags
        uint32_t start
        uint32_t end            # NEVER for FOREVER
        uint32_t next           # of the same owner; after the last one, the
        uint32_t previous       # first; before the first one, the last


cdef struct Bucket:
    uint32_t slot[SLOTS]    # position of an entry + 1, and tag; 0 for none
    uint32_t passed         # the number of names that found the bucket full


cdef struct Table:
    Bucket *bucket          # size
    uint64_t size
    uint64_t count          # names


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
    """Take references to the names of an entry."""
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
    """Write what an entry adds to each lane, multiplied by ``sign``."""
    cdef const int32_t *amounts = amounts_of(entries, i)
    cdef int lane, classes = entries.classes
    cdef bint shared = False, whole = entries.entry[i].flags & WHOLE != 0
    for lane in range(classes):
        delta[lane] = sign * amounts[lane]
        shared = shared or amounts[lane] > 0
    delta[classes] = sign * shared
    delta[classes + 1] = sign * whole


cdef void entries_free(Entries *entries) noexcept


cdef uint64_t entries_bytes(const Entries *entries) noexcept nogil


# Tables

cdef inline uint64_t home(const Table *table, uint64_t hash) noexcept nogil:
    """Return the bucket of a hash: its upper half, scaled to the size."""
    return (hash >> 32) * table.size >> 32


cdef inline uint64_t next_bucket(
    const Table *table, uint64_t b
) noexcept nogil:
    """Return the bucket to search after a full bucket."""
    return b + 1 if b + 1 < table.size else 0


cdef inline Py_ssize_t position(uint32_t slot) noexcept nogil:
    return <Py_ssize_t> (slot & MOST) - 1


cdef uint32_t *find_slot(
    const Entries *entries, int which, const Name *name
) noexcept


cdef Py_ssize_t entries_find(
    const Entries *entries, int which, const Name *name
) noexcept


cdef void entries_ask(
    const Entries *entries, int which, const Name *name
) noexcept


cdef void entries_ask_on(
    const Entries *entries, int which, const Name *name
) noexcept


cdef bint entries_reserve(
    Entries *entries, Py_ssize_t more
) noexcept


cdef void entries_tidy(Entries *entries) noexcept


cdef Py_ssize_t entries_append(
    Entries *entries, const Entry *entry, const int32_t *amounts
) noexcept


cdef void entries_remove(
    Entries *entries, Py_ssize_t i
) noexcept


cdef void entries_to_end(
    Entries *entries, Py_ssize_t i
) noexcept
