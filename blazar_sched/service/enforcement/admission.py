# SPDX-License-Identifier: Apache-2.0
"""Admission of leases by the enabled filters.

Limits are checked in the commit that writes a lease, so that concurrent
requests cannot pass together. A filter that queries another service does so
ahead of that commit: the commit is tried and rolled back, the filter is asked,
and the commit is made.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from concurrent import futures
import dataclasses
import functools
import itertools
import time
from typing import Any
from typing import TypeVar

import futurist
from futurist import rejection
from oslo_config import cfg
from oslo_context import context
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service import parts
from blazar_sched.service.enforcement import base
from blazar_sched.service.enforcement import filters
from blazar_sched.service.enforcement.base import LeaseChange
from blazar_sched.service.enforcement.filters import Filters
from blazar_sched.service.ledger import reader
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx

LOG = log.getLogger(__name__)

T = TypeVar('T')

# How often the filters are asked again because the lease was changed in the
# meantime.
TRIES = 5
# One thread notifies the filters: of the end of a lease after its beginning.
_WORKERS = 1
# The most notifications that may wait for the thread while a service is away.
_MAX_WAITING = 1000
_NOT_TOLD = 'Could not call %s for lease %s'


class _NeedsExternalCheck(Exception):
    """The rollback of a commit, with what the filters have to approve."""

    def __init__(self, request: LeaseChange, held: base.Resources) -> None:
        super().__init__()
        self.request = request
        self.held = held


class Enforcement:
    """The enabled filters.

    :param pool: the executor of the notifications after a commit and after the
        end of a lease; by default a thread
    :param clock: returns the time in epoch seconds
    :ivar limits_of: returns limits of a project, by the names of the options
        in whose place they apply
    :raises ValueError: if a filter is not installed, or lacks an option or a
        part
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger,
        pool: futures.Executor | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._conf = conf
        self._clock = clock
        self.limits_of: Callable[[str], Mapping[str, int]]
        self.limits_of = lambda project_id: {}
        self._ledger = ledger
        self._checks = filters.load(conf)
        self._filters = [*self._checks.strict, *self._checks.approval]
        self._pool = pool or futurist.ThreadPoolExecutor(
            _WORKERS, rejection.reject_when_reached(_MAX_WAITING)
        )

    @property
    def is_external(self) -> bool:
        """Whether a filter queries another service about each lease."""
        return any(f.is_external for f in self._filters)

    def admission(self, dry_run: bool = False) -> 'Admission':
        """Return the admission of one request by the filters.

        :param dry_run: whether the request is to change nothing
        """
        return Admission(
            self._checks, self._ledger, dry_run, self._tell, self.project
        )

    def project(
        self, source: reader.Reader, project_id: str,
        leaving: Collection[str] = (),
    ) -> base.Project:
        """Return what a project has, with its limits.

        :param source: the ledger or a commit
        :param leaving: the ids of leases that do not count
        :raises Unavailable: if the limits of the project are not known yet
        """
        return base.Project(
            source, project_id, self.limits_of(project_id),
            int(self._clock()), leaving,
        )

    def check_limits(
        self, source: reader.Reader, change: LeaseChange,
        project: base.Project | None = None,
    ) -> str | None:
        """Refuse a lease by the checks that are made in the commit alone.

        No other service is queried.

        :param source: the ledger or a commit
        :param project: what the project has, by default read from `source`
        :returns: the refusals that are lifted, None if there are none
        :raises BlazarSchedError: the refusal of a filter
        """
        if not change.lease.is_limited:
            return None
        project = project or self.project(source, change.project_id)
        return self._checks.check(change, project)

    def first_start(self, project_id: str, now: int) -> int:
        """Return the first start of a lease that a project asks for now."""
        project = self.project(self._ledger, project_id)
        return max(
            (f.first_start(project, now) for f in self._filters), default=now
        )

    def limits(self, project_id: str) -> list[dict[str, Any]]:
        """Return the limits of a project, with what the project uses.

        A project that is exempt from a filter has no limits of the filter.
        """
        project = self.project(self._ledger, project_id)
        return [
            dataclasses.asdict(each)
            | ({'limit': base.NO_LIMIT} if f.exempts(project_id) else {})
            for f in self._filters
            for each in f.limits(project)
        ] + [dataclasses.asdict(each) for each in self._numbers(project_id)]

    def _numbers(self, project_id: str) -> list[base.Limit]:
        """Return the limits on what a project has beside its leases."""
        numbers = list(itertools.chain.from_iterable(
            parts.each('models', 'NUMBERS', parts.running(self._conf))
        ))
        used = self._ledger.counts_of(project_id, numbers)
        return [
            base.Limit(
                each.name, each.unit,
                self._conf.manager[each.name] if each.most is None
                else each.most,
                used[each.unit],
            )
            for each in numbers
        ]

    def ending(
        self, source: reader.Reader, lease: Lease
    ) -> Callable[[], object]:
        """Return the function that notifies the filters of a lease's end.

        The function is to be called once the lease is over.

        :param source: the ledger or a commit, which still has the allocations
            of the lease
        """
        told = [f for f in self._filters if f.handles_end]
        over = lease.status == states.LEASE_TERMINATED
        if not told or over or lease.is_lifetime:
            return lambda: None
        held = base.resources_of(source, lease)

        def tell() -> None:
            for each in told:
                self._tell(lease, functools.partial(each.on_end, lease, held))

        return tell

    def stop(self) -> None:
        """Stop, and drop the notifications that are still waiting."""
        self._pool.shutdown(wait=False)

    def _tell(self, lease: Lease, call: functools.partial[None]) -> None:
        try:
            self._pool.submit(_tell, context.get_current(), lease, call)
        except (futurist.RejectedSubmission, RuntimeError) as e:
            name = call.func.__qualname__
            LOG.warning(_NOT_TOLD + ': %s', name, lease.id, e)


class Admission:
    """The admission of one request by the filters.

    The work of the commit calls `check` as its last step.

    :ivar is_dry_run: whether the request changes nothing
    """

    def __init__(
        self, enabled: Filters, ledger: Ledger, is_dry_run: bool,
        tell: Callable[[Lease, functools.partial[None]], None],
        project: Callable[[reader.Reader, str], base.Project],
    ) -> None:
        self.is_dry_run = is_dry_run
        self._project = project
        self._tell = tell
        self._filters = enabled
        self._external = [f for f in enabled.strict if f.is_external]
        self._ledger = ledger
        self._allowed: LeaseChange | None = None
        self._current: base.Resources = {}
        # The lease that the commit writes, and its resources.
        self._written: tuple[LeaseChange, base.Resources] | None = None

    def check(self, tx: PlacingTx, change: LeaseChange) -> None:
        """Return if a lease may be as this commit has written the lease.

        A lease may always be renamed, and the lifetime of a server that has
        started is not subject to the filters.

        :raises BlazarSchedError: the refusal of a filter
        """
        lease = change.lease
        if change.is_unchanged or not lease.is_limited:
            return
        self._filters.check(change, self._project(tx, lease.project_id))
        if self._external:
            held = base.resources_of(tx, lease)
            if not self._is_allowed(change):
                raise _NeedsExternalCheck(change, held)
            self._written = change, held

    def commit(self, work: Callable[[Any], T]) -> T:
        """Commit as the ledger does, with the approval of the filters.

        The filters are called for a dry run as for a real commit: a filter
        cannot tell a dry run from a real commit.

        :raises BlazarSchedError: the refusal of a filter
        :raises Unavailable: if other requests keep changing the lease
        """
        def run(tx: Any) -> T:
            self._written = None
            return work(tx)

        for _ in range(TRIES):
            try:
                made = self._ledger.commit(run, self.is_dry_run)
            except _NeedsExternalCheck as e:
                needed = e
            else:
                self._tell_written()
                return made
            self._check_external(needed.request, needed.held)
        raise exception.Unavailable('the lease changed during each check')

    def _tell_written(self) -> None:
        if self._written is None or self.is_dry_run:
            return
        change, held = self._written
        for f in self._external:
            self._tell(change.lease, functools.partial(
                f.on_commit, change, held, self._current
            ))

    def _is_allowed(self, request: LeaseChange) -> bool:
        # The new lease follows from the request, which stays the same, from
        # the current lease and, where the request leaves the end or the choice
        # of an alternative open, from the room that there is.
        return (
            self._allowed is not None
            and self._allowed.current == request.current
            and self._allowed.lease.window == request.lease.window
            and _is_within(request.lease, self._allowed.lease)
        )

    def _check_external(
        self, request: LeaseChange, held: base.Resources
    ) -> None:
        if request.current is not None:
            self._current = base.resources_of(self._ledger, request.current)
        for f in self._external:
            f.check_external(request, held, self._current)
        self._allowed = request


def _is_within(lease: Lease, granted: Lease) -> bool:
    """Compare reservations by position: those of a new draft are new."""
    return len(lease.reservations) == len(granted.reservations) and all(
        map(Reservation.is_within, lease.reservations, granted.reservations)
    )


def _tell(
    cause: context.RequestContext | None, lease: Lease,
    call: functools.partial[None],
) -> None:
    # In the thread of the pool, which has the cause of the call before.
    (cause or context.RequestContext()).update_store()
    try:
        call()
    except Exception:
        LOG.exception(_NOT_TOLD, call.func.__qualname__, lease.id)
