# SPDX-License-Identifier: Apache-2.0
"""The sketch. `_sketch.pyx` describes its structure."""

from blazar_sched.ext._fit cimport Rows
from blazar_sched.ext._row cimport LANES
from blazar_sched.ext._scan cimport Request
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t


cdef enum:
    LEVELS = 16
    GROUP = 8               # stretches that have a column together
    PAIR = 2                # stretches that have one for the most
    BLOCK = 128             # rows of which a column has one cache line
    TILE = 2048             # bytes of a column that are looked at together
    SAMPLE = 1 << 16        # times of steps that the stretches are cut by


cdef struct Sketch:
    int most                # stretches that it may have, 0 for no sketch
    int stretches           # that it has; 0 until it is made
    int pairs
    int columns             # least, most of pairs, and least of groups
    int classes             # then comes a lane for whole hosts
    int lanes               # that anybody asked for, and so are drawn
    int lane[LANES]         # which
    Py_ssize_t rows         # that it knows
    Py_ssize_t width        # bytes of a column
    uint32_t *border        # stretches + 1: from 0 to NEVER
    int64_t least[LANES][LEVELS]    # that is free, by class and level
    uint8_t *level[LANES]   # by lane: columns x width
    # What changed: the rows, how many, and over what time each.
    uint32_t *changed
    Py_ssize_t changes
    uint32_t *since         # rows; NEVER for one that has not
    uint32_t *until
    uint64_t writes         # since it was made
    # For a look: the rows that it cannot tell, and answers of both kinds.
    int *unsure
    char *answer
    char *by_rows


cdef void sketch_clear(Sketch *sketch) noexcept nogil


cdef uint64_t sketch_bytes(const Sketch *sketch) noexcept nogil


cdef void sketch_touch(
    Sketch *sketch, Py_ssize_t number, uint32_t start, uint32_t end
) noexcept nogil


# Looking at it

cdef struct Look:
    int inner[2]            # the stretches from one to before another that
    int outer[2]            # are in the window, and that it touches
    int lanes               # asked: which, and of each the levels that
    int lane[LANES]         # surely fit, and those below which it surely
    int enough[LANES]       # does not
    int needed[LANES]


cdef bint sketch_ready(
    Sketch *sketch, const Rows *rows, const Request *request
) noexcept nogil


cdef bint sketch_look(
    const Sketch *sketch, const Request *request, int64_t start, int64_t end,
    Look *look,
) noexcept nogil


cdef Py_ssize_t sketch_fits(
    Sketch *sketch, const Look *look
) noexcept nogil
