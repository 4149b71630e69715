# SPDX-License-Identifier: Apache-2.0
"""Floating IPs registered as reservable."""

from openstack import resource

from blazar_sched_client._base import Resource


class FloatingIP(Resource):
    """A floating IP registered as reservable."""

    resource_key = 'floatingip'
    resources_key = 'floatingips'
    base_path = '/floatingips'
    allow_create = True
    allow_fetch = True
    allow_delete = True
    allow_list = True

    #: The address, by which a floating IP is found.
    name: str = resource.Body('floating_ip_address')
    #: ID of the external network.
    floating_network_id: str = resource.Body('floating_network_id')
    #: ID of the subnet.
    subnet_id: str = resource.Body('subnet_id')
    #: IPv4 or IPv6 address.
    floating_ip_address: str = resource.Body('floating_ip_address')
    #: Whether the floating IP can be reserved.
    reservable: bool = resource.Body('reservable', type=bool)
    #: Time of creation.
    created_at: str = resource.Body('created_at')
    #: Time of the last change.
    updated_at: str | None = resource.Body('updated_at')
