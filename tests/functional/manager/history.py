# SPDX-License-Identifier: Apache-2.0
"""Histories of one lease: concurrent steps, and their results.

A history is explained if its steps can be put into one order in which each
step comes after all steps that were over when it began, and in which a simple
model of a lease gives every recorded result.
"""

import contextlib
import dataclasses
import itertools
import threading
from typing import Any

from blazar_sched.domain import exception

BUSY = exception.InvalidStatus
GONE = exception.LeaseNotFound


@dataclasses.dataclass(frozen=True)
class Lease:
    """The model: a lease without reservations, independent of time.

    `due` are the events whose time has come, `doing` is the event in progress.
    """

    name: str
    status: str
    due: frozenset[str]
    doing: str | None = None


@dataclasses.dataclass(frozen=True)
class Step:
    """An atomic step between two ticks, with its result `answer`."""

    name: str
    argument: Any
    answer: Any
    began: int
    over: int


def rename(lease, name):
    if lease is None:
        return None, GONE
    if lease.doing:
        return lease, BUSY
    return dataclasses.replace(lease, name=name), (name, lease.status)


def end_now(lease, _):
    if lease is None:
        return None, GONE
    if lease.doing or lease.status not in ('PENDING', 'ACTIVE'):
        return lease, BUSY
    ended = dataclasses.replace(lease, due=lease.due | {'end_lease'})
    return ended, (lease.name, lease.status)


def delete(lease, _):
    if lease is None:
        return None, GONE
    if lease.doing:
        return lease, BUSY
    if lease.status in ('PENDING', 'TERMINATED'):
        return None, None
    return (
        dataclasses.replace(
            lease, status='DELETING', due=frozenset({'end_lease'})
        ),
        None,
    )


def claim(lease, event_type):
    """Claim an event; a history has only claims that succeeded."""
    if lease is None or lease.doing or event_type not in lease.due:
        return lease, 'impossible'
    if event_type == 'end_lease' and 'start_lease' in lease.due:
        return lease, 'impossible'
    statuses = {'start_lease': 'STARTING', 'end_lease': 'TERMINATING'}
    status = statuses[event_type]
    too_late = event_type == 'start_lease' and 'end_lease' in lease.due
    if too_late or lease.status == 'DELETING':
        status = lease.status
    return dataclasses.replace(lease, doing=event_type, status=status), None


def finish(lease, event_type):
    if lease is None or lease.doing != event_type:
        return lease, 'impossible'
    if lease.status == 'DELETING':
        return None, None
    statuses = {'start_lease': 'ACTIVE', 'end_lease': 'TERMINATED'}
    return (
        dataclasses.replace(
            lease, doing=None, status=statuses[event_type],
            due=lease.due - {event_type},
        ),
        None,
    )


MODEL = {f.__name__: f for f in (rename, end_now, delete, claim, finish)}


def explains(first, steps, last):
    """Tell whether some order of the steps leads from `first` to `last`.

    :param last: (name, status), None for a lease that is gone
    """
    seen = set()

    def search(lease, left):
        if not left:
            return last == (lease and (lease.name, lease.status))
        if (lease, left) in seen:
            return False
        seen.add((lease, left))
        first_over = min(steps[i].over for i in left)
        for i in left:
            step = steps[i]
            if step.began > first_over:
                continue
            after, answer = MODEL[step.name](lease, step.argument)
            if answer == step.answer and search(after, left - {i}):
                return True
        return False

    return search(first, frozenset(range(len(steps))))


class Recorder:
    """A recorder of the history of several threads."""

    def __init__(self):
        self.steps = []
        self._ticks = itertools.count()
        self._mine = threading.local()

    def record(self, name, argument, do):
        """Run a step, and record its times and its result."""
        began = next(self._ticks)
        try:
            answer = do()
        except (BUSY, GONE) as e:
            answer = type(e)
        self.steps.append(
            Step(name, argument, answer, began, next(self._ticks))
        )

    @contextlib.contextmanager
    def events(self):
        """Record the event steps of this thread, see `passed`."""
        self._mine.began = next(self._ticks)
        yield

    def passed(self, point):
        """Record that this thread is at a point of `service.faults`."""
        event_type, _, where = point.partition(':')
        if where == 'worked':
            self._mine.began = next(self._ticks)
        name = {'claimed': 'claim', 'finished': 'finish'}.get(where)
        if name is None:
            return
        self.steps.append(
            Step(name, event_type, None, self._mine.began, next(self._ticks))
        )
