# SPDX-License-Identifier: Apache-2.0
"""Detection of instances that use capacity promised to leases.

Such instances come from a forced host or from a race: no filter has admitted
them.
"""

from collections.abc import Collection
from collections.abc import Sequence
import contextlib
import dataclasses
import functools

from oslo_log import log

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import reservation
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.window import Window
from blazar_sched.replica import accounting
from blazar_sched.replica import state
from blazar_sched.service import slices
from blazar_sched.service.bus.notifier import INSTANCE_MISPLACED
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx

LOG = log.getLogger(__name__)

# The leases that one commit has vacated again.
LEASES_IN_COMMIT = 5

Held = Sequence[tuple[Allocation, str]]


def report(
    ledger: Ledger, notifier: Notifier, changed: Collection[Instance], now: int
) -> None:
    """Report misplaced instances, and have the leases' hosts vacated again.

    :param changed: the instance records that are new, or have changed
    """
    held = {
        host: ledger.allocations(host=host, after=now)
        for host in {instance.host for instance in changed}
    }
    suspects = [instance for instance in changed if held[instance.host]]
    if not suspects:
        return

    # Each of them by itself: commits of this process wait for a query.
    found = {
        instance.uuid: (instance, lease_ids)
        for instance in suspects
        if (lease_ids := ledger.read_replica(functools.partial(
            _leases_in_the_way, instance=instance, held=held[instance.host],
            now=now,
        )))
    }
    if not found:
        return
    _vacate_again(ledger, {id_ for _, ids in found.values() for id_ in ids})
    for instance, lease_ids in found.values():
        LOG.warning(
            'Instance %s on host %s is in the way of leases %s', instance.uuid,
            instance.host, ', '.join(lease_ids),
        )
        notifier.tell(INSTANCE_MISPLACED, {
            'instance_id': instance.uuid,
            'project_id': instance.project_id,
            'host_id': instance.host,
            'lease_ids': lease_ids,
        })


def _leases_in_the_way(
    replica: state.Replica, instance: Instance, held: Held, now: int
) -> list[str]:
    """Return what `in_the_way_of` does, for a record that is still current.

    Otherwise a later look has written another record, and reports that record.
    """
    replica.advance(now)
    if replica.instances.get(instance.uuid) != instance:
        return []
    return in_the_way_of(replica, instance, held, now)


def in_the_way_of(
    replica: state.Replica, instance: Instance, held: Held, now: int
) -> list[str]:
    """Return the ids of the leases that an instance leaves too little for.

    Leases that can leave the host are not in the way.

    :param replica: the ledger's replica, at `now`; with the instance
    :param held: the allocations on the instance's host, with their lease ids
    """
    occupied = accounting.occupancy(instance, instance.leaves_at <= now)
    own = replica.indexes.allocations(reservation.lifetime_id(instance.uuid))
    # The allocation for the instance's own lifetime is removed once the
    # instance is on the host.
    if occupied is None or instance.host in own:
        return []
    _, end = occupied
    if end <= now or replica.indexes.has_room(instance, Window(now, end)):
        return []
    leaving = replica.leavable.get(instance.host, ())
    found = set()
    for allocation, lease_id in held:
        start, until = max(now, allocation.start), min(end, allocation.end)
        if allocation.reservation_id in leaving:
            continue
        if start < until and not replica.indexes.has_room(
            instance, Window(start, until)
        ):
            found.add(lease_id)
    return sorted(found)


def _vacate_again(ledger: Ledger, lease_ids: Collection[str]) -> None:
    """Have the hosts of leases vacated again, if vacating was over already."""
    over = [id_ for id_ in ledger.vacated_leases() if id_ in lease_ids]
    for some in slices.of(over, LEASES_IN_COMMIT):
        ledger.commit(functools.partial(_put_again, some))


def _put_again(lease_ids: Sequence[str], tx: PlacingTx) -> None:
    for lease_id in lease_ids:
        with contextlib.suppress(exception.LeaseNotFound):
            lease = tx.lease(lease_id)
            if lease.status == states.LEASE_PENDING:
                events = event.vacate_again(lease.events)
                tx.put_lease(dataclasses.replace(lease, events=events))
