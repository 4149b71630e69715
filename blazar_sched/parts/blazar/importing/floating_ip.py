# SPDX-License-Identifier: Apache-2.0
"""Conversion of Blazar's floating IPs to floating IPs of this service."""

from blazar_sched.domain import exception
from blazar_sched.domain import floating_ip
from blazar_sched.domain.floating_ip import FloatingIP
from blazar_sched.parts.blazar import tables as blazar

_MAX_ID = 36


def from_row(row: blazar.Row) -> FloatingIP:
    """Return a Blazar floating IP as a floating IP of this service.

    :raises InvalidInput: if the address is invalid, or if the network is not
        one of Neutron
    """
    for name in ('floating_network_id', 'subnet_id'):
        if len(row[name]) > _MAX_ID:
            raise exception.InvalidInput(
                f'{row[name]!r} is not an id', field=name
            )
    return FloatingIP(
        id=row['id'], network_id=row['floating_network_id'],
        subnet_id=row['subnet_id'],
        address=floating_ip.parse(row['floating_ip_address']),
        reservable=row['reservable'], created_at=row['created_at'],
        updated_at=row['updated_at'],
    )
