# SPDX-License-Identifier: Apache-2.0
"""The service's records of servers, from Nova's notifications alone.

The periodic sync of all servers is rarer than any test.
"""

import datetime

import pytest

from tests.cloud import person

LATER = datetime.timedelta(days=1)


@pytest.fixture
def can_be_booked(demo):
    """can_be_booked(host) tells whether a host is free from LATER on."""

    def can_be_booked(host):
        wanted = person.hosts(
            hypervisor_properties=f'["==", "$hypervisor_hostname", "{host}"]'
        )
        try:
            lease = demo.book(wanted, start=LATER)
        except person.Refused as e:
            assert 'NotEnoughHosts' in str(e)
            return False
        demo.reservation.delete(f'/leases/{lease["id"]}')
        return True

    return can_be_booked


def test_a_host_is_free_for_a_lease_while_no_endless_server_is_there(
    alt, register, description, nova, until, can_be_booked
):
    for name in description['hosts']:
        register(name)
    server = alt.boot('endless')
    host = nova.host_of(server)
    until(lambda: not can_be_booked(host))
    alt.sdk.compute.delete_server(server['id'])
    until(lambda: can_be_booked(host))
