# SPDX-License-Identifier: Apache-2.0
"""The deletion of what has been over since before a given time.

A lease in ERROR is over once its window is: what an operator has not cleared
up by then stays in other services.
"""

from collections.abc import Iterator
from collections.abc import Sequence

import sqlalchemy as sa

from blazar_sched.domain import states
from blazar_sched.service import parts
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import rows
from blazar_sched.service.ledger.models import Base
from blazar_sched.service.ledger.models import Lease
from blazar_sched.service.ledger.models import PastAllocation
from blazar_sched.service.ledger.models import Reservation

_OVER = (states.LEASE_TERMINATED, states.LEASE_ERROR)


def _ended(before: int) -> sa.ColumnElement[bool]:
    return sa.and_(Lease.status.in_(_OVER), Lease.end < before)


def ended(connection: sa.Connection, before: int, limit: int) -> list[str]:
    """Return the ids of leases that are over, in no order.

    :param before: epoch seconds before which the leases ended
    :param limit: the maximum number of reservations of the leases, unless
        the first lease has more
    """
    count = (
        sa.select(sa.func.count())
        .where(Reservation.lease_id == Lease.id)
        .scalar_subquery()
    )
    query = sa.select(Lease.id, count).where(_ended(before)).limit(limit)
    ids: list[str] = []
    for id_, reservations in connection.execute(query):
        limit -= max(reservations, 1)
        if ids and limit < 0:
            break
        ids.append(id_)
    return ids


def _others(
    connection: sa.Connection, before: int, running: Sequence[str] | None
) -> Iterator[tuple[type[Base], sa.ColumnElement[bool]]]:
    """Yield the other tables, each with the condition of what is over.

    The hosts that a lease had and has left are forgotten, too, if the lease
    goes on.
    """
    yield PastAllocation, PastAllocation.end < before
    for over in parts.each('models', 'over', running):
        yield from over(connection, before)


def count(
    connection: sa.Connection, before: int, running: Sequence[str] | None
) -> dict[str, int]:
    """Return the number of rows of each table that a purge would delete.

    :param running: the names of the parts that run, None for all that are
        installed
    """
    conditions: list[tuple[type[Base], sa.ColumnElement[bool]]] = [
        (Lease, _ended(before)), *_others(connection, before, running)
    ]
    return {
        model.__tablename__: connection.execute(
            sa.select(sa.func.count()).select_from(model).where(condition)
        ).scalar_one()
        for model, condition in conditions
    }


def delete_others(
    connection: sa.Connection, before: int, limit: int,
    running: Sequence[str] | None,
) -> bool:
    """Delete other rows that are over; return whether there may be more.

    :param limit: the maximum number of rows of each table
    :param running: as in `count`
    """
    more = False
    for model, condition in _others(connection, before, running):
        more |= rows.delete_some(connection, model, condition, limit)
    return more


class Reads(access.Reads):
    """The queries for what is over."""

    ended_leases = access.read(ended)
