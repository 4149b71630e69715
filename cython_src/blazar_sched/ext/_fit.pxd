# SPDX-License-Identifier: Apache-2.0
"""Whether a request fits many rows over one window.

The functions with a body run once per step, row or entry:
`_timeline_index.pyx` says why they are inline.
"""

from blazar_sched.ext._row cimport Row
from blazar_sched.ext._scan cimport Place, Request
from libc.stdint cimport int64_t


cdef enum:
    TURN = 32               # rows that are processed together


cdef struct Rows:
    const Row *row
    const int64_t *capacity     # rows x classes
    Py_ssize_t count


cdef inline Py_ssize_t number_of(
    const int *numbers, Py_ssize_t i
) noexcept nogil:
    return i if numbers == NULL else numbers[i]


cdef struct Turn:
    Py_ssize_t count
    const Row *row[TURN]
    int64_t at[TURN]
    Place place[TURN]       # of the step at that time


cdef void turn_to(
    Turn *turn, const Rows *rows, const int *numbers, Py_ssize_t first,
    Py_ssize_t count, int64_t at
) noexcept nogil


cdef void ask_directories(const Turn *turn) noexcept nogil


cdef void find_places(Turn *turn, int lanes) noexcept nogil


cdef void look_on(Turn *turn, int lanes, int64_t end) noexcept nogil


cdef void fit(
    const Request *request, const Rows *rows, const int *numbers,
    const int64_t *room, Py_ssize_t count, int64_t start, int64_t end,
    char *answer,
) noexcept nogil
