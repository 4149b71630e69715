# SPDX-License-Identifier: Apache-2.0
"""The operator's products, with the real manager and ledger."""

from concurrent import futures
import json

from falcon import testing
import pytest

V1_1 = {'OpenStack-API-Version': 'reservation 1.1'}
ADMIN, ALICE, BOB = (
    {**V1_1, 'X-Auth-Token': token}
    for token in ('admin', 'alice:p1', 'bob:p2')
)
DAY = {'start_date': '2030-01-01 00:00', 'end_date': '2030-01-02 00:00'}
PRODUCTS = [
    {
        'name': 'rack 7', 'resource_type': 'physical:host',
        'resource_properties': ['==', '$$rack', '7'],
        'description': 'A host in rack 7', 'max_duration': 86400,
    },
    {
        'name': 'small', 'resource_type': 'flavor:instance',
        'flavor_id': 'm1.small', 'max_units': 4,
    },
    {
        'name': 'half', 'resource_type': 'virtual:instance', 'vcpus': 8,
        'memory_mb': 1024, 'disk_gb': 1, 'projects': ['p1'],
        'max_duration': 86400,
    },
    {
        'name': 'gone', 'resource_type': 'flavor:instance',
        'flavor_id': 'none',
    },
]
OPTIONS = '[manager]\n' + ''.join(
    f'product = {json.dumps(each)}\n' for each in PRODUCTS
)


@pytest.fixture
def options():
    return OPTIONS


def products(api, headers=ALICE, **query):
    answer = api.simulate_get('/v1/products', headers=headers, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json['products']


def free(api, headers=ALICE, **query):
    """Return what is free of each product on a day."""
    return {
        each['name']: each['free']
        for each in products(api, headers, **{**DAY, **query})
    }


def book(api, headers=ALICE, day=DAY, **reservation):
    return api.simulate_post('/v1/leases', headers=headers, json={
        'name': 'run', **day, 'reservations': [reservation],
    })


def test_a_product_has_what_its_users_need_to_know(api):
    shown, *_ = products(api)
    assert shown == {
        'name': 'rack 7', 'description': 'A host in rack 7',
        'resource_type': 'physical:host', 'vcpus': None, 'memory_mb': None,
        'disk_gb': None, 'flavor_id': None, 'max_duration': 86400,
        'max_units': None, 'free': 1,
    }


@pytest.mark.row('F114')
def test_each_project_sees_its_own_products(api):
    # compute-2 is for p1 alone. At most 4 of the 16 small instances.
    assert free(api) == {'rack 7': 1, 'small': 4, 'half': 4, 'gone': 0}
    assert free(api, BOB) == {'rack 7': 1, 'small': 4, 'gone': 0}


@pytest.mark.row('F28')
def test_what_is_free_is_what_a_lease_can_have_in_the_window(api):
    host = {'resource_type': 'physical:host', 'min': 1, 'max': 1}
    assert book(
        api, BOB, resource_properties='["==", "$rack", "7"]', **host
    ).status_code == 201
    assert free(api) == {'rack 7': 0, 'small': 4, 'half': 2, 'gone': 0}
    assert free(api, end_date='2030-01-03 00:00')['rack 7'] == 0
    later = {'start_date': '2030-01-02 00:00', 'end_date': '2030-01-03 00:00'}
    assert free(api, **later)['rack 7'] == 1
    half = {
        'resource_type': 'virtual:instance', 'vcpus': 8, 'memory_mb': 1024,
        'disk_gb': 1, 'affinity': None,
    }
    assert book(api, ALICE, amount=3, **half).status_code == 409
    assert book(api, ALICE, amount=2, **half).status_code == 201
    assert free(api) == {'rack 7': 0, 'small': 0, 'half': 0, 'gone': 0}


@pytest.mark.parametrize(
    ('query', 'field'),
    [
        ({'start_date': 'friday'}, 'start_date'),
        ({'start_date': '2020-01-01 00:00'}, 'start_date'),
        ({**DAY, 'end_date': '2030-01-01 00:00'}, 'end_date'),
        ({'name': 'small'}, 'name'),
    ],
)
def test_an_invalid_query_is_refused_by_field(api, query, field):
    answer = api.simulate_get('/v1/products', params=query, headers=ALICE)
    assert answer.status_code == 400
    assert answer.json['error_message'].startswith(field)


def reserve(api, product, amount=1, headers=ALICE, day=DAY, **more):
    return book(api, headers, day, product=product, amount=amount, **more)


def refused(answer, status, name, message):
    assert answer.status_code == status, answer.text
    assert answer.json['error_name'] == name
    assert message in answer.json['error_message']


def change(api, lease, reservation=None, headers=ALICE, **values):
    if reservation is not None:
        [known] = lease['reservations']
        values['reservations'] = [{'id': known['id'], **reservation}]
    return api.simulate_put(
        f'/v1/leases/{lease["id"]}', headers=headers, json=values
    )


@pytest.mark.row('F114')
def test_a_product_is_reserved_by_its_name(api):
    lease = reserve(
        api, 'rack 7', on_end='keep', magnetic=True, labels={'a': 'b'}
    ).json['lease']
    [shown] = lease['reservations']
    assert (shown['product'], shown['resource_type']) == (
        'rack 7', 'physical:host'
    )
    assert (shown['min'], shown['max'], shown['resource_properties']) == (
        1, 1, '["==", "$rack", "7"]'
    )
    assert (shown['on_end'], shown['magnetic'], shown['labels']) == (
        'keep', True, {'a': 'b'}
    )
    refused(
        reserve(api, 'rack 7', headers=BOB), 409, 'NotEnoughHostsAvailable',
        '1 host is needed, 0 are free',
    )
    [half] = reserve(api, 'half', 2).json['lease']['reservations']
    assert (half['amount'], half['vcpus'], half['product']) == (2, 8, 'half')
    [plain] = book(
        api, resource_type='flavor:instance', flavor_id='m1.small', amount=1,
        day={'start_date': '2031-01-01 00:00', 'duration': '1h'},
    ).json['lease']['reservations']
    assert plain['product'] is None


@pytest.mark.parametrize(
    ('reservation', 'headers', 'message'),
    [
        ({'product': 'none', 'amount': 1}, ALICE, "product 'none' not found"),
        ({'product': 'half', 'amount': 1}, BOB, "product 'half' not found"),
        ({'product': 'é' * 99, 'amount': 1}, ALICE, 'not found'),
        ({'product': 'small'}, ALICE, 'amount'),
        ({'product': 'small', 'amount': 0}, ALICE, 'amount'),
        ({'product': 7, 'amount': 1}, ALICE, 'product'),
        ({'product': None, 'amount': 1}, ALICE, 'product'),
        ({'product': 'small', 'amount': 1, 'vcpus': 64}, ALICE, 'vcpus'),
        ({'product': 'small', 'amount': 1, 'magnetic': True}, ALICE,
         'magnetic is not allowed'),
        ({'product': 'gone', 'amount': 1}, ALICE, "flavor 'none' not found"),
    ],
)
def test_a_wrong_product_is_refused_by_field(
    api, reservation, headers, message
):
    answer = book(api, headers, **reservation)
    refused(answer, 400, 'InvalidInput', message)
    assert api.simulate_get('/v1/leases', headers=ADMIN).json['leases'] == []


@pytest.mark.row('F76')
def test_the_longest_duration_holds_for_every_change(api):
    long = {**DAY, 'end_date': '2030-01-02 00:00:01'}
    for day in (long, {**DAY, 'end_date': None}):
        refused(
            reserve(api, 'rack 7', day=day), 400, 'MaxLeaseDuration',
            'a lease of rack 7 may last at most 86400 seconds',
        )
    lease = reserve(api, 'rack 7').json['lease']
    refused(
        change(api, lease, end_date='2030-01-03 00:00'), 400,
        'MaxLeaseDuration', 'rack 7',
    )
    # A long lease of something else cannot get it either.
    other = reserve(api, 'small', day=long).json['lease']
    refused(
        change(api, other, reservations=[{'product': 'half', 'amount': 1}]),
        400, 'MaxLeaseDuration', 'half',
    )
    extended = api.simulate_put(
        f'/v1/leases/{lease["id"]}', headers=ALICE,
        json={'end_date': '2030-02-01 00:00', 'as_far_as_possible': True},
    )
    assert extended.json['error_name'] == 'MaxLeaseDuration'


@pytest.mark.row('F76')
def test_all_projects_share_the_units_of_a_time(api):
    lease = reserve(api, 'small', 3).json['lease']
    assert free(api, BOB)['small'] == 1
    refused(
        reserve(api, 'small', 2, BOB), 400, 'MaxUnits',
        'there are at most 4 of small at a time, 3 are taken',
    )
    assert reserve(api, 'small', 1, BOB).status_code == 201
    assert free(api)['small'] == 0
    # At another time they are free.
    after = {'start_date': '2030-01-02 00:00', 'end_date': '2030-01-03 00:00'}
    assert reserve(api, 'small', 4, BOB, after).status_code == 201
    refused(change(api, lease, {'amount': 4}), 400, 'MaxUnits', '1 are taken')
    refused(
        change(api, lease, end_date='2030-01-02 01:00'), 400, 'MaxUnits',
        '4 are taken',
    )
    assert change(api, lease, {'amount': 2}).status_code == 200
    api.simulate_delete(f'/v1/leases/{lease["id"]}', headers=ALICE)
    assert free(api)['small'] == 3


def test_a_reservation_stays_of_the_size_of_its_product(api):
    lease = reserve(api, 'half').json['lease']
    for changes in (
        {'vcpus': 1}, {'resource_properties': '[">", "$vcpus", "1"]'},
        {'affinity': True},
    ):
        refused(
            change(api, lease, changes), 409, 'CantUpdateParameter',
            'the reservation is of half',
        )
    shown = change(api, lease, {'amount': 2, 'on_end': 'keep'}).json['lease']
    assert shown['reservations'][0]['amount'] == 2


def test_offers_can_name_a_product(api):
    asked = [{'product': 'rack 7', 'amount': 1}]
    found = api.simulate_post('/v1/offers', headers=ALICE, json={
        'reservations': asked, 'duration': '1h', 'hold': '5m',
        'start_date': '2030-01-01 00:00',
    }).json['offers'][0]
    assert free(api)['rack 7'] == 0
    lease = api.simulate_post('/v1/leases', headers=ALICE, json={
        'name': 'run', 'offer': found['id'],
    }).json['lease']
    assert lease['reservations'][0]['product'] == 'rack 7'


def test_units_are_not_exceeded_by_leases_at_the_same_time(api):
    def create(_):
        return reserve(api, 'small', 1).status_code

    with futures.ThreadPoolExecutor(4) as pool:
        made = list(pool.map(create, range(12)))
    assert sorted(made) == [201] * 4 + [400] * 8


class TestWithoutToken:
    @pytest.fixture
    def options(self, options):
        return f'{options}[api]\npublic_products = true\n'

    def ask(self, api, headers=V1_1, **query):
        return api.simulate_get('/v1/products', headers=headers, params=query)

    @pytest.mark.row('F117')
    def test_products_of_all_projects_are_shown(self, service, api):
        reserve(api, 'small', 3)
        stranger = testing.TestClient(
            service.api.app, headers={'Host': 'localhost'}
        )
        answer = self.ask(stranger, **DAY)
        assert answer.status_code == 200, answer.text
        # compute-2 is for p1 alone.
        assert {
            each['name']: each['free'] for each in answer.json['products']
        } == {'rack 7': 0, 'small': 1, 'gone': 0}
        assert 'compute' not in answer.text

        # The manager is asked once, whatever strangers ask then.
        reserve(api, 'small', 1, BOB)
        assert self.ask(stranger, **DAY).json == answer.json
        for n in range(10):
            refused(
                self.ask(stranger, start_date=f'2031-01-01 00:0{n}'), 429,
                'TooManyRequests', 'without a token',
            )
        assert self.ask(stranger, start_date='2031').status_code == 400
        # A user's figures are new, and a wrong token is no stranger's.
        assert free(api)['small'] == 0
        assert self.ask(
            stranger, {**V1_1, 'X-Auth-Token': ''}
        ).status_code == 401

    def test_nothing_else_is_open(self, service, api):
        stranger = testing.TestClient(
            service.api.app, headers={'Host': 'localhost', **V1_1}
        )
        for method, path in (
            ('GET', '/v1/leases'), ('GET', '/v1/capacity'),
            ('GET', '/v1/limits'),
            ('GET', '/v1/products/x'),
        ):
            answer = stranger.simulate_request(method, path)
            assert answer.status_code == 401, path
        assert stranger.simulate_post('/v1/products').status_code == 405


def test_without_the_option_a_token_is_needed(service, api):
    stranger = testing.TestClient(
        service.api.app, headers={'Host': 'localhost', **V1_1}
    )
    assert stranger.simulate_get('/v1/products').status_code == 401
