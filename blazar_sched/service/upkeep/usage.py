# SPDX-License-Identifier: Apache-2.0
"""The usage of reservations: the loop that measures it, and the report.

Each step adds what has happened since the step before, in one commit: of
several managers, one measures each moment. What is reserved follows from the
allocations, and is exact; the servers of a step count since the step before.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import functools
from typing import Any

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.domain import usage
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.usage import DAY
from blazar_sched.domain.usage import DEFAULT_DAYS
from blazar_sched.domain.usage import MAX_DAYS
from blazar_sched.domain.usage import Usage
from blazar_sched.domain.window import Window
from blazar_sched.service import loop
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx

# The servers in each reservation, by its id.
_Servers = dict[str, list[Instance]]


class Usages(loop.Looped):
    """The usage of the reservations in a ledger.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, clock: Callable[[], float]
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._clock = clock
        # The step before: its time, and the servers, as a reservation that is
        # over has none.
        self._last: int | None = None
        self._before: _Servers = {}
        self._loop = loop.Loop(
            'usage', self.step, lambda: self._conf.usage_interval
        )

    def step(self) -> None:
        """Add the usage since the step before; delete what is too old."""
        now = int(self._clock())
        self._before = self._ledger.write(
            functools.partial(self._measure, now=now)
        )
        self._last = now

    def _measure(self, tx: Tx, now: int) -> _Servers:
        since = tx.usage_measured_until()
        if since is None:
            # Nothing was reserved until the step before.
            since = self._last
        if since is None:
            since = now - int(self._conf.usage_interval)
        leases, allocations, instances = tx.leases_to_measure(
            Window(min(since, now - 1), now)
        )
        servers: _Servers = defaultdict(list)
        for each in instances:
            servers[each.reservation_id or ''].append(each)
        if since < now:
            tx.add_usage(self._parts(
                tx, leases, allocations, servers, Window(since, now)
            ))
        if self._conf.keep_usage:
            tx.delete_usage(now - self._conf.keep_usage)
        return servers

    def _parts(
        self,
        tx: Tx,
        leases: Iterable[Lease],
        allocations: Iterable[Allocation],
        servers: _Servers,
        measured: Window,
    ) -> list[Usage]:
        held = defaultdict(list)
        for each in allocations:
            held[each.reservation_id].append(each)
        whole = {a.host for many in held.values() for a in many if a.whole}
        capacities = {
            host.uuid: {c: host.capacity(c) for c in host.inventory}
            for host in tx.hosts(whole)
        }
        return [
            part
            for lease in leases
            for r in lease.reservations
            for part in usage.measure(
                lease, r, held[r.id],
                (
                    servers if measured.end < lease.end else self._before
                ).get(r.id, ()),
                capacities, measured,
            )
        ]

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
            reserved, used, not used, and lent, and what was reserved by
            reservations that had no server on any of these days
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
            | {name: seconds / 3600 for name, seconds in counts.items()}
            for group, counts in sorted(sums.items())
        ]
