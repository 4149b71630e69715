# SPDX-License-Identifier: Apache-2.0
"""The list of flavors over REST, with the real manager and ledger."""

import dataclasses

import pytest

from blazar_sched.domain.flavor import Flavor
from blazar_sched.replica import wire
from tests import tables

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:p1'}
BOB = {**V1_1, 'X-Auth-Token': 'bob:p2'}
SMALL = Flavor('1', 'small', 2, 2048, 20)
# A private flavor of p2; nobody is told its extra specs.
LARGE = Flavor(
    '2', 'large', 16, 65536, 100, 50, 1024, {'trait:HW_GPU': 'required'},
    ('p2',),
)


@pytest.fixture
def flavors(service):
    def put(*flavors):
        service.manager.ledger.write(lambda tx: tx.put_flavors(flavors))
        return service.api

    return put


def ask(api, headers=ALICE):
    answer = api.get('/v1/flavors', headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json['flavors']


def test_a_project_sees_the_flavors_that_are_open_to_it(flavors):
    api = flavors(SMALL, LARGE)
    assert ask(api) == [{
        'id': '1', 'name': 'small', 'vcpus': 2, 'memory_mb': 2048,
        'disk_gb': 20, 'ephemeral_gb': 0, 'swap_mb': 0,
    }]
    large, small = ask(api, BOB)
    assert (large['name'], small['name']) == ('large', 'small')
    assert (large['ephemeral_gb'], large['swap_mb']) == (50, 1024)
    assert 'HW_GPU' not in str(large)


def test_a_long_list_is_whole(flavors, monkeypatch):
    monkeypatch.setattr(wire, 'MAX_BYTES', 300)
    many = [
        dataclasses.replace(SMALL, id=str(n), name=f'f{n:02}')
        for n in range(20)
    ]
    names = [each['name'] for each in ask(flavors(*many))]
    assert names == [each.name for each in many]


@pytest.mark.parametrize('path', ['leases', *tables.of('RESERVING')])
def test_a_flavor_that_is_newer_than_the_copies_can_be_reserved(
    service, monkeypatch, path
):
    api, nova = service.api, service.manager.flavors._nova
    asked = []
    monkeypatch.setattr(
        nova, 'flavor', lambda id_: asked.append(id_) or {
            'new': dataclasses.replace(SMALL, id='new')
        }.get(id_)
    )
    host = api.post('/v1/os-hosts', json={'name': 'compute-1'})
    assert host.status_code == 201

    def reserve(*flavors):
        return api.post(f'/v1/{path}', headers=ALICE, json={
            **tables.of('RESERVING').get(path, {
                'name': 'x', 'duration': '1h',
                'start_date': '2030-01-01 00:00',
                'latest_start_date': '2030-01-01 01:00',
            }),
            'reservations': [
                {
                    'resource_type': 'flavor:instance', 'amount': 1,
                    'flavor_id': each,
                }
                for each in flavors
            ],
        })

    for _ in range(2):
        assert reserve('new').status_code in (200, 201, 202)
    refused = reserve('nothing', 'nothing else')
    assert refused.status_code == 400
    assert "flavor 'nothing' not found" in refused.text
    assert asked == ['new', 'nothing']
