# SPDX-License-Identifier: Apache-2.0
"""The sweep for the earliest start."""

from blazar_sched.ext._fit cimport Rows
from blazar_sched.ext._scan cimport Request
from libc.stdint cimport int64_t, uint32_t


cdef enum:
    FIRST_STRETCH = 7 * 24 * 3600   # seconds
    POOR = 4                        # runs per row: few, so stretches double
    SLICES = 1 << 14                # the limit of slices counted at a time

    NO_START = -1
    NO_MEMORY = -2


cdef struct Sweep:
    const Request *request
    const Rows *rows
    const int *numbers      # count; NULL for the first rows
    Py_ssize_t count
    Py_ssize_t enough
    int64_t duration


cdef struct Starts:
    uint32_t first          # and last start of one run of one row
    uint32_t last
    int i                   # position in the requested rows


cdef struct Stretch:
    int64_t low             # the starts from low on, before high
    int64_t high
    int64_t end             # of the longest window of a start
    Starts *starts          # by run, row by row
    Py_ssize_t runs
    Py_ssize_t room


cdef int64_t first_start(
    const Sweep *sweep, int64_t after, int64_t last, Stretch *stretch
) noexcept nogil
