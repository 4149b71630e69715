# SPDX-License-Identifier: Apache-2.0
"""Resources that are not on hosts, and their allocations to reservations.

Parts have the tables: see `OFF_HOSTS` in `service.parts`. A resource is a dict
here, by the names of the API, with times in epoch seconds.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
import dataclasses
from typing import Any
import uuid

import sqlalchemy as sa

from blazar_sched.domain.window import Window
from blazar_sched.service import parts
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

# The option of a connection with the names of the parts that run.
RUNNING = 'blazar_sched_parts'

Resource = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class OffHosts:
    """The resources of one resource type.

    :param allocation: the table of the allocations, each with the
        `reservation_id` and with a window of its own, from `start` to `end`
    :param resource: the column of that table with the id of the resource
    :param select: returns all resources, or those of a reservation, in order
    :param add: inserts a resource
    """

    resource_type: str
    allocation: type[models.Base]
    resource: str
    select: Callable[[sa.Connection, str | None], list[Resource]]
    add: Callable[[sa.Connection, Resource], None]

    @property
    def table(self) -> sa.FromClause:
        return self.allocation.__table__


def kinds(connection: sa.Connection) -> tuple[OffHosts, ...]:
    """Return what the parts have that run."""
    return tuple(parts.each('models', 'OFF_HOSTS', running(connection)))


def running(connection: sa.Connection) -> Sequence[str] | None:
    """Return the names of the parts that run, None for all installed."""
    return connection.get_execution_options().get(RUNNING)


def list_(
    connection: sa.Connection, resource_type: str,
    reservation_id: str | None = None,
) -> list[Resource]:
    """Return all resources of a type, or the resources of a reservation.

    There are none of a type whose resources are on hosts.
    """
    return [
        resource
        for each in kinds(connection) if each.resource_type == resource_type
        for resource in each.select(connection, reservation_id)
    ]


def add(connection: sa.Connection, resource_type: str, new: Resource) -> None:
    """Insert a resource of a type that a part has."""
    _kind(connection, resource_type).add(connection, new)


def put_allocations(
    connection: sa.Connection, resource_type: str, reservation_id: str,
    ids: Collection[str], window: Window,
) -> None:
    """Allocate exactly the given resources to a reservation in `window`.

    None of the resources may be allocated to another reservation in the
    window.
    """
    kind = _kind(connection, resource_type)
    parent = kind.table.c.reservation_id == reservation_id
    held = connection.execute(sa.select(kind.table).where(parent)).mappings()
    known = {row[kind.resource]: row['id'] for row in held}
    rows.replace(
        connection, kind.allocation, parent,
        [
            {
                'id': known.get(id_) or str(uuid.uuid4()),
                'reservation_id': reservation_id,
                kind.resource: id_,
                'start': window.start,
                'end': window.end,
            }
            for id_ in ids
        ],
    )


def cut_allocations(
    connection: sa.Connection, reservation_ids: Collection[str], end: int
) -> None:
    """Cut the reservations' allocations to end by `end`."""
    for each in kinds(connection):
        connection.execute(
            sa.update(each.allocation)
            .where(
                each.table.c.reservation_id.in_(reservation_ids),
                each.table.c.end > end,
            )
            .values(end=end)
        )


def drop_allocations(
    connection: sa.Connection, reservation_ids: Collection[str]
) -> None:
    """Delete the allocations of reservations."""
    for each in kinds(connection):
        connection.execute(
            sa.delete(each.allocation)
            .where(each.table.c.reservation_id.in_(reservation_ids))
        )


def _kind(connection: sa.Connection, resource_type: str) -> OffHosts:
    return next(
        each for each in kinds(connection)
        if each.resource_type == resource_type
    )
