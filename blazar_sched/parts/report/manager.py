# SPDX-License-Identifier: Apache-2.0
"""The usage of reservations: the loop that measures it, and who is told.

One of several managers measures. A step reads the reservations in slices, and
writes the usage of those that have changed: in a short commit for each slice,
so that other commits never wait for a measurement. What is reserved follows
from the allocations, and is exact; the servers of a step count since the step
before. The manager that has measured the end of a day notifies of the day.
"""

from collections import deque
from collections.abc import Callable
from collections.abc import Sequence
import functools
import time
from typing import Any
import uuid

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import Window
from blazar_sched.parts.report import models
from blazar_sched.parts.report import usage
from blazar_sched.parts.report.models import Measured
from blazar_sched.parts.report.usage import DAY
from blazar_sched.parts.report.usage import DEFAULT_DAYS
from blazar_sched.parts.report.usage import FIGURES
from blazar_sched.parts.report.usage import MAX_DAYS
from blazar_sched.parts.report.usage import Usage
from blazar_sched.service import faults
from blazar_sched.service import loop
from blazar_sched.service import turns
from blazar_sched.service.bus import payload as payloads
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import Tx
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running

# The reservations that are measured in one commit.
_SLICE = 30
# The most refused reservations that are counted between two measurements.
MAX_REFUSED = 10_000
# The day of a reservation is over; the payload has the usage of the day.
RESERVATION_EXISTS = 'reservation.exists'
# Notifications between two reads of the database.
_PAGE = 1000
# The seconds without a measurement after which another manager measures,
# beyond two intervals.
_SLACK = 60


class Usages(loop.Looped):
    """The usage of the reservations in a ledger.

    :param clock: returns the time in epoch seconds
    :param wait: waits for a number of seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, notifier: Notifier,
        clock: Callable[[], float],
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._conf = conf.manager
        self._wait = wait
        # What was refused since the last measurement.
        self._refused: deque[Usage] = deque()
        self._ledger = ledger
        self._notifier = notifier
        self._clock = clock
        self._id = str(uuid.uuid4())
        self._turns = turns.Turns('reports of usage')
        # The days to notify of, each with the last reservation that is told.
        self._ended: deque[tuple[int, str]] = deque()
        self._measuring = loop.Loop(
            'usage', self.step, lambda: self._conf.usage_interval
        )
        # A broker that hangs must not delay a measurement.
        self._notifying = loop.Loop('usage notifications', self.notify)

    @property
    def loops(self) -> tuple[loop.Loop, ...]:
        return self._measuring, self._notifying

    def step(self) -> None:
        """Add the usage since the step before; delete what is too old."""
        now = int(self._clock())
        if refused := list(self._refused):
            self._ledger.write(lambda tx: tx.run(models.add_refused, refused))
        for _ in refused:
            self._refused.popleft()
        if self._ledger.run(models.is_measured_by, self._id, now):
            self._measure(now)

    def notify(self) -> float:
        """Notify of the days that are over, one reservation after another."""
        while self._ended:
            day, after = self._ended[0]
            page = self._ledger.run(models.of_day, day, after, _PAGE)
            for each in page:
                self._notifier.send(RESERVATION_EXISTS, payload(each))
                self._ended[0] = day, each[0].reservation_id
            if not page:
                self._ended.popleft()
        return loop.IDLE

    def _measure(self, now: int) -> None:
        """Write the usage up to now, unless another manager measures."""
        seen = self._seen(self._ledger, now)
        ids = self._ledger.run(models.to_measure, seen, now)
        for first in range(0, len(ids), _SLICE):
            began = time.thread_time()
            measured = self._ledger.run(
                models.measure, ids[first : first + _SLICE], seen, now
            )
            faults.point('usage:measured')
            if measured and not self._ledger.write(functools.partial(
                self._put, measured=measured, seen=seen, now=now
            )):
                return
            if first + _SLICE < len(ids):
                # The other threads of this process go on meanwhile.
                self._wait(time.thread_time() - began)
        if not self._ledger.write(lambda tx: self._claim(tx, now) and (
            tx.run(models.end_measurement, self._id, now)
        )):
            return
        if self._conf.keep_usage:
            before = now - self._conf.keep_usage
            while self._ledger.write(
                lambda tx: tx.run(models.delete, before, _SLICE)
            ):
                pass
        if self._conf.notify_usage and self._notifier.is_on:
            self._ended += [
                (day, '')
                for day in range(seen - seen % DAY, now - now % DAY, DAY)
            ]
            self._notifying.wake()

    def _put(
        self, tx: Tx, measured: list[Measured], seen: int, now: int
    ) -> bool:
        """Write measurements; return whether this manager may measure."""
        may_measure = self._claim(tx, now)
        if may_measure:
            tx.run(models.put, measured, seen)
        return may_measure

    def _claim(self, tx: Tx, now: int) -> bool:
        until = now + 2 * int(self._conf.usage_interval) + _SLACK
        return tx.run(models.claim, self._id, now, until)

    def _seen(self, source: Reader, now: int) -> int:
        """Return when all usage was measured last."""
        seen = source.run(models.measured_at)
        if seen is None:
            return now - int(self._conf.usage_interval)
        return seen

    def refuse(self, lease: Lease) -> None:
        """Count a lease that a project does not get."""
        if len(self._refused) < MAX_REFUSED:
            self._refused += usage.refused(lease, int(self._clock()))

    def measure_deleted(
        self, tx: Tx, leases: Sequence[Lease], now: int
    ) -> None:
        """Add the usage of leases that a commit is about to delete.

        No later measurement finds the leases. The servers that have left since
        the last measurement do not count.
        """
        ids = [
            each.id for lease in leases if lease.start < now
            for each in lease.reservations
        ]
        if not ids:
            return
        seen = self._seen(tx, now)
        measured = tx.run(models.measure, ids, seen, now, is_deleted=True)
        tx.run(models.put, measured, seen)

    def report(
        self, project_id: str | None, start: int | None, end: int | None,
        group_by: Sequence[str],
    ) -> Page:
        """Return sums of the usage on the days that start in a window.

        :param project_id: None for all projects
        :param start: by default 30 days before the end
        :param end: by default now
        :param group_by: some of usage.GROUPS
        :returns: for each group and resource class, in hours: what was
            reserved, used and not used, what was reserved by reservations
            that had no server on any of these days, and what was refused
        :raises InvalidInput: naming the parameter that is wrong; also for
            more than usage.MAX_ROWS rows
        :raises TooManyRequests: if too many reports run or wait already
        """
        end = int(self._clock()) if end is None else end
        start = end - DEFAULT_DAYS * DAY if start is None else start
        if not start < end <= start + MAX_DAYS * DAY:
            raise exception.InvalidInput(
                f'end_date must be after start_date, by {MAX_DAYS} days at '
                'most', field='end_date',
            )
        with self._turns.take(project_id or ''):
            found = self._ledger.run(
                models.sums, Window(start, end), project_id, group_by
            )
        items = [
            row | {name: row[name] / 3600 for name in FIGURES}
            for row in found
        ]
        return {'items': items, 'next': None}


def start(manager: Manager) -> Running:
    """Measure the usage, and answer the call for its report."""
    usages = Usages(
        manager.conf, manager.ledger, manager.notifier, manager.clock,
        manager.wait,
    )
    manager.bookings.on_refusal.append(usages.refuse)
    manager.ledger.on_deletion.append(usages.measure_deleted)
    return Running({'list_usage': usages.report}, (usages,))


def payload(usages: Sequence[Usage]) -> dict[str, Any]:
    """Return the payload of a notification of a reservation's day.

    Amounts are multiplied by hours, as in the report of the usage.

    :param usages: the usages of the day, one for each resource class
    """
    first = usages[0]
    return {
        'reservation_id': first.reservation_id,
        'lease_id': first.lease_id,
        'project_id': first.project_id,
        'resource_type': first.resource_type,
        'flavor_id': first.flavor,
        'product': first.product,
        'audit_period_beginning': payloads.date(first.day),
        'audit_period_ending': payloads.date(first.day + DAY),
        **{
            name: {
                each.resource_class: getattr(each, name) / 3600
                for each in usages
            }
            for name in ('reserved', 'used')
        },
        'late': max(each.late for each in usages) / 3600,
    }
