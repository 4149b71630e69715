# SPDX-License-Identifier: Apache-2.0
"""The bulk load of hosts and entries from columns."""

from blazar_sched.ext._entries cimport Entries
from blazar_sched.ext._hosts cimport Hosts


cdef int load_hosts(Hosts hosts, names, capacity) except -1


cdef int load_entries(
    Hosts hosts, Entries *entries, ids, owners, rows, starts, ends, amounts,
    whole,
) except -1


cdef int load_rows(Hosts hosts, const Entries *entries) except -1
