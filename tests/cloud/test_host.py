# SPDX-License-Identifier: Apache-2.0
"""``physical:host`` on a real cloud."""

import datetime

import pytest

from tests.cloud import person


@pytest.mark.row('C36')
def test_only_an_admin_registers_hosts(demo, admin):
    with pytest.raises(person.Refused, match='403'):
        demo.create('os-hosts', name='compute-1')
    host = admin.create('os-hosts', name='compute-1', gpu='true')
    assert host['hypervisor_hostname'] == 'compute-1'
    assert (host['vcpus'], host['memory_mb']) == (10, 8192)
    assert host['gpu'] == 'true'
    with pytest.raises(person.Refused, match='404'):
        admin.create('os-hosts', name='compute-99')


@pytest.mark.row('C36', 'C37')
def test_a_host_is_the_leases_from_start_to_end(
    demo, alt, register, nova, until
):
    register('compute-1')
    lease = demo.wait_for(demo.book(person.hosts()), 'ACTIVE')
    [reservation] = lease['reservations']
    assert reservation['status'] == 'active'
    with pytest.raises(person.Refused, match='409'):
        alt.book(person.hosts())

    mine = demo.boot('mine', reservation=reservation['id'])
    assert nova.host_of(mine) == 'compute-1'
    assert nova.hosts_in(reservation['id']) == ['compute-1']

    over = demo.end(lease)
    assert [r['status'] for r in over['reservations']] == ['deleted']
    assert nova.status_of(mine) is None
    assert nova.hosts_in(reservation['id']) is None
    alt.wait_for(alt.book(person.hosts()), 'ACTIVE')


def test_a_lease_starts_and_ends_when_it_is_told_to(demo, register):
    register('compute-1')
    lease = demo.book(
        person.hosts(),
        start=datetime.timedelta(seconds=8),
        length=datetime.timedelta(seconds=8),
    )
    assert lease['status'] == 'PENDING'
    demo.wait_for(lease, 'ACTIVE')
    over = demo.wait_for(lease, 'TERMINATED')
    assert {event['status'] for event in over['events']} == {'DONE'}


def test_a_lease_is_its_projects_own(demo, alt, admin, register):
    register('compute-1')
    lease = demo.book(person.hosts(), start=datetime.timedelta(days=1))
    assert lease['project_id'] == demo.project_id
    with pytest.raises(person.Refused, match='404'):
        alt.lease(lease)
    assert alt.reservation.delete(f'/leases/{lease["id"]}').status_code == 404
    assert alt.get('leases')['leases'] == []
    assert [each['id'] for each in admin.get('leases')['leases']] == [
        lease['id']
    ]
