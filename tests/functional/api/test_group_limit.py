# SPDX-License-Identifier: Apache-2.0
"""Limits on what leases have of a group of hosts, through the API."""

import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ADMIN, ALICE, BOB = (
    {**V1_1, 'X-Auth-Token': token}
    for token in ('admin', 'alice:p1', 'bob:p2')
)
DAY = {'start_date': '2030-01-01 00:00', 'end_date': '2030-01-02 00:00'}
HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
SMALL = {
    'resource_type': 'virtual:instance', 'vcpus': 2, 'memory_mb': 1024,
    'disk_gb': 0, 'amount': 1,
}
OPTIONS = (
    '[manager]\n'
    'group_limit = {"name": "rack 7", "resource_properties": '
    '["==", "$$rack", "7"], "resource_class": "VCPU", "max": 8}\n'
    'group_limit = {"name": "three quarters", "share": 0.75, '
    '"resource_class": "VCPU"}\n'
)

pytestmark = pytest.mark.row('F76')


@pytest.fixture
def options():
    return OPTIONS


def reserve(api, headers=ALICE, day=DAY, **reservation):
    return api.simulate_post('/v1/leases', headers=headers, json={
        'name': 'lease', **day, 'reservations': [reservation],
    })


def get(api, path):
    return api.simulate_get(f'/v1/{path}', headers=ADMIN).json


def refused(answer, *words):
    assert answer.status_code == 409, answer.text
    assert answer.json['error_name'] == 'NotEnoughHostsAvailable'
    for each in words:
        assert each in answer.json['error_message']


def test_the_limit_leads_to_another_host(api):
    # The host of rack 7 has 16 VCPUs, of which leases may have 8.
    assert reserve(api, **HOST).status_code == 201
    names = {
        each['id']: each['hypervisor_hostname']
        for each in get(api, 'os-hosts')['hosts']
    }
    assert [
        names[each['resource_id']]
        for each in get(api, 'os-hosts/allocations')['allocations']
        if each['reservations']
    ] == ['compute-2']
    # The other host is restricted to a project: rack 7 has no whole host.
    refused(
        reserve(api, BOB, **HOST),
        'the group limit rack 7 leaves 8 of 8 in the window',
    )


def test_the_capacity_is_within_the_limits(api):
    def free(headers, **query):
        answer = api.simulate_get('/v1/capacity', headers=headers, params={
            'start_date': DAY['start_date'], **query,
        })
        assert answer.status_code == 200, answer.text
        [part] = answer.json['capacity']['parts']
        return part['hosts'], part['instances']

    # The limit of rack 7 leaves no whole host there, and 8 of 16 VCPUs.
    small = {'flavor_id': 'm1.small'}
    assert free(ALICE)[0] == 1
    assert free(BOB)[0] == 0
    before = free(BOB, **small)[1]
    assert 0 < before <= 8
    assert reserve(api, BOB, **{**SMALL, 'amount': 4}).status_code == 201
    assert free(BOB, **small) == (0, 0)
    assert free(ALICE, **small)[1] > 0
