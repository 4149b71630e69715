# SPDX-License-Identifier: Apache-2.0
"""The sketch. `_sketch.pyx` describes its structure."""

from blazar_sched.ext._fit cimport Rows
from blazar_sched.ext._row cimport LANES
from blazar_sched.ext._scan cimport Request
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t


cdef enum:
    LEVELS = 16
    GROUP = 8               # stretches with a common column
    PAIR = 2                # stretches with a common column of the most
    BLOCK = 128             # rows per cache line of a column
    TILE = 2048             # bytes of a column that are read together
    SAMPLE = 1 << 16        # sampled times of steps


cdef struct Sketch:
    int most                # the limit of stretches; 0 disables the sketch
    int stretches           # number of stretches; 0 before it is built
    int pairs
    int columns             # of least, most of pairs, least of groups
    int classes             # the next lane is for whole hosts
    int lanes               # that a query requested, and so are built
    int lane[LANES]         # these lanes
    Py_ssize_t rows         # number of rows
    Py_ssize_t width        # bytes of a column
    uint32_t *border        # stretches + 1: from 0 to NEVER
    int64_t least[LANES][LEVELS]    # free amount, by class and level
    uint8_t *level[LANES]   # by lane: columns x width
    # The changed rows, their number, and the changed time of each row.
    uint32_t *changed
    Py_ssize_t changes
    uint32_t *since         # rows; NEVER for an unchanged row
    uint32_t *until
    uint64_t writes         # since it was built
    # For a query: the undecided rows, and the answers of sketch and rows.
    int *unsure
    char *answer
    char *by_rows


cdef void sketch_clear(Sketch *sketch) noexcept nogil


cdef uint64_t sketch_bytes(const Sketch *sketch) noexcept nogil


cdef void sketch_touch(
    Sketch *sketch, Py_ssize_t number, uint32_t start, uint32_t end
) noexcept nogil


# Queries

cdef struct Look:
    int inner[2]            # the stretches inside the window
    int outer[2]            # the stretches that overlap the window
    int lanes               # number of requested lanes
    int lane[LANES]         # these lanes
    int enough[LANES]       # levels on which the request certainly fits
    int needed[LANES]       # levels below which it certainly does not


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
