# SPDX-License-Identifier: Apache-2.0
"""Reservations of instances, by Blazar's own client."""

import json

import pytest

from tests.functional import conftest as shared

DATES = ('2030-01-01 00:00', '2030-01-02 00:00')
# The fields of Blazar's responses, of either type.
SHOWN = {
    'id', 'lease_id', 'resource_id', 'resource_type', 'status',
    'missing_resources', 'resources_changed', 'created_at', 'updated_at',
    'vcpus', 'memory_mb', 'disk_gb', 'amount', 'affinity', 'flavor_id',
    'aggregate_id', 'server_group_id', 'resource_properties',
}
FLAVOR = {
    'resource_type': 'flavor:instance', 'flavor_id': shared.FLAVOR['id'],
    'amount': 2, 'affinity': None, 'resource_properties': '',
}
SLOTS = {
    'resource_type': 'virtual:instance', 'vcpus': 1, 'memory_mb': 512,
    'disk_gb': 10, 'amount': 2, 'affinity': False, 'resource_properties': '',
}


@pytest.fixture
def alice(login, service):
    service.manager.flavors.sync()
    login('admin').host.create('compute-1')
    login('admin').host.create('compute-2')
    return login('alice:p1')


def test_a_flavor_by_the_library(alice):
    made = alice.lease.create('n', *DATES, [FLAVOR], [])
    [shown] = made['reservations']
    assert shown.keys() == SHOWN
    assert shown['flavor_id'] == shown['id']
    size = [shown[name] for name in ('vcpus', 'memory_mb', 'disk_gb')]
    assert size == [2, 2048, 20]
    assert (shown['amount'], shown['affinity']) == (2, None)
    flavor = json.loads(shown['resource_properties'])
    assert flavor['id'] == FLAVOR['flavor_id']
    changed = alice.lease.update(
        made['id'], reservations=[{'id': shown['id'], 'amount': 3}]
    )
    assert changed['reservations'][0]['amount'] == 3
    alice.lease.delete(made['id'])


def test_a_server_group_by_the_library(alice, service):
    """The response has the group's id, for boots."""
    made = alice.lease.create('n', 'now', DATES[1], [SLOTS], [])
    [shown] = made['reservations']
    assert shown.keys() == SHOWN
    [(group_id, _)] = service.manager.services.nova.server_groups.values()
    assert shown['server_group_id'] == group_id
    assert shown['aggregate_id'] == 1
    alice.lease.delete(made['id'])
