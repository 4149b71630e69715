# SPDX-License-Identifier: Apache-2.0
"""The usage of a lease that is about to be deleted."""

from blazar_sched.domain.lease import Lease
from blazar_sched.service.ledger.tx import Tx


def measure_deleted(tx: Tx, lease: Lease, now: int, interval: float) -> None:
    """Add the usage of a lease that the commit is about to delete.

    No later measurement finds the lease. The servers that have left since the
    last measurement do not count.

    :param interval: the seconds that count if nothing was measured before
    """
    if lease.start >= now:
        return
    seen = tx.usage_measured_at()
    if seen is None:
        seen = now - int(interval)
    ids = [each.id for each in lease.reservations]
    tx.put_usage(tx.measure_usage(ids, seen, now, is_deleted=True), seen)
