# SPDX-License-Identifier: Apache-2.0
"""What is reserved of a product, read from the tables of leases."""

import sqlalchemy as sa

from blazar_sched.domain.demand import decode
from blazar_sched.domain.window import Window
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.reservation import IS_OPEN


def list_units(
    connection: sa.Connection, product: str, window: Window
) -> list[tuple[str, Window, int]]:
    """Return the units of a product that are reserved in a window.

    :returns: the id and the window of each lease, and its units
    """
    query = (
        sa.select(
            models.Lease.id, models.Lease.start, models.Lease.end,
            models.Reservation.resource_type, models.Reservation.parameters,
        )
        .join(models.Lease)
        .where(
            models.Reservation.product == product, IS_OPEN,
            models.Lease.start < window.end, models.Lease.end > window.start,
        )
    )
    return [
        (
            row.id, Window(row.start, row.end),
            decode(row.resource_type, row.parameters).most,
        )
        for row in connection.execute(query)
    ]
