# SPDX-License-Identifier: Apache-2.0
"""Long polls: the response comes once a lease has a status."""

from concurrent import futures
import threading

import pytest

from blazar_sched.service.api import waiting
from tests.functional.api.test_api import lease
from tests.functional.api.test_api import refused
from tests.functional.api.test_api import UNKNOWN
from tests.functional.api.test_api import V1_1
from tests.waiting import until


@pytest.fixture
def show(api):
    """show(lease_id, token, **query) -> the response of a GET."""

    def show(lease_id, token='alice:p1', threads=True, **query):
        return api.get(
            f'/v1/leases/{lease_id}', params=query, params_csv=True,
            headers={**V1_1, 'X-Auth-Token': token},
            extras={'wsgi.multithread': threads},
        )

    return show


@pytest.fixture
def pending(api):
    body = {
        'name': 'later', 'start_date': '2030-01-01 00:00', 'end_date': None,
        'reservations': [],
    }
    return {
        token: api.post(
            '/v1/leases', json=body, headers={**V1_1, 'X-Auth-Token': token}
        ).json['lease']['id']
        for token in ('alice:p1', 'bob:p2')
    }


def seen(answer):
    assert answer.status_code == 200, answer.text
    return answer.json['lease']['status'], answer.headers.get('retry-after')


@pytest.mark.row('F100')
def test_a_response_waits_for_the_status(api, show):
    answer = api.post('/v1/leases', headers=V1_1, json={
        'name': 'now', 'duration': '1h',
        'reservations': lease()['reservations'],
    })
    id_ = answer.json['lease']['id']
    waited = show(id_, 'admin', wait_for='ERROR,ACTIVE')
    assert seen(waited) == ('ACTIVE', None)
    assert waited.json['lease']['reservations'][0]['hosts']
    with futures.ThreadPoolExecutor() as pool:
        ended = pool.submit(show, id_, 'admin', wait_for='TERMINATED')
        api.put(f'/v1/leases/{id_}', json={'end_date': 'now'}, headers=V1_1)
        assert seen(ended.result()) == ('TERMINATED', None)


def test_a_lease_that_is_deleted_is_waited_for_no_more(api, show, pending):
    with futures.ThreadPoolExecutor() as pool:
        gone = pool.submit(show, pending['alice:p1'], wait_for='ACTIVE')
        api.delete(f'/v1/leases/{pending["alice:p1"]}')
        assert gone.result().status_code == 404


def test_few_requests_wait_and_the_others_are_answered_at_once():
    """Of 16 threads 4 may wait, 2 of them for one project."""
    requests = waiting.Waiting(16)
    has_place, status = set(), ['PENDING']

    def look():
        has_place.add(threading.get_ident())
        return status[-1]

    def ask(project, timeout=60):
        wait = waiting.Wait(['ACTIVE'], timeout, alone=False)
        return requests.until(wait, project, look)

    two = 'p1', 'p2'
    with futures.ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, project) for project in two * 2]
        until(lambda: len(has_place) == 4)
        assert [ask(project) for project in (*two, 'other')] == [5, 5, 5]
        status.append('ACTIVE')
        assert {each.result() for each in asked} == {0}
    status.append('PENDING')
    assert ask('other', timeout=1) == 0


def test_a_thousand_requests_of_a_project_delay_its_own_repetitions_alone():
    requests = waiting.Waiting(4)
    wait = waiting.Wait(['ACTIVE'], 60, alone=True)

    def ask(project):
        return requests.until(wait, project, str)

    own = [ask('p1') for _ in range(1000)]
    assert own == sorted(own)
    assert (own[0], 40 < own[-1] <= 60, ask('p2')) == (5, True, 5)


def test_the_only_thread_of_a_process_does_not_wait(show, pending):
    asked = show(pending['alice:p1'], threads=False, wait_for='ACTIVE')
    assert seen(asked) == ('PENDING', '5')


def test_another_projects_lease_is_not_waited_for(show, pending):
    for id_ in pending['bob:p2'], UNKNOWN:
        assert show(id_, wait_for='ACTIVE').status_code == 404


@pytest.mark.parametrize('query, field', [
    ({'wait_for': 'active'}, 'wait_for'),
    ({'wait_for': 'ACTIVE,'}, 'wait_for'),
    ({'wait_for': ''}, 'wait_for'),
    ({'wait_for': 'ACTIVE', 'timeout': 0}, 'timeout'),
    ({'wait_for': 'ACTIVE', 'timeout': 61}, 'timeout'),
    ({'timeout': 1}, 'timeout'),
])
def test_a_wait_of_another_form_is_refused(show, pending, query, field):
    refused(show(pending['alice:p1'], **query), 400, field)
