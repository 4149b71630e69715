# SPDX-License-Identifier: Apache-2.0
"""``virtual:floatingip`` on a real cloud."""

import datetime

import pytest

from tests.cloud import person
from tests.cloud import seed

ADDRESS = '203.0.113.100'
ANOTHER = '203.0.113.101'
SOON = datetime.timedelta(minutes=30)


@pytest.fixture
def network_id(admin):
    return admin.sdk.network.find_network(seed.NETWORK).id


@pytest.fixture
def register_address(admin, network_id):
    def register(address):
        return admin.create(
            'floatingips', floating_network_id=network_id,
            floating_ip_address=address,
        )

    return register


@pytest.fixture
def wanted(network_id):
    """The request for a reservation of one address."""
    return {
        'resource_type': 'virtual:floatingip',
        'network_id': network_id,
        'amount': 1,
    }


@pytest.fixture
def take_away(admin, network_id):
    """take_away(address) gives an address to another project."""
    taken = []

    def take_away(address):
        floating_ip = admin.sdk.network.create_ip(
            floating_network_id=network_id, floating_ip_address=address
        )
        taken.append(floating_ip)

    yield take_away
    for floating_ip in taken:
        admin.sdk.network.delete_ip(floating_ip)


@pytest.fixture
def floating_ips(admin):
    """floating_ips() -> the floating IPs in Neutron."""
    return lambda: list(admin.sdk.network.ips())


@pytest.mark.row('C29', 'C30', 'F4')
def test_floating_ip_is_the_projects_from_start_to_end(
    demo, alt, register_address, wanted, floating_ips
):
    # Only addresses outside of allocation pools are registered.
    for address in (seed.POOL['start'], seed.GATEWAY, '192.0.2.1'):
        with pytest.raises(person.Refused, match='40[049]'):
            register_address(address)
    register_address(ADDRESS)
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


@pytest.mark.row('C30', 'F70')
def test_address_that_another_project_gets_is_missing_then_replaced(
    demo, register_address, take_away, wanted, floating_ips, until
):
    register_address(ADDRESS)
    lease = demo.book(wanted, start=SOON)
    take_away(ADDRESS)
    until(lambda: demo.lease(lease)['degraded'])
    [reservation] = demo.lease(lease)['reservations']
    assert reservation['missing_resources']

    register_address(ANOTHER)
    until(lambda: not demo.lease(lease)['degraded'])
    demo.update_lease(lease, start_date='now')
    demo.wait_for(lease, 'ACTIVE')
    [address] = [
        floating_ip.floating_ip_address
        for floating_ip in floating_ips()
        if floating_ip.project_id == demo.project_id
    ]
    assert address == ANOTHER
