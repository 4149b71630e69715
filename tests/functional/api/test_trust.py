# SPDX-License-Identifier: Apache-2.0
"""Leases with trusts of their creators, with a Keystone over HTTP."""

import json
import logging

from keystonemiddleware import fixture as keystone_fixture
import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.service.api import deploy
from tests import loopback
from tests.standins.keystone import KeystoneServer
from tests.standins.keystone import SERVICE

BODY = {
    'name': 'night-run',
    'start_date': '2030-01-01 00:00',
    'end_date': '2030-01-01 01:00',
    'reservations': [{'resource_type': 'physical:host', 'min': 1, 'max': 1}],
}


@pytest.fixture
def cloud():
    cloud = KeystoneServer()
    cloud.add_user('alice', p1=['member', 'reader'])
    yield cloud
    cloud.stop()


@pytest.fixture
def tokens():
    with keystone_fixture.AuthTokenFixture() as fixture:
        yield fixture


@pytest.fixture
def conf(cloud, tmp_path):
    path = tmp_path / 'api.conf'
    path.write_text(
        '[api]\nauth_strategy = keystone\n'
        '[keystone_authtoken]\n'
        'www_authenticate_uri = http://keystone.example/\n'
        + cloud.configuration()
    )
    return service_conf.load(files=[str(path)])


@pytest.fixture
def api(service, conf):
    service.api.post('/v1/os-hosts', json={'name': 'compute-1'})
    return loopback.Client(deploy.deploy(conf, service.bus))


@pytest.fixture
def token(cloud, tokens):
    """A token of alice's, which the API's middleware accepts."""
    token = cloud.issue('alice', 'p1')
    tokens.add_token_data(
        token, user_id='alice', project_id='p1', role_list=['member', 'reader']
    )
    return token


def create(api, token, key=None, **values):
    headers = {'X-Auth-Token': token}
    if key is not None:
        headers['Idempotency-Key'] = key
    return api.post('/v1/leases', json={**BODY, **values}, headers=headers)


@pytest.mark.row('C10')
def test_a_lease_has_a_trust_for_one_call(api, cloud, token):
    # The first request also reads the catalog and the service user's token.
    create(api, token, reservations=[])
    cloud.asked.clear()
    answer = create(api, token)
    assert answer.status_code == 201, answer.text
    id_ = answer.json['lease']['trust_id']
    assert cloud.trusts[id_]['trustor_user_id'] == 'alice'
    assert cloud.asked == [('POST', '/v3/OS-TRUST/trusts')]


@pytest.mark.parametrize('name, status', [
    ('p2', 201), ('physics', 400), ('P2', 400),
])
@pytest.mark.parametrize('trusts', [True, False])
def test_a_lease_is_shared_with_a_project_that_exists(
    api, cloud, token, service, conf, name, status, trusts
):
    conf.set_override('use_trusts', trusts, 'api')
    api = loopback.Client(deploy.deploy(conf, service.bus))
    cloud.add_user('bob', p2=['member'])
    shared = {**BODY['reservations'][0], 'projects': [name]}
    answer = api.post(
        '/v1/leases', json={**BODY, 'reservations': [shared]},
        token=token, version='1.1'
    )
    assert answer.status_code == status, answer.text
    if status == 400:
        assert answer.json['error_message'] == (
            f'reservations[0].projects: no project has the id {name}'
        )


def test_a_project_that_the_service_cannot_see_is_shared_with(
    api, cloud, token
):
    cloud.roles[SERVICE]['service'].clear()
    shared = {**BODY['reservations'][0], 'projects': ['p9']}
    answer = api.post(
        '/v1/leases', json={**BODY, 'reservations': [shared]},
        token=token, version='1.1'
    )
    assert answer.status_code == 201, answer.text


def test_the_token_may_come_by_its_other_header(api, cloud, token):
    answer = api.post(
        '/v1/leases', json=BODY, headers={'X-Storage-Token': token}
    )
    assert list(cloud.trusts) == [answer.json['lease']['trust_id']]


def test_the_token_goes_no_further_than_the_api(
    api, cloud, token, service, monkeypatch, caplog
):
    told = []
    call = service.bus.call

    def spy(ctxt, method, **kwargs):
        told.append(json.dumps([ctxt, method, kwargs]))
        return call(ctxt, method, **kwargs)

    monkeypatch.setattr(service.bus, 'call', spy)
    with caplog.at_level(logging.DEBUG):
        assert create(api, token).status_code == 201
    assert told and caplog.text
    assert token not in ''.join(told) + caplog.text


def test_refused_leases_ask_for_no_trust(api, cloud, token):
    """Each trust that is deleted leaves a revocation in Keystone."""
    create(api, token)
    asked = len(_trust_requests(cloud))
    for _ in range(10):
        assert create(api, token).status_code == 400
    assert len(_trust_requests(cloud)) == asked


def _trust_requests(cloud):
    return [asked for asked in cloud.asked if 'OS-TRUST' in str(asked)]


def test_a_lease_that_nobody_answers_for_leaves_no_trust(
    api, cloud, token, service
):
    service.manager.stop()
    service.conf.set_override('rpc_response_timeout', 1)
    assert create(api, token).status_code == 503
    assert cloud.trusts == {}


def test_a_request_made_again_leaves_no_second_trust(api, cloud, token):
    first = create(api, token, key='k').json
    assert create(api, token, key='k').json == first
    assert list(cloud.trusts) == [first['lease']['trust_id']]
    assert len(_trust_requests(cloud)) == 1


def test_a_dry_run_asks_for_no_trust(api, cloud, token, service):
    create(api, token)
    before = dict(cloud.trusts)
    [lease] = service.manager.ledger.leases()
    cloud.asked.clear()
    for method, path, body in (
        ('POST', '', {**BODY, 'reservations': []}),
        ('PUT', f'/{lease.id}', {'name': 'other'}),
        ('DELETE', f'/{lease.id}', None),
    ):
        answer = api.request(
            method, f'/v1/leases{path}', json=body,
            query_string='dry_run=true', token=token, version='1.1'
        )
        assert answer.status_code in (201, 200, 204), answer.text
        if method == 'POST':
            assert answer.json['lease']['trust_id'] is None
    assert (cloud.asked, cloud.trusts) == ([], before)
    assert service.manager.ledger.leases() == [lease]


def test_a_token_that_cannot_be_lent_makes_a_lease_all_the_same(
    api, cloud, token
):
    cloud.tokens[token] = ('alice', 'p1', True)
    answer = create(api, token)
    assert answer.status_code == 201
    assert answer.json['lease']['trust_id'] is None


def test_a_token_that_was_revoked_meanwhile_is_401(api, cloud, token, service):
    """The middleware may accept the token for some minutes more."""
    cloud.revoke('alice')
    answer = create(api, token)
    assert answer.status_code == 401
    assert answer.json['error_name'] == 'Unauthorized'
    assert 'keystone.example' in answer.headers['www-authenticate']
    assert service.manager.ledger.leases() == []


def test_a_keystone_that_fails_makes_no_lease(api, cloud, token, service):
    cloud.broken = True
    assert create(api, token).status_code == 503
    assert service.manager.ledger.leases() == []


def test_a_trust_that_cannot_be_taken_back_hides_no_refusal(
    api, cloud, token, service, monkeypatch
):
    """The room is taken between the dry run and the request."""
    first = create(api, token).json['lease']
    rehearsed = {**service.bus.call({}, 'get_lease', lease_id=first['id'],
                                    project_id=None), 'trust_id': None}
    ask = service.bus.call
    monkeypatch.setattr(
        service.bus, 'call',
        lambda ctxt, method, **kwargs: (
            rehearsed if kwargs.get('dry_run') else ask(ctxt, method, **kwargs)
        )
    )
    refuse = cloud.answer

    def answer(method, *request):
        return (500, {}, {}) if method == 'DELETE' else refuse(
            method, *request
        )

    cloud.answer = answer
    assert create(api, token).status_code == 400


def test_an_operator_can_do_without(cloud, conf, token, service):
    conf.set_override('use_trusts', False, 'api')
    api = loopback.Client(deploy.deploy(conf, service.bus))
    answer = create(api, token, reservations=[])
    assert answer.json['lease']['trust_id'] is None
    assert cloud.trusts == {}


def test_client_cannot_name_a_trust(api, token, cloud):
    made = create(api, token, trust_id='t1').json['lease']
    assert made['trust_id'] != 't1'
    assert made['trust_id'] in cloud.trusts
