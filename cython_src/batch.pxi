# SPDX-License-Identifier: Apache-2.0
"""A batch of changes: taken into C, done, and undone if one fails.

Changes are first read as a whole, since that may run Python code. From the
first one done to the last one, or until all are undone, nothing does: so no
other thread sees a part of them. What fails is noted, and told afterwards.
"""

cdef enum:
    # What a change may be.
    ADD
    REMOVE
    MOVE
    CAPACITY
    DROP

    # Why one failed.
    FINE = 0
    REFUSED
    UNKNOWN_HOST
    UNKNOWN_ENTRY
    ENTRY_EXISTS
    HOST_IN_USE
    OVERFLOW
    OVER_CAPACITY
    OUT_OF_MEMORY

    # What undoes one.
    UNDO_ADD
    UNDO_REMOVE
    UNDO_MOVE
    UNDO_CAPACITY
    UNDO_INSERT
    UNDO_DROP


cdef struct Change:
    int kind
    PyObject *parts         # the change, as a tuple
    PyObject *host          # an exact str, or whatever was given for one
    PyObject *refusal       # the error in what is read after the names
    Name id
    Name owner
    bint named              # the id is a str
    int64_t start
    int64_t end
    int32_t delta[LANES]    # by lane, of an entry
    int64_t amounts[LANES]  # by class, of a capacity


cdef struct Undo:
    int kind
    PyObject *host          # UNDO_DROP: its name, held
    Py_ssize_t row
    Entry entry             # as it was
    int32_t delta[LANES]    # of it
    int64_t amounts[LANES]  # the capacities, as they were


cdef struct Worse:
    PyObject *host
    int64_t start
    int64_t end
    uint32_t lanes          # that went up: a bit for each


@cython.final
cdef class Batch:
    cdef int classes
    cdef Change *change
    cdef Py_ssize_t changes
    cdef object refusal     # the error in what follows the last change
    cdef bint judged        # capacity is
    cdef list kept          # what the changes point at
    cdef Undo *undo
    cdef Py_ssize_t undos
    cdef Py_ssize_t undo_room
    cdef Worse *worse
    cdef Py_ssize_t worses
    cdef Py_ssize_t worse_room
    # The failure: why, of which change, and where.
    cdef int failure
    cdef Py_ssize_t failed
    cdef PyObject *where
    cdef Excess excess

    def __cinit__(self, int classes, bint judged):
        self.classes = classes
        self.judged = judged
        self.kept = []

    def __dealloc__(self):
        free(self.change)
        free(self.undo)
        free(self.worse)

    # Reading

    cdef int read(self, changes) except -1:
        """Read changes, up to the first that cannot be."""
        cdef tuple all_changes = tuple(changes)
        self.change = <Change *> calloc(
            len(all_changes) + 1, sizeof(Change)
        )
        if self.change == NULL:
            raise MemoryError
        for each in all_changes:
            try:
                self.read_one(each, &self.change[self.changes])
            except errors.TimelineError as error:
                self.refusal = error
                break
            self.changes += 1
        return 0

    cdef int read_one(self, given, Change *change) except -1:
        if not isinstance(given, (tuple, list)) or not given:
            raise errors.InvalidChange(given)
        cdef tuple parts = tuple(given)
        cdef Py_ssize_t size = len(parts)
        kind = parts[0]
        self.kept.append(parts)
        change.parts = <PyObject *> parts
        if kind == 'add' and size == 8:
            self.read_add(parts, change)
        elif kind == 'remove' and size == 2:
            change.kind = REMOVE
            self.read_id(parts[1], change)
        elif kind == 'move' and size == 5:
            change.kind = MOVE
            self.read_id(parts[1], change)
            self.read_host(parts[2], change)
            self.read_window(parts[3], parts[4], change)
        elif kind == 'capacity' and size == 3:
            change.kind = CAPACITY
            self.read_host(take_name('host', parts[1]), change)
            take_amounts(
                'capacity', parts[2], self.classes, 0, change.amounts
            )
        elif kind == 'drop' and size == 2:
            change.kind = DROP
            self.read_host(parts[1], change)
        else:
            raise errors.InvalidChange(given)
        return 0

    cdef int read_add(self, tuple parts, Change *change) except -1:
        cdef int64_t amounts[LANES]
        change.kind = ADD
        self.read_id(take_name('id', parts[1]), change)
        take_text(
            <str> self.keep(take_name('owner', parts[2])), &change.owner
        )
        self.read_host(parts[3], change)
        self.read_window(parts[4], parts[5], change)
        if change.refusal != NULL:
            return 0
        try:
            take_amounts(
                'amounts', parts[6], self.classes, -AMOUNT_LIMIT, amounts
            )
            take_delta(amounts, self.classes, bool(parts[7]), change.delta)
        except errors.TimelineError as error:
            change.refusal = self.keep(error)
        return 0

    cdef int read_id(self, id, Change *change) except -1:
        change.named = isinstance(id, str)
        if change.named:
            take_text(<str> self.keep(exact(id)), &change.id)
        return 0

    cdef int read_host(self, host, Change *change) except -1:
        if isinstance(host, str):
            host = exact(host)
        change.host = self.keep(host)
        return 0

    cdef int read_window(self, start, end, Change *change) except -1:
        # Who is not there is told first.
        try:
            change.start = take_time('start', start)
            change.end = take_end('end', change.start, end)
        except errors.TimelineError as error:
            change.refusal = self.keep(error)
        return 0

    cdef PyObject *keep(self, thing) except NULL:
        self.kept.append(thing)
        return <PyObject *> thing

    # Noting

    cdef bint fail(self, int failure) noexcept:
        self.failure = failure
        return False

    cdef Undo *note(self, int kind, Py_ssize_t row) noexcept:
        """Return the note of what undoes a change; NULL without memory."""
        cdef void *moved
        cdef Undo *undo
        if self.undos == self.undo_room:
            self.undo_room = 2 * self.undo_room + 2
            moved = realloc(self.undo, self.undo_room * sizeof(Undo))
            if moved == NULL:
                self.undo_room = self.undos
                self.fail(OUT_OF_MEMORY)
                return NULL
            self.undo = <Undo *> moved
        undo = &self.undo[self.undos]
        self.undos += 1
        undo.kind = kind
        undo.row = row
        undo.host = NULL
        return undo

    cdef bint note_worse(
        self, host, int64_t start, int64_t end, uint32_t lanes
    ) noexcept:
        """Note lanes that went up, to judge them after the last change."""
        cdef void *moved
        if lanes == 0 or not self.judged:
            return True
        if self.worses == self.worse_room:
            self.worse_room = 2 * self.worse_room + 2
            moved = realloc(self.worse, self.worse_room * sizeof(Worse))
            if moved == NULL:
                self.worse_room = self.worses
                return self.fail(OUT_OF_MEMORY)
            self.worse = <Worse *> moved
        self.worse[self.worses] = Worse(
            <PyObject *> host, start, end, lanes
        )
        self.worses += 1
        return True

    cdef void take_back(self) noexcept:
        """Forget the last note: what it would undo was not done."""
        self.undos -= 1

    # Telling

    cdef tell(self, tuple lanes):
        """Return the error for what failed, None if nothing did."""
        cdef tuple parts
        if self.failure == FINE:
            return self.refusal
        if self.failure == OUT_OF_MEMORY:
            return MemoryError()
        where = <object> self.where if self.where != NULL else None
        if self.failure == OVERFLOW:
            return errors.AmountOverflow(
                where, lanes[self.excess.lane], self.excess.at
            )
        if self.failure == OVER_CAPACITY:
            return errors.OverCapacity(
                where, lanes[self.excess.lane], self.excess.at,
                self.excess.short,
            )
        if self.failure == REFUSED:
            return <object> self.change[self.failed].refusal
        parts = <tuple> self.change[self.failed].parts
        if self.failure == UNKNOWN_HOST:
            return errors.UnknownHost(parts[{ADD: 3, MOVE: 2, DROP: 1}[
                self.change[self.failed].kind
            ]])
        if self.failure == HOST_IN_USE:
            return errors.HostInUse(parts[1])
        if self.failure == ENTRY_EXISTS:
            return errors.EntryExists(parts[1])
        return errors.UnknownEntry(parts[1])
