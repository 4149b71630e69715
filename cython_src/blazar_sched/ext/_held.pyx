# SPDX-License-Identifier: Apache-2.0
"""The entries of an owner."""

from blazar_sched.ext._arguments cimport exact
from blazar_sched.ext._entries cimport (
    amounts_of,
    BY_ID,
    BY_OWNER,
    Entries,
    entries_find,
    Entry,
    entry_end,
    entry_keep,
    entry_name,
    entry_release,
    WHOLE,
)
from blazar_sched.ext._hosts cimport Hosts
from blazar_sched.ext._name cimport Name, name_text, take_text
from blazar_sched.ext._row cimport LANES
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy


cdef struct Holding:
    Entry entry
    int32_t amounts[LANES]
    PyObject *host


cdef list held_by(Hosts hosts, const Entries *entries, owner):
    """Return an owner's entries as tuples, in O(their number)."""
    cdef Name name
    cdef Py_ssize_t i, first, count = 0
    cdef Holding *holding
    if not isinstance(owner, str):
        return []
    owner = exact(owner)
    take_text(owner, &name)
    first = i = entries_find(entries, BY_OWNER, &name)
    if first < 0:
        return []
    while True:
        count += 1
        i = entries.entry[i].next
        if i == first:
            break
    holding = <Holding *> malloc(count * sizeof(Holding))
    if holding == NULL:
        raise MemoryError
    # Creating a tuple may start the garbage collector, which may run code that
    # changes the index. So all entries are copied first.
    for number in range(count):
        copy_holding(hosts, entries, i, &holding[number])
        i = entries.entry[i].next
    try:
        return [
            told(&holding[number], hosts.classes) for number in range(count)
        ]
    finally:
        for number in range(count):
            entry_release(&holding[number].entry)
            Py_DECREF(<object> holding[number].host)
        free(holding)


cdef void copy_holding(
    Hosts hosts, const Entries *entries, Py_ssize_t i, Holding *holding
) noexcept:
    """Copy an entry, and take references to its names and its host."""
    host = hosts.names[entries.entry[i].row]
    Py_INCREF(host)
    holding.host = <PyObject *> host
    holding.entry = entries.entry[i]
    entry_keep(&holding.entry)
    memcpy(
        holding.amounts, amounts_of(entries, i),
        entries.classes * sizeof(int32_t),
    )


cdef tuple told(const Holding *holding, int classes):
    cdef const Entry *entry = &holding.entry
    cdef Name id = entry_name(entry, BY_ID)
    return (
        name_text(&id), <object> holding.host, entry.start, entry_end(entry),
        tuple([holding.amounts[lane] for lane in range(classes)]),
        entry.flags & WHOLE != 0,
    )


cdef bint has(const Entries *entries, id):
    """Return whether an entry with this id exists."""
    cdef Name name
    if not isinstance(id, str):
        return False
    id = exact(id)
    take_text(id, &name)
    return entries_find(entries, BY_ID, &name) >= 0
