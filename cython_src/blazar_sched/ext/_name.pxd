# SPDX-License-Identifier: Apache-2.0
"""The ids and owners of entries, in 16 bytes each.

The functions with a body run once per step, row or entry:
`_timeline_index.pyx` says why they are inline.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t


cdef extern from 'Python.h':
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    void *PyUnicode_DATA(object text)
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 maxchar)
    int PyUnicode_Compare(PyObject *a, PyObject *b)
    Py_hash_t PyObject_Hash(object text)


cdef struct Name:
    uint64_t high           # bytes of a UUID; or the hash of another name
    uint64_t low            # and the address of its str
    bint text               # not a UUID


cdef void take_text(str text, Name *name) noexcept


cdef str name_text(const Name *name)


cdef inline void name_keep(const Name *name) noexcept:
    """Take a reference to the str of a name."""
    if name.text:
        Py_INCREF(<object> <PyObject *> <size_t> name.low)


cdef inline void name_release(const Name *name) noexcept:
    if name.text:
        Py_DECREF(<object> <PyObject *> <size_t> name.low)


cdef inline bint same_name(const Name *a, const Name *b) noexcept:
    if a.high != b.high or a.text != b.text:
        return False
    if a.low == b.low:
        return True
    return a.text and PyUnicode_Compare(
        <PyObject *> <size_t> a.low, <PyObject *> <size_t> b.low
    ) == 0


cdef inline uint64_t name_hash(const Name *name) noexcept nogil:
    """Return 64 well-mixed bits, by the mixer of SplitMix64."""
    cdef uint64_t bits = name.high
    if not name.text:
        bits ^= name.low * <uint64_t> 0x9e3779b97f4a7c15
    bits = (bits ^ bits >> 30) * <uint64_t> 0xbf58476d1ce4e5b9
    bits = (bits ^ bits >> 27) * <uint64_t> 0x94d049bb133111eb
    return bits ^ bits >> 31
