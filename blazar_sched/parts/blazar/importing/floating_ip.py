# SPDX-License-Identifier: Apache-2.0
"""Conversion of Blazar's floating IPs to floating IPs of this service.

Another part has the floating IPs: see `service.ledger.off_hosts`.
"""

from blazar_sched.domain import exception
from blazar_sched.domain import ip_address
from blazar_sched.domain.demand import Other
from blazar_sched.parts.blazar import tables as blazar
from blazar_sched.service.ledger.off_hosts import Resource

RESOURCE_TYPE = 'virtual:floatingip'
REQUIRED = 'required_floatingips'
ADDRESS = 'floating_ip_address'
_MAX_ID = 36


def from_row(row: blazar.Row) -> Resource:
    """Return a Blazar floating IP as a floating IP of this service.

    :raises InvalidInput: if the address is invalid, or if the network is not
        one of Neutron
    """
    for name in ('floating_network_id', 'subnet_id'):
        if len(row[name]) > _MAX_ID:
            raise exception.InvalidInput(
                f'{row[name]!r} is not an id', field=name
            )
    return {**row, ADDRESS: ip_address.parse(row[ADDRESS], ADDRESS)}


def demand(own: blazar.Row) -> Other:
    """Return the demand of a reservation of floating IPs.

    :param own: the row in the table of the reservation's resource type, also
        with `required`, the addresses
    """
    return Other(RESOURCE_TYPE, {
        'network_id': own['network_id'],
        'amount': own['amount'],
        REQUIRED: own['required'],
    })
