# SPDX-License-Identifier: Apache-2.0
"""The leases of servers' lifetimes, by Blazar's own client."""

import time

import pytest

from blazar_sched.service.clients import nova

SERVER = 'a5b1f2e4-7b7b-4d3e-9d2b-000000000002'
# The fields of Blazar's responses of any type, and those of this type.
SHOWN = {
    'id', 'lease_id', 'resource_id', 'resource_type', 'status',
    'missing_resources', 'resources_changed', 'created_at', 'updated_at',
    'instance_id', 'on_end',
}


@pytest.fixture
def lease_id(service, login, monkeypatch):
    """The id of the lease of alice's server, on a reservable host."""
    login('admin').host.create('compute-1')
    now = int(time.time())
    server = nova.Server(
        uuid=SERVER, node='compute-1', project_id='p1', user_id='alice',
        amounts={'VCPU': 1}, created=now, end=now + 7200, reservation_id=None,
        preemptible=False, status='ACTIVE', lease_name='night', on_end='shelve'
    )
    cloud = service.manager.services.nova
    monkeypatch.setattr(cloud, 'servers', lambda **filters: iter([server]))
    service.manager.instances.sync()
    [lease] = service.manager.ledger.leases()
    return lease.id


@pytest.fixture
def alice(login):
    return login('alice:p1')


def test_lease_of_a_lifetime_is_shown_by_the_library(alice, lease_id):
    [listed] = alice.lease.list()
    shown = alice.lease.get(lease_id)
    assert listed == shown
    assert (shown['name'], shown['status']) == ('night', 'ACTIVE')
    [reservation] = shown['reservations']
    assert reservation.keys() == SHOWN
    assert reservation['resource_type'] == 'instance:lifetime'
    assert reservation['resource_id'] == reservation['instance_id'] == SERVER
    assert reservation['on_end'] == 'shelve'


@pytest.mark.parametrize(
    'version, value, status',
    [('1.1', 'snapshot', 200), ('1.1', 'keep', 400), ('1.0', 'delete', 400)]
)
def test_on_end_of_a_lifetime_lease_can_be_changed_from_1_1_on(
    service, lease_id, version, value, status
):
    headers = {
        'X-Auth-Token': 'alice:p1',
        'OpenStack-API-Version': f'reservation {version}',
    }
    lease = service.manager.ledger.lease(lease_id)
    [own] = lease.reservations
    answer = service.api.put(
        f'/v1/leases/{lease_id}', headers=headers,
        json={'reservations': [{'id': own.id, 'on_end': value}]},
    )
    assert answer.status_code == status, answer.text
    if status == 200:
        [shown] = answer.json['lease']['reservations']
        assert shown['on_end'] == value
    else:
        assert 'on_end' in answer.text
