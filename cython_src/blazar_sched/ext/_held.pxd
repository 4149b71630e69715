# SPDX-License-Identifier: Apache-2.0
"""The entries of an owner."""

from blazar_sched.ext._entries cimport Entries
from blazar_sched.ext._hosts cimport Hosts


cdef list held_by(Hosts hosts, const Entries *entries, owner)


cdef bint has(const Entries *entries, id)
