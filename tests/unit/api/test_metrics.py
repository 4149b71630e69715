# SPDX-License-Identifier: Apache-2.0
"""Requests are counted by route, whatever their result."""

import pytest

from blazar_sched.service import metrics
from blazar_sched.service.api import deploy
from tests import loopback

ALICE = {'X-Auth-Token': 'alice:p1'}
LEASE = '/v1/leases/{lease_id}'


@pytest.fixture
def counted():
    return metrics.new()


@pytest.fixture
def api(conf, manager, counted):
    return loopback.client(deploy.deploy(conf, manager, counted))


@pytest.fixture
def requests(counted):
    def requests(route, method, status):
        return counted.registry.get_sample_value(
            f'{metrics.REQUESTS.name}_total',
            {'route': route, 'method': method, 'status': status},
        )

    return requests


def test_all_ids_are_one_route(api, manager, lease, requests, counted):
    manager.answers['get_lease'] = lease
    for name in (lease['id'], f'{lease["id"]}.json', 'another'):
        api.get(f'/v1/leases/{name}', headers=ALICE)
    assert requests(LEASE, 'GET', '200') == 3
    assert counted.registry.get_sample_value(
        f'{metrics.REQUEST_SECONDS.name}_count',
        {'route': LEASE, 'method': 'GET'},
    ) == 3


def test_request_without_authentication_counts(api, requests):
    api.get('/v1/leases/x', token=':')
    assert requests(LEASE, 'GET', '401') == 1


def test_a_fault_counts(api, manager, requests):
    manager.answers['get_lease'] = RuntimeError('on purpose')
    assert api.get('/v1/leases/x', headers=ALICE).status_code == 500
    assert requests(LEASE, 'GET', '500') == 1


def test_what_nobody_knows_beforehand_makes_no_series(api, requests):
    for n in range(3):
        api.request('TRACE', f'/v1/none/{n}', headers=ALICE)
        api.get(f'/v1/none/{n}', headers=ALICE)
    assert requests('other', 'other', '404') == 3
    assert requests('other', 'GET', '404') == 3


def test_load_balancers_count_too(api, requests):
    api.get('/healthcheck')
    assert requests('/healthcheck', 'GET', '200') == 1


def test_metrics_are_not_on_the_public_port(api):
    answer = api.get('/metrics', headers=ALICE)
    assert answer.status_code == 404
