# SPDX-License-Identifier: Apache-2.0
"""``virtual:floatingip`` on a real cloud."""

import pytest

from tests.cloud import person
from tests.cloud import seed

ADDRESS = '203.0.113.100'


@pytest.fixture
def network_id(admin):
    return admin.sdk.network.find_network(seed.NETWORK).id


@pytest.fixture
def register_address(admin, network_id):
    def register(address):
        return admin.create(
            'floatingips',
            floating_network_id=network_id,
            floating_ip_address=address,
        )

    return register


@pytest.fixture
def floating_ips(admin):
    """floating_ips() -> those that Neutron has."""
    return lambda: list(admin.sdk.network.ips())


def test_only_addresses_outside_of_pools_are_registered(
    demo, register_address, network_id
):
    for address in (seed.POOL['start'], seed.GATEWAY, '192.0.2.1'):
        with pytest.raises(person.Refused, match='40[049]'):
            register_address(address)
    with pytest.raises(person.Refused, match='403'):
        demo.create(
            'floatingips',
            floating_network_id=network_id,
            floating_ip_address=ADDRESS,
        )


def test_it_is_the_projects_from_start_to_end(
    demo, alt, register_address, network_id, floating_ips
):
    register_address(ADDRESS)
    wanted = {
        'resource_type': 'virtual:floatingip',
        'network_id': network_id,
        'amount': 1,
    }
    lease = demo.wait_for(demo.book(wanted), 'ACTIVE')
    [reservation] = lease['reservations']
    [floating_ip] = floating_ips()
    assert floating_ip.floating_ip_address == ADDRESS
    assert floating_ip.project_id == demo.project_id
    assert set(floating_ip.tags) == {
        'blazar', f'reservation:{reservation["id"]}',
    }
    with pytest.raises(person.Refused, match='40[09]'):
        alt.book(wanted)

    demo.end(lease)
    assert floating_ips() == []
