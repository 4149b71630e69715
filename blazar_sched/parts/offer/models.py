# SPDX-License-Identifier: Apache-2.0
"""Held offers in SQL: the rows of leases that were not accepted yet."""

import sqlalchemy as sa

from blazar_sched.domain.lease import Lease
from blazar_sched.parts.offer.exception import OfferNotFound
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.statistics import Number

NUMBERS = (
    Number('max_held_offers', 'offers', models.Lease, lease.IS_OFFER),
)


def get(
    connection: sa.Connection, offer_id: str, project_id: str | None
) -> Lease:
    """Return a held offer, of the project `project_id` if given.

    :raises OfferNotFound: if there is no such offer, or the offer belongs to
        another project
    """
    found = lease.find(connection, offer_id, project_id, is_offer=True)
    if found is None:
        raise OfferNotFound(f'offer {offer_id} not found')
    return found
