# SPDX-License-Identifier: Apache-2.0
"""Asking for memory ahead of its use, so that waits for it overlap."""

cdef extern from *:
    """
    #define blazar_prefetch(address) __builtin_prefetch(address)
    """
    void prefetch 'blazar_prefetch'(const void *address) noexcept nogil
