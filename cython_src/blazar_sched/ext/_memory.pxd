# SPDX-License-Identifier: Apache-2.0
"""Memory: asked for ahead of its use, and given back to the system."""

cdef extern from *:
    """
    #include <stdlib.h>
    #ifdef __GLIBC__
    #include <malloc.h>
    #define blazar_give_back() malloc_trim(0)
    #else
    #define blazar_give_back() 0
    #endif
    #define blazar_prefetch(address) __builtin_prefetch(address)
    """
    # So that waits for several lines of memory overlap.
    void prefetch 'blazar_prefetch'(const void *address) noexcept nogil
    # The C library keeps what is freed between blocks that are not.
    int give_back 'blazar_give_back'() noexcept nogil
