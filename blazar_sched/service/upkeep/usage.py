# SPDX-License-Identifier: Apache-2.0
"""The usage of reservations: the loop that measures it, and who is told.

Each step adds what has happened since the step before, in one commit: of
several managers, one measures each moment. What is reserved follows from the
allocations, and is exact; the servers of a step count since the step before.
The manager that has measured the end of a day notifies of the day.
"""

from collections import Counter
from collections import defaultdict
from collections import deque
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.usage import DAY
from blazar_sched.domain.usage import DEFAULT_DAYS
from blazar_sched.domain.usage import FIGURES
from blazar_sched.domain.usage import MAX_DAYS
from blazar_sched.domain.usage import Usage
from blazar_sched.domain.window import Window
from blazar_sched.service import loop
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.events.usage import of_leases
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx

# The servers in each reservation, by its id.
_Servers = dict[str, list[Instance]]
# Notifications between two reads of the database.
_PAGE = 1000


class Usages(loop.Looped):
    """The usage of the reservations in a ledger.

    :param refused: what was refused since the last measurement
    :param clock: returns the time in epoch seconds
    :ivar reserved: the amounts that were reserved at the last measurement, by
        project and resource class
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        notifier: Notifier,
        refused: deque[Usage],
        clock: Callable[[], float],
    ) -> None:
        self._conf = conf.manager
        self._refused = refused
        self._ledger = ledger
        self._notifier = notifier
        self._clock = clock
        self.reserved: Counter[tuple[str, ...]] = Counter()
        # The step before: its time, and the servers, as a reservation that is
        # over has none.
        self._last: int | None = None
        self._before: _Servers = {}
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
        refused = list(self._refused)
        ended, self._before, self.reserved = self._ledger.write(
            functools.partial(self._measure, refused=refused, now=now)
        )
        for _ in refused:
            self._refused.popleft()
        self._last = now
        if self._conf.notify_usage and self._notifier.is_on:
            self._ended += [(day, '') for day in ended]
            self._notifying.wake()

    def notify(self) -> float:
        """Notify of the days that are over, one reservation after another."""
        while self._ended:
            day, after = self._ended[0]
            page = self._ledger.usage_of_day(day, after, _PAGE)
            for each in page:
                self._notifier.usage(each)
                self._ended[0] = day, each.reservation_id
            if not page:
                self._ended.popleft()
        return loop.IDLE

    def _measure(
        self, tx: Tx, refused: Sequence[Usage], now: int
    ) -> tuple[range, _Servers, Counter[tuple[str, ...]]]:
        """Write the usage up to now.

        :param refused: what was refused
        :returns: the days that have ended since the last measurement, the
            servers, and the amounts that are reserved
        """
        since = tx.usage_measured_until()
        if since is None:
            # Nothing was reserved until the step before.
            since = self._last
        if since is None:
            since = now - int(self._conf.usage_interval)
        leases, allocations, instances = tx.leases_to_measure(
            Window(min(since, now), now + 1)
        )
        servers: _Servers = defaultdict(list)
        for each in instances:
            servers[each.reservation_id or ''].append(each)
        ended = range(since - since % DAY, now - now % DAY, DAY)
        parts = self._parts(
            tx, leases, allocations, servers, Window(since, now)
        ) if since < now else []
        tx.add_usage([
            *parts, *(dataclasses.replace(r, until=now) for r in refused),
        ])
        if ended and not parts and not refused:
            # Another manager would find the end of the same days.
            tx.extend_usage(since, now)
        if self._conf.keep_usage:
            tx.delete_usage(now - self._conf.keep_usage)
        reserved: Counter[tuple[str, ...]] = Counter()
        for part in self._parts(
            tx, leases, allocations, servers, Window(now, now + 1)
        ):
            for name, amount in part.reserved.items():
                reserved[part.project_id, name] += amount
        return ended, servers, reserved

    def _parts(
        self,
        tx: Tx,
        leases: Iterable[Lease],
        allocations: Iterable[Allocation],
        servers: _Servers,
        measured: Window,
    ) -> list[Usage]:
        def counted(lease: Lease, r: Reservation) -> Iterable[Instance]:
            found = servers if measured.end < lease.end else self._before
            return found.get(r.id, ())

        return of_leases(tx, leases, allocations, counted, measured)

    def report(
        self,
        project_id: str | None,
        start: int | None,
        end: int | None,
        group_by: Collection[str],
    ) -> list[dict[str, Any]]:
        """Return sums of the usage on the days that start in a window.

        :param project_id: None for all projects
        :param start: by default 30 days before the end
        :param end: by default now
        :param group_by: some of usage.GROUPS
        :returns: for each group and resource class, in hours: what was
            reserved, used, not used, and lent, what was reserved by
            reservations that had no server on any of these days, and what was
            refused
        :raises InvalidInput: naming the parameter that is wrong; also for
            more than usage.MAX_ROWS rows
        """
        end = int(self._clock()) if end is None else end
        start = end - DEFAULT_DAYS * DAY if start is None else start
        if not start < end <= start + MAX_DAYS * DAY:
            raise exception.InvalidInput(
                f'end_date must be after start_date, by {MAX_DAYS} days at '
                'most', field='end_date',
            )
        sums = self._ledger.usage_sums(
            Window(start, end), project_id, group_by
        )
        return [
            dict(zip((*group_by, 'resource_class'), group, strict=True))
            | {name: counts[name] / 3600 for name in FIGURES}
            for group, counts in sorted(sums.items())
        ]
