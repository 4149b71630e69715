# SPDX-License-Identifier: Apache-2.0
"""The offer in a refusal for lack of room."""

import jsonschema
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.service.api import microversion
from blazar_sched.service.api import openapi

START = 1_900_000_000
WHOLE = {'reservation': 1, 'available': 2, 'start': START, 'end': START + 3600}


@pytest.fixture
def refused(api, manager):
    """refused(offer, version): request a lease that finds no room."""

    def ask(offer, version):
        manager.answers['create_lease'] = exception.NotEnoughHostsAvailable(
            'no room', field='reservations', offer=offer
        )
        answer = api.post('/v1/leases', json={
            'name': 'n', 'end_date': '2031-01-01 00:00', 'reservations': [],
        }, version=version)
        assert answer.status_code == (400 if version == '1.0' else 409)
        assert answer.json['error_message'] == 'reservations: no room'
        jsonschema.validate(
            answer.json,
            openapi.ERROR.noun(microversion.KNOWN[
                microversion.VERSIONS.index(version)
            ]),
        )
        return answer.json.get('offer')

    return ask


@pytest.mark.parametrize(('offer', 'shown'), [
    (
        WHOLE,
        {
            'reservation': 1, 'available': 2,
            'start_date': '2030-03-17T17:46:40Z',
            'end_date': '2030-03-17T18:46:40Z',
        },
    ),
    (
        {**WHOLE, 'end': window.FOREVER},
        {
            'reservation': 1, 'available': 2,
            'start_date': '2030-03-17T17:46:40Z', 'end_date': None,
        },
    ),
    (
        {**WHOLE, 'start': None, 'end': None},
        {
            'reservation': 1, 'available': 2, 'start_date': None,
            'end_date': None,
        },
    ),
    # There is nothing to offer.
    ({'reservation': 0, 'start': None, 'end': None}, None),
    # A refused change needs another offer than a refused new lease.
    ({'reservation': 0, 'available': 1}, None),
    (None, None),
])
def test_only_complete_offers_are_shown(refused, offer, shown):
    assert refused(offer, '1.1') == shown


def test_version_1_0_asks_for_no_offer_and_shows_none(refused, manager):
    assert refused(WHOLE, '1.0') is None
    assert 'offering' not in manager.calls[-1][1]


def test_the_newest_asks_for_one(refused, manager):
    refused(None, '1.1')
    assert manager.calls[-1][1]['offering'] is True


@pytest.mark.parametrize('version', microversion.VERSIONS)
def test_a_change_is_offered_something_from_1_1_on(api, manager, version):
    manager.answers['update_lease'] = exception.NotEnoughHostsAvailable(
        'no room', field='reservations', offer=WHOLE
    )
    answer = api.put(
        '/v1/leases/l1', json={'end_date': '2031-01-01 00:00'}, version=version
    )
    assert answer.status_code == (400 if version == '1.0' else 409)
    offering = version != '1.0'
    assert ('offer' in answer.json) is offering
    [(_, asked)] = manager.calls
    assert ('offering' in asked) is offering
