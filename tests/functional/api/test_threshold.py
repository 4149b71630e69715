# SPDX-License-Identifier: Apache-2.0
"""Thresholds over REST, with the real manager and ledger."""

import pytest


@pytest.fixture
def ask(api):
    """ask(method, path, body) -> the status and the content of the answer."""

    def ask(method, path='', body=None, version='1.1'):
        answer = api.simulate_request(
            method, f'/v1/thresholds{path}', json=body, headers={
                'OpenStack-API-Version': f'reservation {version}',
            },
        )
        return answer.status_code, answer.text and answer.json

    return ask


def test_from_the_creation_to_the_end(ask):
    status, made = ask('POST', body={
        'name': 'rack 7', 'below': 1, 'within': '7d',
        'resource_properties': '["==", "$rack", "7"]',
    })
    assert status == 201
    shown = made['threshold']
    assert shown['since'] == shown['created_at']
    assert {**shown, 'id': '', 'since': '', 'created_at': ''} == {
        'id': '', 'name': 'rack 7', 'project_id': 'admin', 'below': 1,
        'within': 604800, 'resource_properties': '["==", "$rack", "7"]',
        'flavor_id': None, 'free': 1, 'low': False, 'since': '',
        'created_at': '',
    }
    path = f'/{shown["id"]}'
    assert ask('GET', path) == (200, {'threshold': shown})
    assert ask('GET') == (200, {'thresholds': [shown]})
    assert ask('DELETE', path)[0] == 204
    for method in ('GET', 'DELETE'):
        status, error = ask(method, path)
        assert (status, error['error_name']) == (404, 'ThresholdNotFound')
    assert ask('GET') == (200, {'thresholds': []})


def test_of_a_project(ask):
    """compute-2 is for p1 alone."""
    for project, free in (('p1', 2), ('p2', 1)):
        status, made = ask('POST', body={
            'name': 'all', 'below': 1, 'project_id': project,
        })
        assert (status, made['threshold']['free']) == (201, free)
        assert made['threshold']['project_id'] == project


@pytest.mark.parametrize(
    ('values', 'field'),
    [
        ({'name': ''}, 'name'),
        ({'name': 'a\nb'}, 'name'),
        ({'below': 0}, 'below'),
        ({'below': 1.5}, 'below'),
        ({'below': None}, 'below'),
        ({'within': 'soon'}, 'within'),
        ({'within': 0}, 'within'),
        ({'resource_properties': '["=="]'}, 'resource_properties'),
        ({'resource_properties': '["==", "$room", "7"]'}, 'room'),
        ({'flavor_id': 'unknown'}, 'flavor_id'),
        ({'above': 7}, 'above'),
    ],
)
def test_invalid(ask, values, field):
    status, error = ask('POST', body={'name': 'n', 'below': 1, **values})
    assert status == 400, error
    assert field in error['error_message']
    assert ask('GET') == (200, {'thresholds': []})


def test_version_1_0_has_no_thresholds(ask):
    body = {'name': 'n', 'below': 1}
    assert ask('GET', version='1.0')[0] == 404
    assert ask('POST', body=body, version='1.0')[0] == 404
