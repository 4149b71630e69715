# SPDX-License-Identifier: Apache-2.0
"""The sweep for the earliest start."""

from blazar_sched.ext._fit cimport Rows
from blazar_sched.ext._scan cimport Request
from libc.stdint cimport int64_t, uint32_t


cdef enum:
    FIRST_STRETCH = 7 * 24 * 3600   # seconds
    POOR = 4                        # runs a row, up to which stretches double
    SLICES = 1 << 14                # the most that are counted at a time

    NO_START = -1
    NO_MEMORY = -2


cdef struct Sweep:
    const Request *request
    const Rows *rows
    const int *numbers      # count; NULL for the first ones
    Py_ssize_t count
    Py_ssize_t enough
    int64_t duration


cdef struct Starts:
    uint32_t first          # of one run of one row, and the last one
    uint32_t last
    int i                   # which of the rows asked


cdef struct Stretch:
    int64_t low             # the starts from here on, and before that
    int64_t high
    int64_t end             # of what a start may need
    Starts *starts          # by run, those of a row after each other
    Py_ssize_t runs
    Py_ssize_t room


cdef int64_t first_start(
    const Sweep *sweep, int64_t after, int64_t last, Stretch *stretch
) noexcept nogil
