# SPDX-License-Identifier: Apache-2.0
"""The list of flavors over REST, with the real manager and ledger."""

import dataclasses

import pytest

from blazar_sched.domain.flavor import Flavor
from blazar_sched.replica import wire

V1_5 = {'OpenStack-API-Version': 'reservation 1.5'}
ALICE = {**V1_5, 'X-Auth-Token': 'alice:p1'}
BOB = {**V1_5, 'X-Auth-Token': 'bob:p2'}
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
    answer = api.simulate_get('/v1/flavors', headers=headers)
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


def test_before_1_5_there_is_no_list(flavors):
    old = {**ALICE, 'OpenStack-API-Version': 'reservation 1.4'}
    answer = flavors(SMALL).simulate_get('/v1/flavors', headers=old)
    assert answer.status_code == 404
