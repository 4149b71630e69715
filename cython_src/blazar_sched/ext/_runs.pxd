# SPDX-License-Identifier: Apache-2.0
"""The free runs of many rows, and the edges of the entries on them."""

from blazar_sched.ext._entries cimport Entries
from blazar_sched.ext._keys cimport Keys
from blazar_sched.ext._query cimport Query
from libc.stdint cimport int64_t


cdef bint find_runs(
    Query query, int64_t duration, int64_t first, int64_t last, Keys *runs
) noexcept


cdef bint find_edges(
    Query query, const Entries *entries, int64_t start, int64_t end,
    Keys *starts, Keys *ends,
) noexcept
