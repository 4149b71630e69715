# SPDX-License-Identifier: Apache-2.0
"""The usage of leases that are about to be deleted."""

from collections.abc import Iterable

from blazar_sched.domain.lease import Lease
from blazar_sched.service.ledger.tx import Tx


def measure_deleted(
    tx: Tx, leases: Iterable[Lease], now: int, interval: float
) -> None:
    """Add the usage of leases that the commit is about to delete.

    No later measurement finds the leases. The servers that have left since the
    last measurement do not count.

    :param interval: the seconds that count if nothing was measured before
    """
    ids = [
        reservation.id for lease in leases if lease.start < now
        for reservation in lease.reservations
    ]
    if not ids:
        return
    seen = tx.usage_measured_at()
    if seen is None:
        seen = now - int(interval)
    tx.put_usage(tx.measure_usage(ids, seen, now, is_deleted=True), seen)
