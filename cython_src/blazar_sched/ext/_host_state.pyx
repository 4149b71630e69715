# SPDX-License-Identifier: Apache-2.0
"""Nova's HostStates, read into C; see blazar_sched.ext.host_state.

Nova creates HostStates for each request, and passes the same objects to every
filter and weigher and for each instance of the request. So each HostState is
tagged with its row when it is first read. The index keeps no reference to a
HostState.
"""

cimport cython
from blazar_sched.ext._arguments cimport exact, integer
from blazar_sched.ext._hosts cimport Hosts
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from blazar_sched.ext import errors

cdef extern from 'Python.h':
    object PyObject_GenericGetDict(object thing, void *context)

cdef int64_t FIGURE_LIMIT = errors.FIGURE_LIMIT


@cython.final
@cython.no_gc
cdef class Seen:
    """The tag: ``row`` is valid for this numbering of the rows."""

    cdef Hosts hosts
    cdef Py_ssize_t numbering
    cdef Py_ssize_t row
    cdef object free_disk_mb    # when first read


@cython.final
cdef class HostStates:
    def __cinit__(self, list states, int classes):
        cdef Py_ssize_t count = len(states)
        self.states = states
        self.number = <int *> malloc((count + 1) * sizeof(int))
        self.room = <int64_t *> malloc(
            (count * classes + 1) * sizeof(int64_t)
        )
        self.is_known = <char *> malloc(count + 1)
        if (
            self.number == NULL or self.room == NULL or self.is_known == NULL
        ):
            raise MemoryError

    def __dealloc__(self):
        free(self.number)
        free(self.room)
        free(self.is_known)

    cdef int read(
        self, Hosts hosts, const int *source, const int64_t *amounts
    ) except -1:
        """Read the row and the usage of each HostState; runs Python code.

        :param source: by class, the attribute with the usage.
        :param amounts: the usage of classes with amount 0 is not read; NULL
            to read all classes.
        """
        cdef Py_ssize_t i
        cdef int64_t *used
        cdef Seen seen
        cdef dict own
        cdef int lane
        self.known = 0
        for i in range(len(self.states)):
            state = self.states[i]
            own = PyObject_GenericGetDict(state, NULL)
            seen = see(hosts, state, own)
            self.is_known[i] = seen.row >= 0
            if seen.row < 0:
                continue
            self.number[self.known] = <int> seen.row
            used = self.room + self.known * hosts.classes
            for lane in range(hosts.classes):
                used[lane] = 0
                if amounts == NULL or amounts[lane] > 0:
                    used[lane] = used_now(source[lane], state, own, seen)
            self.known += 1
        return 0

    cdef void leave(self, Hosts hosts) noexcept:
        """Replace the usage by the capacity that remains."""
        cdef Py_ssize_t i
        cdef int classes = hosts.classes, lane
        for i in range(self.known):
            for lane in range(classes):
                self.room[i * classes + lane] = (
                    hosts.capacity[self.number[i] * classes + lane]
                    - self.room[i * classes + lane]
                )


def unconfirmed(host_states, dict on_hosts, room, int width):
    """Return the positions of the HostStates that contradict the replica.

    See blazar_sched.ext.host_state. Each instance of a host costs a lookup in
    a dict of the HostState.
    """
    cdef const int64_t[::1] left = room
    cdef list states = list(host_states), found = []
    cdef dict own
    cdef Py_ssize_t i
    if left.shape[0] != len(states) * width:
        raise errors.InvalidAmount('room', room)
    for i in range(len(states)):
        state = states[i]
        own = PyObject_GenericGetDict(state, NULL)
        on = on_hosts.get(attribute(state, own, 'uuid'))
        if on is not None and not confirms(
            attribute(state, own, 'instances'), on, left, i * width, width
        ):
            found.append(i)
    return found


cdef bint confirms(
    named, on, const int64_t[::1] left, Py_ssize_t first, int width
) except -1:
    cdef list most = on.room
    cdef set given_back = on.given_back
    cdef int lane
    for lane in range(width):
        if left[first + lane] > <int64_t> most[lane]:
            return False
    if named is None:
        named = ()
    for uuid in given_back:
        if uuid not in named:
            return False
    if on.reserved:
        instances = on.instances
        for uuid in tuple(named):
            if uuid not in instances:
                return False
    return True


cdef attribute(state, dict own, str name):
    """Return an attribute, from the instance dict if it is there."""
    cdef PyObject *value = PyDict_GetItem(own, name)
    return <object> value if value != NULL else getattr(state, name)


cdef int64_t number(state, dict own, str name) except? -1:
    """Return an integer attribute, 0 for None.

    The limit is far below that of int64_t, so that no sum overflows.
    """
    cdef int64_t found = 0
    value = attribute(state, own, name)
    if value is not None and not integer(
        value, -FIGURE_LIMIT, FIGURE_LIMIT, &found
    ):
        raise errors.InvalidAmount(name, value)
    return found


cdef Seen see(Hosts hosts, state, dict own):
    """Return the tag of a HostState, a new one if it is outdated."""
    cdef PyObject *tag = PyDict_GetItem(own, 'blazar_sched_seen')
    cdef Seen seen
    if tag != NULL and type(<object> tag) is Seen:
        seen = <Seen> <object> tag
        if seen.hosts is hosts and seen.numbering == hosts.numbering:
            return seen
    else:
        seen = Seen.__new__(Seen)
        own['blazar_sched_seen'] = seen
    uuid = attribute(state, own, 'uuid')
    seen.row = hosts.number(exact(uuid) if isinstance(uuid, str) else uuid)
    seen.hosts = hosts
    seen.numbering = hosts.numbering
    return seen


cdef int64_t used_now(int source, state, dict own, Seen seen) except? -1:
    """Return the usage of a class; 0 for a class that HostState lacks."""
    if source == VCPU:
        return number(state, own, 'vcpus_used')
    if source == MEMORY_MB:
        return (
            number(state, own, 'total_usable_ram_mb')
            - number(state, own, 'free_ram_mb')
        )
    if source == DISK_GB:
        return disk_gb_used(state, own, seen)
    return 0


@cython.cdivision(False)
cdef int64_t disk_gb_used(state, dict own, Seen seen) except? -1:
    # Nova's consume_from_request decreases free_disk_mb but does not change
    # disk_mb_used. A HostState exists for one request only, so the decrease
    # of free_disk_mb since it was first read is the usage of that request.
    cdef int64_t free_mb = number(state, own, 'free_disk_mb'), first
    if seen.free_disk_mb is None:
        seen.free_disk_mb = free_mb
    first = seen.free_disk_mb
    cdef int64_t used = number(state, own, 'disk_mb_used')
    used += max(first - free_mb, <int64_t> 0)
    return -(-used // 1024)
