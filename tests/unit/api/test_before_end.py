# SPDX-License-Identifier: Apache-2.0
"""The before_end and on_start of a reservation in each version of the API."""

import pytest

from tests import tables

pytestmark = pytest.mark.row('F58')

OURS = '1.1'
BLAZARS = '1.0'
HOST = {
    'resource_type': 'physical:host', 'min': 1, 'max': 1,
    'hypervisor_properties': '', 'resource_properties': '',
}
INSTANCE = {
    'resource_type': 'virtual:instance', 'vcpus': 1, 'memory_mb': 1,
    'disk_gb': 0, 'amount': 1, 'affinity': None, 'resource_properties': '',
}
FLAVOR = {
    'resource_type': 'flavor:instance', 'flavor_id': 'f', 'amount': 1,
    'affinity': None, 'resource_properties': '',
}
ON_HOSTS = [HOST, INSTANCE, FLAVOR]
# The resource types of parts.
OTHERS = [
    {'resource_type': name, **parameters}
    for name, parameters in tables.of('RESERVED').items()
]


@pytest.fixture
def ask(api):
    def ask(method, version, body=None, path='/v1/leases/l1'):
        return api.request(
            method, path, json=body, token='alice:p1', version=version
        )

    return ask


@pytest.fixture
def known(manager, answers):
    """known(asked, **parameters) makes the manager return a lease."""

    def know(asked, **more):
        [reservation] = answers['get_lease']['reservations']
        reservation['resource_type'] = asked['resource_type']
        reservation['parameters'] = {
            **asked, 'vcpus': 1, 'memory_mb': 1, 'disk_gb': 0,
            'asked_properties': '', 'name': 'small', 'ephemeral_gb': 0,
            'swap_mb': 0, 'is_public': True, 'extra_specs': {}, **more,
        }
        del reservation['parameters']['resource_type']
        manager.answers = answers
        return reservation['id']

    return know


def create(asked, **parameters):
    return {
        'name': 'x',
        'end_date': '2030-01-01 00:00',
        'reservations': [{**asked, **parameters}],
    }


@pytest.mark.parametrize('asked', ON_HOSTS)
@pytest.mark.parametrize('action', ['', 'default', 'email', 'acme'])
def test_ours_sends_any_to_the_manager(ask, manager, known, asked, action):
    known(asked)
    body = create(asked, before_end=action)
    assert ask('POST', OURS, body, '/v1/leases').status_code == 201
    [(_, sent)] = manager.calls
    [reservation] = sent['values']['reservations']
    assert reservation['before_end'] == action


@pytest.mark.parametrize(('asked', 'action'), [
    (INSTANCE, 'default'), (FLAVOR, ''), (HOST, 'email'), (HOST, 'webhook'),
])
def test_blazars_know_blazars_alone(ask, refused, asked, action):
    body = create(asked, before_end=action)
    refused(ask('POST', BLAZARS, body, '/v1/leases'), 'before_end')


@pytest.mark.parametrize('asked', [*OTHERS, *ON_HOSTS])
@pytest.mark.parametrize('action', [None, 1, ['email'], 'x' * 65])
def test_unknown_action_is_refused(ask, refused, asked, action):
    body = create(asked, before_end=action)
    refused(ask('POST', OURS, body, '/v1/leases'), 'before_end')


@pytest.mark.parametrize('asked', ON_HOSTS)
@pytest.mark.parametrize(('action', 'shown'), [
    ('', ''), ('snapshot', 'snapshot'), ('email', 'default'),
])
def test_each_version_shows_what_it_knows(ask, known, asked, action, shown):
    known(asked, before_end=action)
    for version in (OURS, BLAZARS):
        [reservation] = ask('GET', version).json['lease']['reservations']
        if version == OURS:
            assert reservation['before_end'] == action
        elif asked is HOST:
            assert reservation['before_end'] == shown
        else:
            assert 'before_end' not in reservation


@pytest.mark.parametrize('asked', ON_HOSTS)
@pytest.mark.parametrize('made', [{}, {'before_end_failed': 'no address'}])
def test_newer_version_shows_why_the_action_was_not_done(
    ask, answers, known, asked, made
):
    known(asked, before_end='email')
    answers['get_lease']['reservations'][0]['made'] = made
    for version in (OURS, BLAZARS):
        [reservation] = ask('GET', version).json['lease']['reservations']
        if version == OURS:
            assert reservation['before_end_failed'] == made.get(
                'before_end_failed'
            )
        else:
            assert 'before_end_failed' not in reservation


@pytest.mark.parametrize('asked', ON_HOSTS)
def test_only_the_newer_version_has_on_start(ask, manager, known, asked):
    body = {
        'name': 'lease', 'end_date': '2030-01-01 01:00', 'events': [],
        'reservations': [{**asked, 'on_start': 'webhook'}],
    }
    known(asked, on_start='webhook')
    assert ask('POST', OURS, body, '/v1/leases').status_code == 201
    method, sent = manager.calls[-1]
    assert sent['values']['reservations'][0]['on_start'] == 'webhook'
    refused = ask('POST', BLAZARS, body, '/v1/leases')
    assert refused.status_code == 400
    assert 'on_start' in refused.json['error_message']
    for version, shown in (OURS, 'webhook'), (BLAZARS, None):
        [reservation] = ask('GET', version).json['lease']['reservations']
        assert reservation.get('on_start') == shown


@pytest.mark.parametrize('asked', OTHERS)
def test_no_other_reservation_shows_any(ask, known, asked):
    known(asked)
    [reservation] = ask('GET', OURS).json['lease']['reservations']
    assert not {'before_end', 'before_end_failed'} & set(reservation)


@pytest.mark.parametrize('asked', ON_HOSTS)
def test_ours_leaves_a_change_to_the_manager(ask, manager, known, asked):
    change = {'id': known(asked, before_end=''), 'before_end': 'email'}
    answer = ask('PUT', OURS, {'reservations': [change]})
    assert answer.status_code == 200, answer.text
    [(method, sent)] = manager.calls
    assert method == 'update_lease'
    assert sent['values'] == {'reservations': [change]}


class TestBlazarsUpdate:
    def test_of_hosts_it_is_fixed(self, ask, manager, known):
        change = {'id': known(HOST, before_end=''), 'before_end': 'snapshot'}
        answer = ask('PUT', BLAZARS, {'reservations': [change]})
        assert answer.status_code == 409
        assert 'before_end' in answer.json['error_message']
        assert [method for method, _ in manager.calls] == ['get_lease']

    @pytest.mark.parametrize(
        ('action', 'shown'), [('', ''), ('email', 'default')]
    )
    def test_action_sent_back_as_shown_is_no_change(
        self, ask, manager, known, action, shown
    ):
        id_ = known(HOST, before_end=action)
        change = {'id': id_, 'before_end': shown, 'max': 3}
        answer = ask('PUT', BLAZARS, {'reservations': [change]})
        assert answer.status_code == 200, answer.text
        _, sent = manager.calls[-1]
        assert sent['values'] == {'reservations': [{'id': id_, 'max': 3}]}

    @pytest.mark.parametrize('asked', [INSTANCE, FLAVOR])
    def test_instances_have_none(self, ask, manager, known, asked):
        change = {'id': known(asked, before_end=''), 'before_end': ''}
        answer = ask('PUT', BLAZARS, {'reservations': [change]})
        assert answer.status_code == 400
        assert 'before_end' in answer.json['error_message']
        assert [method for method, _ in manager.calls] == ['get_lease']

    @pytest.mark.parametrize('asked', [*OTHERS, HOST])
    def test_change_that_the_api_cannot_judge_reaches_the_manager(
        self, ask, manager, known, asked
    ):
        id_ = known(asked)
        changes = [{
            'id': 'another' if asked is HOST else id_,
            'before_end': 'snapshot',
        }]
        ask('PUT', BLAZARS, {'reservations': changes})
        assert manager.calls[-1][1]['values'] == {'reservations': changes}

    def test_other_changes_cause_no_second_call(self, ask, manager, known):
        change = {'id': known(HOST), 'max': 3}
        ask('PUT', BLAZARS, {'reservations': [change]})
        assert [method for method, _ in manager.calls] == ['update_lease']
