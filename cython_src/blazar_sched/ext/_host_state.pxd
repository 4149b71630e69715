# SPDX-License-Identifier: Apache-2.0
"""Nova's HostStates, read into C."""

cimport cython
from blazar_sched.ext._hosts cimport Hosts
from libc.stdint cimport int64_t


cdef enum:
    # The attributes of a HostState with the usage of a class.
    NOWHERE
    VCPU
    MEMORY_MB
    DISK_GB


@cython.final
cdef class HostStates:
    cdef list states
    cdef Py_ssize_t known   # the number of states with a row
    cdef int *number        # known
    cdef int64_t *room      # known x classes
    cdef char *is_known     # states
    cdef int read(
        self, Hosts hosts, const int *source, const int64_t *amounts
    ) except -1
    cdef void leave(self, Hosts hosts) noexcept
