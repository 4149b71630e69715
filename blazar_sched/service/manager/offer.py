# SPDX-License-Identifier: Apache-2.0
"""Offers: what a lease refused for lack of capacity could have instead."""

from collections.abc import Callable
import dataclasses

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain import window
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.relocation import Rules
from blazar_sched.placing import displacement
from blazar_sched.placing import lease_placing
from blazar_sched.placing import offer as offer_search
from blazar_sched.placing.options import Options
from blazar_sched.replica import state
from blazar_sched.service.ledger.ledger import Ledger


def with_start(
    refusal: exception.NotEnoughHostsAvailable,
    ledger: Ledger,
    lease: Lease,
    options: Options,
    now: int,
    rules: Rules | None,
) -> exception.NotEnoughHostsAvailable:
    """Return the refusal of a new lease with a start that has room.

    The offer is not held for the client: a later request may find the capacity
    taken. No offer is made to a lease that requests more than resources on
    hosts.
    """
    start = _start(ledger, lease, options, now, rules)
    end = None if start is None else _end(lease, start)
    offer = {**(refusal.offer or {}), 'start': start, 'end': end}
    return exception.NotEnoughHostsAvailable(
        refusal.args[0], refusal.field, offer
    )


def with_end(
    refusal: exception.NotEnoughHostsAvailable,
    old: Lease,
    new: Lease,
    fits: Callable[[int], bool],
) -> exception.NotEnoughHostsAvailable:
    """Return the refusal of a changed lease with a later end that has room.

    No offer is made where the change would also be refused without a later
    end, or to a lease that has more than resources on hosts.

    :param old: the lease as it is
    :param new: the lease as requested
    :param fits: tells whether the changed lease would find room with another
        end
    """
    active = old.status == states.LEASE_ACTIVE
    end = old.end
    if (
        end < new.end
        and all(r.is_on_hosts(active) for r in new.reservations)
        and fits(end)
    ):
        end = offer_search.last(fits, end, min(new.end, window.TIME_LIMIT - 1))
    found = end > old.end
    offer = {
        **(refusal.offer or {}),
        'start': new.start if found else None,
        'end': end if found else None,
    }
    return exception.NotEnoughHostsAvailable(
        refusal.args[0], refusal.field, offer
    )


def _start(
    ledger: Ledger,
    lease: Lease,
    options: Options,
    now: int,
    rules: Rules | None,
) -> int | None:
    if not all(r.is_on_hosts(active=False) for r in lease.reservations):
        return None
    first: int | None = lease.start
    if rules is None:
        # Displacement may find room before any such bound.
        first = ledger.read_replica(lambda replica: _bound(replica, lease))
    if first is None:
        return None
    # One look for each start: no other commit waits for the whole search.
    return offer_search.search(
        lambda at: ledger.read_replica(
            lambda replica: _fits(replica, lease, at, options, now, rules)
        ),
        first,
    )


def _bound(replica: state.Replica, lease: Lease) -> int | None:
    bounds = [
        offer_search.bound(
            replica.indexes,
            r,
            replica.catalog.candidates(r, lease.project_id).hosts,
            lease.window,
        )
        for r in lease.reservations
    ]
    known = [bound for bound in bounds if bound is not None]
    return max(known) if len(known) == len(bounds) else None


def _fits(
    replica: state.Replica,
    lease: Lease,
    at: int,
    options: Options,
    now: int,
    rules: Rules | None,
) -> bool:
    end = _end(lease, at)
    if window.TIME_LIMIT <= end != window.FOREVER:
        return False
    later = dataclasses.replace(lease, start=at, end=end)
    try:
        displacement.place(
            replica, later, later.window, now, rules,
            lambda: lease_placing.place(
                replica, later, later.window, options=options
            ),
            options,
        )
    except exception.NotEnoughHostsAvailable:
        return False
    return True


def _end(lease: Lease, start: int) -> int:
    if lease.end == window.FOREVER:
        return window.FOREVER
    return start + lease.window.duration
