# SPDX-License-Identifier: Apache-2.0
"""The search for windows: leases at the first start, and refusals.

With the real manager and ledger.
"""

from concurrent import futures
import contextlib
import datetime
import threading
from types import SimpleNamespace

import pytest

from blazar_sched.service.booking import search
from blazar_sched.service.ledger import at_one_revision
from tests import tables

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ALICE = {**V1_1, 'X-Auth-Token': 'alice:p1'}
BOB = {**V1_1, 'X-Auth-Token': 'bob:p2'}
HOUR = datetime.timedelta(hours=1)
SECOND = datetime.timedelta(seconds=1)
FIRST = datetime.datetime(2030, 1, 1)
HOST = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
HOSTS = {'resource_type': 'physical:host', 'min': 2, 'max': 2}


def text(at):
    return f'{at.isoformat()}Z'


def book(api, *reservations, start, end, headers=ALICE):
    """Return the status of the creation of a lease."""
    return api.post('/v1/leases', headers=headers, json={
        'name': 'night-run', 'start_date': start, 'end_date': end,
        'reservations': list(reservations),
    }).status_code


def book_hours(api, reservation, first, last):
    assert book(
        api, reservation, start=text(FIRST + first * HOUR),
        end=text(FIRST + last * HOUR),
    ) == 201


def create(api, *reservations, headers=ALICE, query='', **body):
    """Return the answer to the creation of a lease in a range of starts."""
    body = {
        'name': 'night-run', 'start_date': text(FIRST), 'duration': '2h',
        'latest_start_date': text(FIRST + 24 * HOUR),
        'reservations': list(reservations or [HOSTS]), **body,
    }
    return api.post(f'/v1/leases{query}', headers=headers, json={
        name: value for name, value in body.items() if value != ''
    })


def update(api, lease, hours, **more):
    """Request that a lease ends so many hours after the first hour."""
    return api.put(f'/v1/leases/{lease["id"]}', headers=ALICE, json={
        'end_date': text(FIRST + hours * HOUR), **more,
    })


def created(answer):
    assert answer.status_code == 201, answer.text
    lease = answer.json['lease']
    return lease['start_date'], lease['end_date']


class Budget:
    """A search that takes too long stops, and says where."""

    @pytest.fixture
    def service(self, service, monkeypatch):
        """Each query of the replica takes a fifth of the budget."""
        ledger, reads = service.manager.ledger, []
        service.reads = reads
        for name in 'read_replica', 'dry_run':
            real = getattr(ledger, name)
            monkeypatch.setattr(
                ledger, name, lambda *args, real=real, **values:
                reads.append(None) or real(*args, **values)
            )
        monkeypatch.setattr(
            service.manager.leases._search, 'thread_time',
            lambda: len(reads) * search.SECONDS / 5,
        )
        return service

    @pytest.fixture
    def api(self, api, service):
        """Each of two reservations has room at once, and both only later."""
        for hour in range(20):
            book_hours(api, HOST, hour, hour + 1)
        service.reads.clear()
        return api


class TestBudget(Budget):
    def test_a_lease_at_the_first_start(self, api, service):
        refused = create(api, HOST, HOST)
        assert refused.status_code == 409
        assert 'the search was given up' in refused.json['error_message']
        # The search, and that of the offer.
        assert len(service.reads) <= 12
        assert create(api, HOST).status_code == 201

    def test_the_offer_of_a_refusal(self, api, service):
        refused = create(api, HOST, HOST, latest_start_date='')
        assert refused.json['offer']['start_date'] is None
        assert len(service.reads) <= 6

    @pytest.fixture
    def lease(self, api, service):
        """A lease that can be prolonged by 999 hours."""
        lease = create(api, HOST).json['lease']
        book_hours(api, HOSTS, 1000, 1001)
        service.reads.clear()
        return lease

    def test_an_extension(self, api, service, lease):
        path = f'/v1/leases/{lease["id"]}/extension'
        shown = api.get(path, headers=ALICE).json['extension']
        assert shown['searched_until'] > shown['end_date']
        assert shown['limited_by'] is None
        assert len(service.reads) <= 8

    def test_an_update_as_far_as_possible(self, api, lease):
        """The lease is not prolonged by the few seconds that were tried."""
        answer = update(api, lease, 2000, as_far_as_possible=True)
        assert answer.status_code == 503
        assert answer.headers['Retry-After']
        assert 'the search' in answer.json['error_message']
        path = f'/v1/leases/{lease["id"]}'
        shown = api.get(path, headers=ALICE).json['lease']
        assert shown['end_date'] == lease['end_date']
        # A single try is enough for this end.
        answer = update(api, lease, 900, as_far_as_possible=True)
        assert answer.status_code == 200

    def test_the_offer_of_a_refused_end(self, api, lease):
        refused = update(api, lease, 2000)
        assert refused.status_code == 409
        assert refused.json['offer']['end_date'] is None


class TestTurns:
    """Few searches run or wait at a time, and nothing else waits for them."""

    @pytest.fixture
    def turn(self, service):
        return service.manager.search.turn

    @pytest.fixture
    def post(self, api, service, monkeypatch):
        """post(most) -> the futures of 16 searches, and go_on.

        The first of the searches wait in the manager until go_on is set.
        """
        found = at_one_revision.find
        go_on, running = threading.Event(), threading.Semaphore(0)

        def slow(*args):
            running.release()
            assert go_on.wait(30)
            return found(*args)

        monkeypatch.setattr(at_one_revision, 'find', slow)
        with futures.ThreadPoolExecutor(16) as pool:
            yield SimpleNamespace(go_on=go_on, running=running, answers=[
                pool.submit(create, api, HOST, query='?dry_run=true')
                for _ in range(16)
            ])
            go_on.set()

    def test_of_sixteen_searches_one_runs_and_three_wait(self, api, post):
        """One search runs, three wait, and others are refused at once."""
        most = search.MAX_PROJECT_SEARCHES
        ended = futures.as_completed(post.answers, timeout=30)
        refused = {next(ended).result().status_code for _ in range(16 - most)}
        assert refused == {429}
        assert post.running.acquire(timeout=30)
        assert not post.running.acquire(blocking=False)
        # Others go on meanwhile.
        assert api.get('/v1/leases', headers=BOB).status_code == 200
        book_hours(api, HOST, 0, 1)
        post.go_on.set()
        assert {each.result().status_code for each in ended} == {201}

    @pytest.fixture
    def no_turns(self, service, monkeypatch):
        monkeypatch.setattr(
            service.manager.search, 'turn',
            lambda project_id: contextlib.nullcontext(),
        )

    def test_without_turns_all_searches_run(self, no_turns, post):
        for _ in range(16):
            assert post.running.acquire(timeout=30)

    def test_the_searches_of_all_projects_are_counted(
        self, api, turn, monkeypatch
    ):
        monkeypatch.setattr(search, 'MAX_SEARCHES', 1)
        with turn('p2'):
            refused = create(api)
        assert refused.status_code == 429
        assert refused.json['error_name'] == 'TooManyRequests'
        created(create(api))

    def test_a_search_waits_no_longer_than_its_caller(
        self, api, turn, monkeypatch
    ):
        monkeypatch.setattr(search, 'WAIT', 0.0)
        with turn('p2'):
            assert create(api).status_code == 429
        created(create(api))

    def test_refusals_need_no_turn(self, api, turn, monkeypatch):
        """A refusal has no offer then."""
        monkeypatch.setattr(search, 'MAX_PROJECT_SEARCHES', 1)
        book_hours(api, HOSTS, 0, 2)
        with turn('p1'):
            refused = create(api, latest_start_date='')
        assert refused.status_code == 409, refused.text
        assert 'offer' not in refused.json
        assert 'offer' in create(api, latest_start_date='').json


@pytest.mark.row('F30', 'F31')
def test_a_lease_begins_at_the_first_start_with_room(api):
    book_hours(api, HOST, 1, 3)
    asked = {'latest_start_date': text(FIRST + 3 * HOUR)}
    expected = text(FIRST + 3 * HOUR), text(FIRST + 5 * HOUR)
    assert created(create(api, query='?dry_run=true', **asked)) == expected
    assert created(create(api, **asked)) == expected
    # The next one would have to wait for the first one.
    refused = create(api, **asked)
    assert refused.status_code == 409
    assert refused.json['offer']['start_date'] == text(FIRST + 5 * HOUR)


def test_a_lease_begins_at_an_aligned_start(api):
    asked = {
        'align': '09:00 Europe/Berlin',
        'latest_start_date': text(FIRST + 32 * HOUR),
    }
    [first, second] = [created(create(api, **asked)) for _ in range(2)]
    assert first[0] == '2030-01-01T08:00:00Z'
    assert second[0] == '2030-01-02T08:00:00Z'
    # There is room at another start only.
    assert create(api, **asked).status_code == 409


@pytest.mark.row('F10')
def test_a_lease_is_as_long_as_its_duration(api):
    lease = create(api, latest_start_date='').json['lease']
    assert lease['end_date'] == text(FIRST + 2 * HOUR)
    path = f'/v1/leases/{lease["id"]}'
    longer = api.put(path, headers=ALICE, json={'duration': '5h'})
    assert longer.json['lease']['end_date'] == text(FIRST + 5 * HOUR)
    # The length is kept at another start.
    later = api.put(path, headers=ALICE, json={
        'start_date': text(FIRST + HOUR), 'duration': '5h',
    })
    assert later.json['lease']['end_date'] == text(FIRST + 6 * HOUR)


@pytest.fixture
def between(api, service, monkeypatch):
    """between(hours) books two hours after each search, from each hour on."""

    def between(hours):
        hours = iter(hours)
        found_alone = at_one_revision.find

        def found(*args):
            result = found_alone(*args)
            hour = next(hours, None)
            if hour is not None:
                book_hours(api, HOST, hour, hour + 2)
            return result

        monkeypatch.setattr(at_one_revision, 'find', found)

    return between


@pytest.mark.parametrize('commits', [1, 2, 100])
def test_a_commit_between_search_and_booking(api, between, commits):
    """The first start is that of the revision at which the lease is booked.

    However many commits come in between, an end is found.
    """
    between(range(0, 3 * commits, 3))
    start, _ = created(create(api, HOSTS))
    seen = min(commits, 3)
    assert start == text(FIRST + (3 * seen - 1) * HOUR)


def test_control_without_a_look_at_the_revision(api, between, monkeypatch):
    monkeypatch.setattr(at_one_revision, 'confirm', lambda *_: None)
    between([0])
    assert create(api, HOSTS).status_code == 409


@pytest.mark.parametrize('body, field', [
    ({'duration': ''}, 'latest_start_date'),
    ({'duration': '0s'}, 'duration'),
    ({'duration': '200y'}, 'duration'),
    ({'end_date': '2030-01-02 00:00'}, 'duration'),
    ({'latest_start_date': '2029-01-01 00:00'}, 'latest_start_date'),
    ({'latest_start_date': '', 'align': '1h'}, 'align'),
    ({'align': 'noon'}, 'align'),
    ({'align': '1w', 'latest_start_date': '2030-01-01 01:00'}, 'align'),
    ({'before_end_date': '2029-01-01 00:00'}, 'before_end_date'),
])
def test_a_range_that_cannot_be_is_refused_by_name(api, body, field):
    refused = create(api, **body)
    assert refused.status_code == 400
    assert field in refused.json['error_message']


@pytest.mark.parametrize('body', [
    {'duration': '2h'}, {'latest_start_date': '2030-01-02 00:00'},
])
def test_version_1_0_takes_no_range(api, body):
    refused = create(api, **{
        'duration': '', 'latest_start_date': '',
        'end_date': '2030-01-01 05:00', **body,
    }, headers={'X-Auth-Token': 'alice:p1'})
    assert refused.status_code == 400


INSTANCE = {
    'resource_type': 'virtual:instance', 'vcpus': 1, 'memory_mb': 1,
    'disk_gb': 1, 'amount': 1, 'affinity': None,
}
# What can never be met, and what a refusal says about it.
NEVER = {
    '50 hosts are needed, 2 such hosts are registered':
        {**HOST, 'min': 50, 'max': 50},
    '2 hosts are needed, 1 such host is registered':
        {**HOSTS, 'resource_properties': '["==", "$rack", "7"]'},
    'no host meets the requirements':
        {**HOST, 'resource_properties': '["==", "$rack", "77"]'},
    'no host meets the requirements ':
        {**HOST, 'resource_properties': '["==", "$availability_zone", "x"]'},
    'no such host is large enough for an instance':
        {**INSTANCE, 'vcpus': 9999},
    '3 instances are needed, the hosts have room for 2 with one on each host, '
    'even if nothing is on them': {**INSTANCE, 'amount': 3, 'affinity': False},
}


@pytest.mark.parametrize('message', NEVER)
def test_request_that_no_host_can_meet_is_refused_with_the_reason(
    api, message
):
    reservation = NEVER[message]
    message = message.strip()
    dates = {'start_date': text(FIRST), 'end_date': text(FIRST + HOUR)}
    lease = {'name': 'n', **dates, 'reservations': [reservation]}
    for query in ('', 'dry_run=true'):
        refused = api.post(
            '/v1/leases', json=lease, headers=ALICE, query_string=query
        )
        assert refused.json['error_message'] == f'reservations: {message}'
    # The first reservation has room, and is not in the way of the second.
    both = {**lease, 'reservations': [INSTANCE, reservation]}
    refused = api.post('/v1/leases', json=both, headers=ALICE)
    assert refused.json['error_message'] == f'reservations: {message}'

    for path, body in tables.of('RESERVING').items():
        refused = api.post(f'/v1/{path}', headers=ALICE, json={
            **body, 'reservations': [reservation],
        }).json
        said = refused.get('error_message') or (
            f'reservations: {refused["nearest"]["message"]}'
        )
        assert said == f'reservations: {message}'

    lease['reservations'] = [INSTANCE]
    made = api.post('/v1/leases', json=lease, headers=ALICE)
    refused = api.put(
        f'/v1/leases/{made.json["lease"]["id"]}', headers=ALICE,
        json={'reservations': [reservation]},
    )
    assert refused.json['error_message'] == f'reservations: {message}'


def test_without_hosts_a_refusal_says_so(service):
    refused = create(service.api, HOST)
    assert refused.json['error_message'] == (
        'reservations: no host is registered'
    )


def test_refusal_for_reserved_hosts_says_too_few_are_free(api):
    book_hours(api, HOST, 1, 3)
    refused = api.post('/v1/leases', headers=ALICE, json={
        'name': 'n', 'start_date': text(FIRST), 'duration': '2h',
        'reservations': [HOSTS],
    })
    assert refused.json['error_message'] == (
        'reservations: 2 hosts are needed, 1 is free'
    )
