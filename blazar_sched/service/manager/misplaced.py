# SPDX-License-Identifier: Apache-2.0
"""Servers that take what leases have been promised: found, and told of.

A forced host, or a race: no filter has let them in.
"""

from collections.abc import Collection
from collections.abc import Sequence
import contextlib
import dataclasses

from oslo_log import log

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import reservation
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import accounting
from blazar_sched.replica import state
from blazar_sched.service.bus.notifier import INSTANCE_MISPLACED
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx

LOG = log.getLogger(__name__)

Held = Sequence[tuple[Allocation, str]]


def report(
    ledger: Ledger,
    notifier: Notifier,
    changed: Collection[Instance],
    now: int,
) -> None:
    """Tell of those that do, and have what they are in vacated again.

    :param changed: the records that are new, or others than they were
    """
    held = {
        host: ledger.allocations(host=host, after=now)
        for host in {noun.host for noun in changed}
    }
    suspects = [noun for noun in changed if held[noun.host]]
    if not suspects:
        return

    def work(tx: PlacingTx) -> list[tuple[Instance, list[str]]]:
        tx.replica.advance(now)
        known = tx.replica.instances
        found = [
            (noun, in_the_way_of(tx.replica, noun, held[noun.host], now))
            for noun in suspects
            # Else somebody has looked since, and tells of what they saw.
            if known.get(noun.uuid) == noun
        ]
        for lease_id in {id_ for _, ids in found for id_ in ids}:
            _vacate_again(tx, lease_id)
        return found

    for noun, lease_ids in ledger.commit(work):
        if not lease_ids:
            continue
        LOG.warning(
            'Server %s on host %s is in the way of %s',
            noun.uuid, noun.host, ', '.join(lease_ids),
        )
        notifier.instance(
            INSTANCE_MISPLACED,
            noun.uuid,
            project_id=noun.project_id,
            host_id=noun.host,
            lease_ids=lease_ids,
        )


def in_the_way_of(
    replica: state.Replica,
    noun: Instance,
    held: Held,
    now: int,
) -> list[str]:
    """Return the ids of the leases that an instance leaves too little.

    :param replica: the ledger's, at `now`; with the instance
    :param held: what leases hold on its host, with their ids
    """
    occupied = accounting.occupancy(noun, noun.end <= now)
    own = replica.held(reservation.lifetime_id(noun.uuid))
    # The place that was kept for it goes once it has come.
    if occupied is None or noun.host in own:
        return []
    _, end = occupied
    found = set()
    for allocation, lease_id in held:
        start, until = max(now, allocation.start), min(end, allocation.end)
        if start < until and not _fits(replica, noun, start, until):
            found.add(lease_id)
    return sorted(found)


def _fits(
    replica: state.Replica, noun: Instance, start: int, end: int
) -> bool:
    """Tell whether an instance fits beside all else on its host."""
    return all(
        fits
        for index, amounts in replica.counted(noun)
        for fits in index.fits(
            index.rows([noun.host]), start, end, amounts, ignore=noun.uuid
        )
    )


def _vacate_again(tx: PlacingTx, lease_id: str) -> None:
    """Have a lease's hosts vacated once more, if that was over already."""
    with contextlib.suppress(exception.LeaseNotFound):
        lease = tx.lease(lease_id)
        over = any(
            e.event_type == event.VACATE_HOSTS
            and e.status == states.EVENT_DONE
            for e in lease.events
        )
        if over and lease.status == states.LEASE_PENDING:
            events = event.vacate_again(lease.events)
            tx.put_lease(dataclasses.replace(lease, events=events))
