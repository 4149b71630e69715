# SPDX-License-Identifier: Apache-2.0
"""Names in 16 bytes: the ids and owners of entries.

A UUID in canonical form (36 characters, lower case) is stored as a number. Any
other name is stored as a counted reference to its str, with the hash of the
str. No function here runs Python code.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t, uint8_t
from libc.string cimport memcpy


cdef bint read_uuid(const uint8_t *text, Name *name) noexcept nogil:
    """Convert 36 characters; False unless they are a canonical UUID."""
    cdef uint8_t digit[32]
    cdef uint8_t both[16]
    cdef uint8_t wrong = (
        (text[8] ^ c'-') | (text[13] ^ c'-') | (text[18] ^ c'-')
        | (text[23] ^ c'-')
    )
    cdef uint8_t number, letter
    cdef int i
    memcpy(digit, text, 8)
    memcpy(digit + 8, text + 9, 4)
    memcpy(digit + 12, text + 14, 4)
    memcpy(digit + 16, text + 19, 4)
    memcpy(digit + 20, text + 24, 12)
    # Without branches, so that compilers can vectorize the loop.
    for i in range(32):
        number = <uint8_t> (digit[i] - c'0')
        letter = <uint8_t> (digit[i] - c'a')
        wrong |= (number > 9) & (letter > 5)
        digit[i] = number if number < 10 else <uint8_t> (letter + 10)
    for i in range(16):
        both[i] = <uint8_t> (digit[2 * i] << 4 | digit[2 * i + 1])
    memcpy(&name.high, both, 8)
    memcpy(&name.low, both + 8, 8)
    name.text = False
    return not wrong


cdef void take_text(str text, Name *name) noexcept:
    """Convert an exact str. The name borrows it: see name_keep."""
    if (
        PyUnicode_IS_COMPACT_ASCII(text) and PyUnicode_GET_LENGTH(text) == 36
        and read_uuid(<const uint8_t *> PyUnicode_DATA(text), name)
    ):
        return
    name.high = <uint64_t> PyObject_Hash(text)
    name.low = <uint64_t> <size_t> <PyObject *> text
    name.text = True


cdef str name_text(const Name *name):
    """Return a name as a str."""
    if name.text:
        return <str> <PyObject *> <size_t> name.low
    cdef str text = PyUnicode_New(36, 127)
    cdef uint8_t *to = <uint8_t *> PyUnicode_DATA(text)
    cdef uint8_t both[16]
    cdef uint8_t digit
    cdef int i
    memcpy(both, &name.high, 8)
    memcpy(both + 8, &name.low, 8)
    for i in range(32):
        if i == 8 or i == 12 or i == 16 or i == 20:
            to[0] = c'-'
            to += 1
        digit = both[i >> 1] >> (0 if i & 1 else 4) & 15
        to[0] = digit + c'0' if digit < 10 else digit - 10 + c'a'
        to += 1
    return text
