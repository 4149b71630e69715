# SPDX-License-Identifier: Apache-2.0
"""Names in 16 bytes: the ids and owners of entries.

A UUID in its canonical form (36 characters, lower case) is kept as the number
that it is. Any other name is a counted reference to its Python string, beside
the hash that Python has of it. Nothing here runs Python code.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int8_t
from libc.stdint cimport uint64_t

cdef extern from 'Python.h':
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    void *PyUnicode_DATA(object text)
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 maxchar)
    int PyUnicode_Compare(PyObject *a, PyObject *b)
    Py_hash_t PyObject_Hash(object text)


cdef struct Name:
    uint64_t high           # of a UUID; of any other name, its hash
    uint64_t low            # of a UUID; of any other name, its address
    bint text               # it is any other name


cdef inline int8_t hex_digit(unsigned char c) noexcept nogil:
    """Return the value of a lower-case digit, or -1."""
    if c'0' <= c <= c'9':
        return c - c'0'
    if c'a' <= c <= c'f':
        return c - c'a' + 10
    return -1


cdef inline bint dash_at(int i) noexcept nogil:
    return i == 8 or i == 13 or i == 18 or i == 23


cdef inline bint read_uuid(
    const unsigned char *text, Name *name
) noexcept nogil:
    """Take 36 characters, unless they are no canonical UUID."""
    cdef uint64_t half[2]
    cdef int i, digits = 0
    cdef int8_t digit
    half[0] = half[1] = 0
    for i in range(36):
        if dash_at(i):
            if text[i] != c'-':
                return False
            continue
        digit = hex_digit(text[i])
        if digit < 0:
            return False
        half[digits >> 4] = half[digits >> 4] << 4 | <uint64_t> digit
        digits += 1
    name.high, name.low, name.text = half[0], half[1], False
    return True


cdef inline void take_text(str text, Name *name) noexcept:
    """Take an exact str. The name borrows it: see name_keep."""
    if (
        PyUnicode_IS_COMPACT_ASCII(text) and PyUnicode_GET_LENGTH(text) == 36
        and read_uuid(<const unsigned char *> PyUnicode_DATA(text), name)
    ):
        return
    name.high = <uint64_t> PyObject_Hash(text)
    name.low = <uint64_t> <size_t> <PyObject *> text
    name.text = True


cdef inline str name_text(const Name *name):
    """Return a name as the str that it was."""
    if name.text:
        return <str> <PyObject *> <size_t> name.low
    cdef str text = PyUnicode_New(36, 127)
    cdef unsigned char *to = <unsigned char *> PyUnicode_DATA(text)
    cdef int i, digits = 0
    cdef uint64_t half, digit
    for i in range(36):
        if dash_at(i):
            to[i] = c'-'
            continue
        half = name.high if digits < 16 else name.low
        digit = half >> (60 - 4 * (digits & 15)) & 15
        to[i] = <unsigned char> (
            digit + c'0' if digit < 10 else digit - 10 + c'a'
        )
        digits += 1
    return text


cdef inline void name_keep(const Name *name) noexcept:
    """Hold on to what a name borrows."""
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
    """Return 64 well-mixed bits; the mixer is that of SplitMix64."""
    cdef uint64_t bits = name.high
    if not name.text:
        bits ^= name.low * <uint64_t> 0x9e3779b97f4a7c15
    bits = (bits ^ bits >> 30) * <uint64_t> 0xbf58476d1ce4e5b9
    bits = (bits ^ bits >> 27) * <uint64_t> 0x94d049bb133111eb
    return bits ^ bits >> 31
