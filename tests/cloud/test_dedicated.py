# SPDX-License-Identifier: Apache-2.0
"""Dedicated hosts, which are reserved as in Blazar."""

import pytest

from tests.cloud import person

POOL = 'freepool'


@pytest.fixture
def host(register):
    return register('compute-1', hold='dedicated')


@pytest.mark.row('C11')
def test_dedicated_host_is_in_freepool_outside_of_its_windows(
    demo, admin, nova, host
):
    assert nova.hosts_in(POOL) == ['compute-1']
    lease = demo.wait_for(demo.book(person.hosts()), 'ACTIVE')
    [reservation] = lease['reservations']
    assert nova.hosts_in(POOL) == []
    assert nova.hosts_in(reservation['id']) == ['compute-1']
    demo.end(lease)
    assert nova.hosts_in(POOL) == ['compute-1']
    admin.reservation.delete(f'/leases/{lease["id"]}')
    admin.reservation.delete(f'/os-hosts/{host["id"]}')
    assert nova.hosts_in(POOL) == []


def test_an_ordinary_server_is_kept_off_it_though_it_is_free(
    demo, register, host
):
    for name in ('compute-2', 'compute-3'):
        register(name, hold='dedicated')
    assert demo.finds_no_host('mine', lifetime='1m')
    lease = demo.wait_for(demo.book(person.hosts()), 'ACTIVE')
    [reservation] = lease['reservations']
    demo.boot('bound', reservation=reservation['id'])


def test_a_host_with_servers_cannot_be_dedicated(demo, register, nova):
    server = demo.boot('mine')
    with pytest.raises(person.Refused, match='409'):
        register(nova.host_of(server), hold='dedicated')
    register(nova.host_of(server))
