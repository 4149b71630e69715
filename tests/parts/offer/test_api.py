# SPDX-License-Identifier: Apache-2.0
"""Offers, with the real manager and ledger."""

import pytest

from blazar_sched.parts.offer.search import OfferSearch
from blazar_sched.service.ledger import at_one_revision
from tests.functional.api import test_search
from tests.functional.api.test_search import ALICE
from tests.functional.api.test_search import BOB
from tests.functional.api.test_search import book
from tests.functional.api.test_search import book_hours
from tests.functional.api.test_search import create
from tests.functional.api.test_search import created
from tests.functional.api.test_search import FIRST
from tests.functional.api.test_search import HOST
from tests.functional.api.test_search import HOSTS
from tests.functional.api.test_search import HOUR
from tests.functional.api.test_search import SECOND
from tests.functional.api.test_search import text
from tests.functional.api.test_search import V1_1
from tests.functional.manager import test_parts

between = test_search.between
without = test_parts.without


def ask(api, *reservations, headers=ALICE, status=200, **body):
    body = {
        'reservations': list(reservations or [HOST]), 'duration': '2h',
        'start_date': text(FIRST), 'distance': '1s', **body,
    }
    answer = api.post(
        '/v1/offers', headers=headers,
        json={name: value for name, value in body.items() if value != ''},
    )
    assert answer.status_code == status, answer.text
    return answer.json


def windows(offered):
    return [
        (offer['start_date'], offer['end_date']) for offer in offered['offers']
    ]


def numbers(offered):
    return [
        [each['available'] for each in offer['reservations']]
        for offer in offered['offers']
    ]


@pytest.mark.row('F26')
def test_the_earliest_window(api):
    book_hours(api, HOSTS, 1, 3)
    offered = ask(api, limit=1)
    start, end = FIRST + 3 * HOUR, FIRST + 5 * HOUR
    assert offered['offers'] == [{
        'id': None, 'held_until': None, 'alternative': 0, 'limited_by': None,
        'start_date': text(start), 'end_date': text(end),
        'reservations': [{'resource_type': 'physical:host', 'available': 1}],
    }]
    assert offered['searched_until'] is None
    assert 'nearest' not in offered
    # A second earlier there is no room, and in the window there is.
    earlier = text(start - SECOND), text(end - SECOND)
    assert book(api, HOST, start=earlier[0], end=earlier[1]) == 409
    assert book(api, HOST, start=text(start), end=text(end)) == 201


def test_alternatives(api):
    book_hours(api, HOST, 0, 3)
    small = {
        'resource_type': 'flavor:instance', 'flavor_id': 'm1.small',
        'amount': 8,
    }

    offered = ask(
        api, HOSTS, alternatives=[[small], [HOST]], limit=3, distance='1d'
    )

    found = [
        (offer['start_date'], offer['alternative'], *number)
        for offer, number in zip(
            offered['offers'], numbers(offered), strict=True
        )
    ]
    assert found == [
        (text(FIRST), 1, 8),
        (text(FIRST), 2, 1),
        (text(FIRST + 3 * HOUR), 0, 2),
    ]


def test_starts_that_people_want(api):
    book_hours(api, HOSTS, 0, 3)
    daily = ask(api, align='09:00 Europe/Berlin', limit=2, distance='1d')
    hourly = ask(
        api, align='1h', limit=1, start_date=text(FIRST + 3 * HOUR + SECOND)
    )
    assert [start for start, _ in windows(daily)] == [
        '2030-01-01T08:00:00Z', '2030-01-02T08:00:00Z',
    ]
    assert windows(hourly)[0][0] == text(FIRST + 4 * HOUR)


def test_the_range_is_kept(api):
    book_hours(api, HOSTS, 0, 3)
    until = {'latest_start_date': text(FIRST + 3 * HOUR - SECOND)}
    assert ask(api, **until)['offers'] == []
    until = {'latest_start_date': text(FIRST + 3 * HOUR)}
    assert len(ask(api, **until)['offers']) == 1
    until = {'latest_end_date': text(FIRST + 5 * HOUR - SECOND)}
    assert ask(api, **until)['offers'] == []


def test_nearest_window_is_shown_if_there_is_no_offer(api):
    book_hours(api, HOST, 1, 3)
    offered = ask(api, HOSTS, latest_start_date=text(FIRST))
    assert offered['offers'] == []
    assert offered['nearest'] == {
        'reservation': 0, 'available': 1, 'duration': 3600,
        'message': '2 hosts are needed, 1 is free',
    }


def test_each_project_is_offered_what_it_could_reserve(api):
    assert ask(api, HOSTS)['offers']
    assert ask(api, HOSTS, headers=BOB)['offers'] == []


def test_a_commit_meanwhile_begins_the_search_anew(api, service, monkeypatch):
    """The offers are those of one revision, which nobody else may count."""
    read = service.manager.ledger.read_replica
    busy = [1]

    def read_replica(query):
        found = read(query)
        if busy:
            busy.pop()
            book_hours(api, HOSTS, 0, 3)
        return found

    monkeypatch.setattr(service.manager.ledger, 'read_replica', read_replica)
    offered = ask(api, limit=2, distance='1h')
    assert windows(offered)[0][0] == text(FIRST + 3 * HOUR)
    assert offered.keys() == {'offers', 'searched_until'}


def test_commits_without_end_do_not_stop_the_search(api, service, monkeypatch):
    read = service.manager.ledger.read_replica
    hours = iter(range(0, 1000, 2))

    def read_replica(query):
        hour = next(hours)
        book_hours(api, HOST, hour, hour + 1)
        return read(query)

    monkeypatch.setattr(service.manager.ledger, 'read_replica', read_replica)
    assert len(ask(api, HOST)['offers']) == 6


class TestBudget(test_search.Budget):
    @pytest.mark.parametrize('best', ['earliest', 'longest', 'most'])
    def test_offers(self, api, service, best):
        offered = ask(api, HOST, HOST, best=best)
        assert offered['searched_until'] < text(FIRST + 20 * HOUR)
        assert offered['offers'] == []
        assert len(service.reads) <= 8

    def test_alternatives_share_it(self, api, service):
        """The second is searched for, however long the first one takes."""
        tried = []
        search = OfferSearch.best

        def best(self, *args):
            before = len(service.reads)
            found = search(self, *args)
            tried.append(len(service.reads) - before)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(OfferSearch, 'best', best)
            ask(api, HOST, HOST, alternatives=[[HOST, HOST]])
        assert tried == [3, 3]


@pytest.mark.parametrize('body, field', [
    ({'duration': '0s'}, 'duration'),
    ({'duration': -1}, 'duration'),
    ({'duration': True}, 'duration'),
    ({'duration': 'long'}, 'duration'),
    ({'duration': ''}, 'duration'),
    ({'max_duration': '1h'}, 'max_duration'),
    ({'start_date': '2020-01-01 00:00'}, 'start_date'),
    ({'latest_start_date': '2029-12-31 23:59'}, 'latest_start_date'),
    ({'latest_end_date': 'never'}, 'latest_end_date'),
    ({'align': '09:00 Nowhere/Land'}, 'align'),
    ({'align': '25:00 UTC'}, 'align'),
    ({'best': 'cheapest'}, 'best'),
    ({'limit': 0}, 'limit'),
    ({'limit': 21}, 'limit'),
    ({'distance': 'x'}, 'distance'),
    ({'reservations': []}, 'reservations'),
    ({'alternatives': [[]]}, 'alternatives'),
    ({'hold': '0s'}, 'hold'),
    ({'hold': '61m'}, 'hold'),
])
def test_invalid_search_is_refused_by_field(api, body, field):
    refused = ask(api, status=400, **body)
    assert field in refused['error_message']


@pytest.mark.parametrize('align', ['', '1h', '23:59 Pacific/Apia'])
@pytest.mark.parametrize('body', [
    {'distance': '36525d'},
    # The last time that there is, 2^32 s, is 06:28:16 on this day.
    {'start_date': '2106-02-07 04:28'},
    {'start_date': '2106-02-07 06:20', 'duration': '1s'},
    {'latest_start_date': '2106-02-07 06:28', 'distance': '30000d'},
    {'duration': '1s', 'max_duration': '36525d', 'best': 'longest'},
    {'latest_start_date': '2106-02-07 06:28', 'best': 'most'},
])
def test_the_greatest_numbers_are_answered(api, body, align):
    found = ask(api, align=align, **body)
    starts = [offer['start_date'] for offer in found['offers']]
    assert starts == sorted(set(starts))


def accept(api, offer, headers=ALICE, name='night-run', query='', **more):
    return api.post(f'/v1/leases{query}', headers=headers, json={
        'name': name, 'offer': offer['id'], **more,
    })


def held(api, headers=ALICE):
    answer = api.get('/v1/offers', headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json['offers']


@pytest.fixture
def offer(api):
    """An offer of both hosts, which p1 holds for ten minutes."""
    return ask(api, HOSTS, hold='10m')['offers'][0]


class TestHold:
    """Offers that are held, and accepted or deleted by the project."""

    def test_a_held_offer_is_shown_to_its_project(self, api, offer):
        searched = ('alternative', 'limited_by')
        shown = {k: v for k, v in offer.items() if k not in searched}
        shown['project_id'] = 'p1'
        path = f'/v1/offers/{offer["id"]}'
        assert held(api) == [shown]
        answer = api.get(path, headers=ALICE)
        assert answer.json == {'offer': shown}
        assert held(api, BOB) == []
        assert api.get(path, headers=BOB).status_code == 404
        assert api.delete(path, headers=BOB).status_code == 404
        assert accept(api, offer, BOB).status_code == 409

    def test_no_key_of_a_client_stands_in_the_way(self, api, offer):
        created(create(api, headers={
            **ALICE, 'Idempotency-Key': f'offer {offer["id"]}',
        }))
        assert accept(api, offer).status_code == 201

    def test_acceptance(self, api, offer):
        assert book(
            api, HOST, start=offer['start_date'], end=offer['end_date']
        ) == 409
        lease = accept(api, offer).json['lease']
        assert lease['id'] == offer['id']
        assert (lease['name'], lease['status']) == ('night-run', 'PENDING')
        for name in ('start_date', 'end_date'):
            assert lease[name] == offer[name]
        shown = api.get(f'/v1/leases/{lease["id"]}', headers=ALICE)
        assert len(shown.json['lease']['reservations'][0]['hosts']) == 2
        assert held(api) == []
        # The client that has lost the response gets the same response again.
        assert accept(api, offer).json['lease']['id'] == lease['id']
        assert accept(api, offer, name='another').status_code == 409

    @pytest.mark.parametrize('field, value', [
        ('start_date', 'now'), ('end_date', '2030-01-02 00:00'),
        ('duration', '1h'), ('reservations', [HOST]), ('align', '1h'),
    ])
    def test_the_offer_settles_what_is_leased(self, api, offer, field, value):
        refused = accept(api, offer, **{field: value})
        assert refused.status_code == 400
        assert field in refused.json['error_message']

    def test_an_administrator_sees_whose_the_offer_is(self, api, offer):
        [shown] = held(api, V1_1)
        assert (shown['id'], shown['project_id']) == (offer['id'], 'p1')

    def test_version_1_0_knows_no_offers(self, api, offer):
        old = {'X-Auth-Token': 'alice:p1'}
        assert api.get('/v1/offers', headers=old).status_code == 404
        assert accept(api, offer, old).status_code == 400

    @pytest.mark.parametrize('commits', [1, 2, 100])
    def test_a_commit_between_search_and_hold(self, api, between, commits):
        """The held window has room, however many commits come in between."""
        between(range(0, 3 * commits, 3))
        offer = ask(api, HOSTS, hold='10m')['offers'][0]
        seen = min(commits, 3)
        assert offer['start_date'] == text(FIRST + (3 * seen - 1) * HOUR)
        assert accept(api, offer).status_code == 201

    def test_control_without_a_look_at_the_revision(
        self, api, between, monkeypatch
    ):
        monkeypatch.setattr(at_one_revision, 'confirm', lambda *_: None)
        between([0])
        assert 'error_message' in ask(api, HOSTS, hold='10m', status=409)


def test_without_the_part_no_lease_names_an_offer(without):
    api = without('offer')
    refused = api.post('/v1/leases', headers=ALICE, json={
        'name': 'night-run', 'offer': 'o1',
    })
    assert refused.status_code == 400
    assert refused.json['error_message'].startswith('offer is unknown')
    shown = api.get('/openapi', headers=ALICE).text
    assert 'Id of a held offer' not in shown
