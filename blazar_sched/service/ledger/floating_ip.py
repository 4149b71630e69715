# SPDX-License-Identifier: Apache-2.0
"""Floating IPs in SQL, and their allocations to reservations."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any
import uuid

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import floating_ip
from blazar_sched.domain.window import Window
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows
from blazar_sched.service.ledger.models import FloatingIP
from blazar_sched.service.ledger.models import FloatingIPAllocation


def from_row(row: Any) -> floating_ip.FloatingIP:
    return floating_ip.FloatingIP(
        id=row.id, network_id=row.network_id, subnet_id=row.subnet_id,
        address=row.address, reservable=row.reservable,
        created_at=row.created_at, updated_at=row.updated_at,
    )


def get(
    connection: sa.Connection, floating_ip_id: str
) -> floating_ip.FloatingIP:
    """Return a floating IP.

    :raises FloatingIPNotFound: if there is no such floating IP
    """
    if models.is_id(floating_ip_id):
        for found in _select(connection, FloatingIP.id == floating_ip_id):
            return found
    raise exception.FloatingIPNotFound(
        f'floating IP {floating_ip_id} not found'
    )


def list_(
    connection: sa.Connection, reservation_id: str | None = None
) -> list[floating_ip.FloatingIP]:
    """Return all floating IPs, or the floating IPs of a reservation.

    The floating IPs are sorted by network, then by address.
    """
    if reservation_id is None:
        return _select(connection, sa.true())
    return _select(
        connection,
        FloatingIP.id.in_(
            sa.select(FloatingIPAllocation.floating_ip_id).where(
                FloatingIPAllocation.reservation_id == reservation_id
            )
        ),
    )


def free(
    connection: sa.Connection, network_id: str, window: Window,
    reservation_id: str,
) -> list[floating_ip.FloatingIP]:
    """Return the floating IPs free of other reservations in a window.

    A floating IP that is not allocated to the reservation itself is returned
    only if it is reservable.
    """
    if not models.is_id(network_id):
        return []
    taken = sa.exists().where(
        FloatingIPAllocation.floating_ip_id == FloatingIP.id,
        FloatingIPAllocation.reservation_id != reservation_id,
        FloatingIPAllocation.start < window.end,
        FloatingIPAllocation.end > window.start,
    )
    own = sa.exists().where(
        FloatingIPAllocation.floating_ip_id == FloatingIP.id,
        FloatingIPAllocation.reservation_id == reservation_id,
    )
    return _select(
        connection,
        sa.and_(
            FloatingIP.network_id == network_id,
            sa.or_(FloatingIP.reservable, own), ~taken,
        ),
    )


def uses(
    connection: sa.Connection, network_ids: Collection[str], after: int
) -> list[floating_ip.Use]:
    """Return the reservable floating IPs of networks, with their allocations.

    The floating IPs are sorted by network, then by address.

    :param after: the time by which the allocations that are left out end
    """
    found = _select(
        connection,
        sa.and_(
            FloatingIP.network_id.in_(filter(models.is_id, network_ids)),
            FloatingIP.reservable,
        ),
    )
    windows: dict[str, list[Window]] = defaultdict(list)
    for row in connection.execute(
        sa.select(
            FloatingIPAllocation.floating_ip_id, FloatingIPAllocation.start,
            FloatingIPAllocation.end,
        )
        .join(FloatingIP, FloatingIP.id == FloatingIPAllocation.floating_ip_id)
        .where(
            FloatingIP.network_id.in_(filter(models.is_id, network_ids)),
            FloatingIPAllocation.end > after,
        )
        .order_by(FloatingIPAllocation.start, FloatingIPAllocation.id)
    ):
        windows[row.floating_ip_id].append(Window(row.start, row.end))
    return [
        floating_ip.Use(each, tuple(windows[each.id])) for each in found
    ]


def add(connection: sa.Connection, new: floating_ip.FloatingIP) -> None:
    """Insert a floating IP.

    :raises FloatingIPExists: if the address is registered in its network
    """
    if _select(
        connection,
        sa.and_(
            FloatingIP.network_id == new.network_id,
            FloatingIP.address == new.address,
        ),
    ):
        raise exception.FloatingIPExists(
            f'floating IP {new.address} is already registered',
            field='floating_ip_address',
        )
    rows.add(connection, FloatingIP, [rows.columns(new)])


def update(connection: sa.Connection, new: floating_ip.FloatingIP) -> None:
    """Update an existing floating IP."""
    connection.execute(
        sa.update(FloatingIP)
        .where(FloatingIP.id == new.id)
        .values(rows.columns(new))
    )


def delete(connection: sa.Connection, floating_ip_id: str) -> None:
    """Delete a floating IP.

    :raises FloatingIPNotFound: if there is no such floating IP
    :raises CantDeleteFloatingIP: while the floating IP is allocated
    """
    gone = get(connection, floating_ip_id)
    holder = connection.scalar(
        sa.select(FloatingIPAllocation.reservation_id)
        .where(FloatingIPAllocation.floating_ip_id == gone.id)
        .limit(1)
    )
    if holder is not None:
        raise exception.CantDeleteFloatingIP(
            f'floating IP {gone.address} is allocated to reservation {holder}'
        )
    connection.execute(sa.delete(FloatingIP).where(FloatingIP.id == gone.id))


def put_allocations(
    connection: sa.Connection, reservation_id: str,
    floating_ip_ids: Collection[str], window: Window,
) -> None:
    """Allocate exactly the given floating IPs to a reservation in `window`.

    None of the floating IPs may be allocated to another reservation in the
    window; see `free`.
    """
    parent = FloatingIPAllocation.reservation_id == reservation_id
    held = sa.select(
        FloatingIPAllocation.floating_ip_id, FloatingIPAllocation.id
    ).where(parent)
    known = {row.floating_ip_id: row.id for row in connection.execute(held)}
    rows.replace(
        connection, FloatingIPAllocation, parent,
        [
            {
                'id': known.get(floating_ip_id) or str(uuid.uuid4()),
                'reservation_id': reservation_id,
                'floating_ip_id': floating_ip_id,
                'start': window.start,
                'end': window.end,
            }
            for floating_ip_id in floating_ip_ids
        ],
    )


def cut_allocations(
    connection: sa.Connection, reservation_ids: Collection[str], end: int
) -> None:
    """Cut the reservations' allocations to end by `end`."""
    connection.execute(
        sa.update(models.FloatingIPAllocation)
        .where(
            models.FloatingIPAllocation.reservation_id.in_(reservation_ids),
            models.FloatingIPAllocation.end > end,
        )
        .values(end=end)
    )


def drop_allocations(
    connection: sa.Connection, reservation_ids: Collection[str]
) -> None:
    """Delete the allocations of reservations."""
    connection.execute(
        sa.delete(FloatingIPAllocation).where(
            FloatingIPAllocation.reservation_id.in_(reservation_ids)
        )
    )


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[floating_ip.FloatingIP]:
    found = connection.execute(sa.select(FloatingIP).where(condition))
    return sorted(map(from_row, found), key=floating_ip.order)


class Reads(access.Reads):
    """The queries for floating IPs."""

    floating_ip = access.read(get)
    floating_ips = access.read(list_)
    free_floating_ips = access.read(free)
    floating_ip_uses = access.read(uses)


class Writes(access.Writes):
    """The changes of floating IPs."""

    add_floating_ip = access.write(add)
    update_floating_ip = access.write(update)
    delete_floating_ip = access.write(delete)
    put_floating_ip_allocations = access.write(put_allocations)
