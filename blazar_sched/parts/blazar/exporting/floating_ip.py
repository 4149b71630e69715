# SPDX-License-Identifier: Apache-2.0
"""Conversion of floating IPs to rows of Blazar's tables."""

from blazar_sched.domain.floating_ip import FloatingIP
from blazar_sched.parts.blazar import tables as blazar


def to_row(floating_ip: FloatingIP, address: str) -> blazar.Row:
    """Return the row of a floating IP.

    :param address: the address as Blazar writes it
    """
    return {
        'id': floating_ip.id,
        'floating_network_id': floating_ip.network_id,
        'subnet_id': floating_ip.subnet_id,
        'floating_ip_address': address,
        'reservable': floating_ip.reservable,
        'created_at': floating_ip.created_at,
        'updated_at': floating_ip.updated_at,
    }
