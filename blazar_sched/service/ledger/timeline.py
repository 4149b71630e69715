# SPDX-License-Identifier: Apache-2.0
"""The allocations in a window in SQL, with the leases that have them."""

from collections.abc import Collection

import sqlalchemy as sa

from blazar_sched.domain.window import Window
from blazar_sched.placing.timeline import Use
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import models


def list_(
    connection: sa.Connection, window: Window, limit: int,
    hosts: Collection[str] | None = None, project_id: str | None = None,
) -> list[Use]:
    """Return the allocations that overlap a window, the first start first.

    The allocations that are over are returned too.

    :param limit: the maximum number of allocations
    :param hosts: the UUIDs of the hosts, None for all
    :param project_id: the project that owns the leases, None for any
    """
    found: list[Use] = []
    for held in allocation.EVER:
        query = (
            sa.select(
                held, models.Reservation.resource_type,
                models.Reservation.lease_id, models.Lease.project_id,
                models.Lease.name, models.Lease.status, models.Lease.degraded,
            )
            .join(
                models.Reservation,
                models.Reservation.id == held.reservation_id,
            )
            .join(models.Lease, models.Lease.id == models.Reservation.lease_id)
            .where(held.start < window.end, held.end > window.start)
            .order_by(held.start, held.id)
            .limit(limit)
        )
        if hosts is not None:
            query = query.where(held.host.in_(hosts))
        if project_id is not None:
            query = query.where(models.Lease.project_id == project_id)
        found += [
            Use(
                allocation.from_row(row), row.resource_type, row.lease_id,
                row.project_id, row.name, row.status, row.degraded,
            )
            for row in connection.execute(query)
        ]
    found.sort(key=lambda use: (use.allocation.start, use.allocation.id))
    return found[:limit]
