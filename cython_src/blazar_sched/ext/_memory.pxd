# SPDX-License-Identifier: Apache-2.0
"""Memory: prefetching it, and returning it to the system."""

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
    # Several cache lines can be on their way at the same time.
    void prefetch 'blazar_prefetch'(const void *address) noexcept nogil
    # The C library keeps free memory between used blocks.
    int give_back 'blazar_give_back'() noexcept nogil
