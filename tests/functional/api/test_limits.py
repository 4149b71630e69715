# SPDX-License-Identifier: Apache-2.0
"""Limits of resource classes over REST, with the real manager and ledger."""

import time

import pytest

from blazar_sched.service.enforcement import Enforcement

P1 = {'X-Auth-Token': 'alice:p1', 'OpenStack-API-Version': 'reservation 1.1'}
HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
SLOTS = {
    'resource_type': 'virtual:instance', 'amount': 1, 'vcpus': 1,
    'memory_mb': 60000, 'disk_gb': 1, 'affinity': None,
}
OPTIONS = """[enforcement]
enabled_filters = MaxResourcesFilter
max_resources_per_project = VCPU:16
resource_weights = MEMORY_MB:0.0001
max_weight_per_lease = 7
max_weight_hours_per_project = 27
"""


@pytest.fixture
def options():
    return OPTIONS


def post(api, path, reservation, **values):
    body = {'name': 'lease', 'reservations': [reservation], **values}
    return api.simulate_post(f'/v1/{path}', headers=P1, json=body)


def create(api, reservation, end='04:00', query=''):
    return post(
        api, f'leases{query}', reservation, start_date='2100-01-01 00:00',
        end_date=f'2100-01-01 {end}',
    )


def refusal(answer):
    """Return the name and the text of a refusal."""
    assert answer.status_code == 400, answer.text
    return answer.json['error_name'], answer.json['error_message']


def test_a_whole_host_counts_with_its_inventory(api):
    for query in ('?dry_run=true', ''):
        assert create(api, HOST, query=query).status_code == 201
    for more in (SLOTS, HOST):
        for query in ('', '?dry_run=true'):
            assert refusal(create(api, more, query=query)) == (
                'MaxResources',
                'reservations: the leases of a project may reserve at most '
                '16 of VCPU',
            )
    leases = api.simulate_get('/v1/leases', headers=P1).json['leases']
    assert len(leases) == 1


def test_weights_have_limits(api):
    assert refusal(create(api, {**SLOTS, 'amount': 2})) == (
        'MaxWeight', 'reservations: a lease may have a weight of at most 7',
    )
    assert refusal(create(api, SLOTS, end='05:00')) == (
        'MaxWeightHours',
        'reservations: the leases of a project may have at most 27 weight x '
        'hours',
    )
    assert create(api, SLOTS).status_code == 201


class TestStart:
    @pytest.fixture
    def options(self, monkeypatch):
        def read(self):
            time.sleep(0.5)
            self._unified = {}

        monkeypatch.setattr(Enforcement, 'sync', read)
        return f'{OPTIONS}unified_limits_interval = 60\n'

    def test_a_manager_that_answers_knows_the_limits_of_keystone(self, api):
        assert create(api, HOST).status_code == 201
