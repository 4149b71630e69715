# SPDX-License-Identifier: Apache-2.0
"""The initial content of the cloud."""

from collections.abc import Sequence

import openstack

from tests.cloud import site
from tests.cloud.service import Service

# The projects, each with a member of the same name.
PROJECTS = ('demo', 'alt')
IMAGE = 'tiny'
# vcpus, MB of memory, GB of disk.
FLAVORS = {'m1.tiny': (1, 512, 1), 'm1.small': (2, 2048, 10)}
NETWORK = 'public'
CIDR = '203.0.113.0/24'
GATEWAY = '203.0.113.1'
# The rest of the network is for reservations.
POOL = {'start': '203.0.113.200', 'end': '203.0.113.220'}


def identity(
    cloud: openstack.connection.Connection, services: Sequence[Service]
) -> None:
    """Create projects, users and the catalog."""
    keystone = cloud.identity
    roles = {role.name: role.id for role in keystone.roles()}

    def user(name: str, project: str, *role_names: str) -> str:
        made = keystone.create_user(
            name=name, password=site.PASSWORD, domain_id='default'
        )
        for role in role_names:
            keystone.assign_project_role_to_user(project, made, roles[role])
        return str(made.id)

    service = keystone.create_project(name='service', domain_id='default')
    for each in services:
        # The bootstrap has created the catalog entry of Keystone.
        if each.name == 'keystone':
            continue
        own = user(each.name, service.id, 'admin', 'service')
        if each.type == 'reservation':
            # For the unified limits.
            keystone.assign_system_role_to_user(own, roles['reader'], 'all')
        made = keystone.create_service(name=each.name, type=each.type)
        for interface in ('public', 'internal'):
            keystone.create_endpoint(
                service_id=made.id, interface=interface, region_id=site.REGION,
                url=each.url,
            )
    for name in PROJECTS:
        project = keystone.create_project(name=name, domain_id='default')
        user(name, project.id, 'member')


def content(cloud: openstack.connection.Connection) -> None:
    """Create an image, flavors and a network for floating IPs."""
    cloud.image.create_image(
        name=IMAGE, data=bytes(512), disk_format='raw',
        container_format='bare', visibility='public',
    )
    for name, (vcpus, ram, disk) in FLAVORS.items():
        cloud.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=disk)
    network = cloud.network.create_network(
        name=NETWORK, is_router_external=True
    )
    cloud.network.create_subnet(
        network_id=network.id, ip_version=4, cidr=CIDR, gateway_ip=GATEWAY,
        is_dhcp_enabled=False, allocation_pools=[POOL],
    )
