# SPDX-License-Identifier: Apache-2.0
"""Held offers in SQL: leases that were not accepted yet."""

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import models

_HELD = models.Lease.status == states.LEASE_CREATING


def get(
    connection: sa.Connection, offer_id: str, project_id: str | None
) -> Lease:
    """Return a held offer, of the project `project_id` if given.

    :raises OfferNotFound: if there is no such offer, or the offer belongs to
        another project
    """
    found = lease.find(connection, offer_id, project_id, _HELD)
    if found is None:
        raise exception.OfferNotFound(f'offer {offer_id} not found')
    return found


def list_(connection: sa.Connection, project_id: str | None) -> list[Lease]:
    """Return the held offers by id, of the project `project_id` if given."""
    condition = _HELD
    if project_id is not None:
        condition = sa.and_(condition, models.Lease.project_id == project_id)
    return lease.select(connection, condition, (models.Lease.id,))
