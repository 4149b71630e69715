# SPDX-License-Identifier: Apache-2.0
"""Floating IPs in SQL, and their allocations to reservations."""

from collections import defaultdict
from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.domain.window import Window
from blazar_sched.parts.floating_ip import exception
from blazar_sched.parts.floating_ip import floating_ip
from blazar_sched.parts.floating_ip.demand import RESOURCE_TYPE
from blazar_sched.parts.floating_ip.floating_ip import ADDRESS
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger import rows
from blazar_sched.service.ledger.stored import Stored


class FloatingIP(models.Base):
    __tablename__ = 'floating_ip'
    __table_args__ = (
        sa.UniqueConstraint('network_id', 'address'), models.OPTIONS
    )

    id: orm.Mapped[str] = orm.mapped_column(models.Id, primary_key=True)
    network_id: orm.Mapped[str] = orm.mapped_column(models.Id)
    subnet_id: orm.Mapped[str] = orm.mapped_column(models.Id)
    address: orm.Mapped[str] = orm.mapped_column(sa.String(45))
    reservable: orm.Mapped[bool]
    created_at: orm.Mapped[int | None]
    updated_at: orm.Mapped[int | None]


class FloatingIPAllocation(models.Base):
    """A reservation's allocation of a floating IP, with its own window."""

    __tablename__ = 'floating_ip_allocation'
    __table_args__ = (
        sa.UniqueConstraint('reservation_id', 'floating_ip_id'),
        sa.Index(None, 'floating_ip_id', 'end'), models.OPTIONS,
    )

    id: orm.Mapped[str] = orm.mapped_column(models.Id, primary_key=True)
    reservation_id: orm.Mapped[str] = orm.mapped_column(
        sa.ForeignKey('reservation.id')
    )
    floating_ip_id: orm.Mapped[str] = orm.mapped_column(
        sa.ForeignKey('floating_ip.id')
    )
    start: orm.Mapped[int]
    end: orm.Mapped[int]


TABLES = (FloatingIP, FloatingIPAllocation)


_ALL = Stored(
    FloatingIP, lambda row: floating_ip.FloatingIP(**row), 'floating IP',
    exception.FloatingIPNotFound,
)
get = _ALL.get


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
        connection, FloatingIP.network_id == network_id,
        sa.or_(FloatingIP.reservable, own), ~taken,
    )


def uses(
    connection: sa.Connection, network_ids: Collection[str], after: int
) -> list[floating_ip.Use]:
    """Return the reservable floating IPs of networks, with their allocations.

    The floating IPs are sorted by network, then by address.

    :param after: the time by which the allocations that are left out end
    """
    found = _select(
        connection, FloatingIP.reservable,
        FloatingIP.network_id.in_(filter(models.is_id, network_ids)),
    )
    windows: dict[str, list[Window]] = defaultdict(list)
    held = FloatingIPAllocation
    for row in connection.execute(
        sa.select(held.floating_ip_id, held.start, held.end)
        .join(FloatingIP, FloatingIP.id == held.floating_ip_id)
        .where(
            FloatingIP.network_id.in_(filter(models.is_id, network_ids)),
            held.end > after,
        )
        .order_by(held.start, held.id)
    ):
        windows[row.floating_ip_id].append(Window(row.start, row.end))
    return [floating_ip.Use(each, tuple(windows[each.id])) for each in found]


def add(connection: sa.Connection, new: floating_ip.FloatingIP) -> None:
    """Insert a floating IP.

    :raises FloatingIPExists: if the address is registered in its network
    """
    if _select(
        connection, FloatingIP.network_id == new.network_id,
        FloatingIP.address == new.address,
    ):
        raise exception.FloatingIPExists(
            f'floating IP {new.address} is already registered', field=ADDRESS,
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


def _select(
    connection: sa.Connection, *conditions: sa.ColumnExpressionArgument[bool]
) -> list[floating_ip.FloatingIP]:
    found = _ALL.select(connection, sa.and_(*conditions))
    return sorted(found, key=floating_ip.order)


# Neutron's names of the fields.
_SHOWN = {
    name: {'network_id': 'floating_network_id', 'address': ADDRESS}.get(
        name, name
    )
    for name in floating_ip.FloatingIP.__slots__
}


def _select_shown(
    connection: sa.Connection, reservation_id: str | None
) -> list[off_hosts.Resource]:
    return [
        {shown: getattr(each, name) for name, shown in _SHOWN.items()}
        for each in list_(connection, reservation_id)
    ]


def _add_shown(connection: sa.Connection, new: off_hosts.Resource) -> None:
    values = {name: new[shown] for name, shown in _SHOWN.items()}
    add(connection, floating_ip.FloatingIP(**values))


OFF_HOSTS = off_hosts.OffHosts(
    RESOURCE_TYPE, FloatingIPAllocation, 'floating_ip_id', _select_shown,
    _add_shown,
)
