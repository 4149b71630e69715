# SPDX-License-Identifier: Apache-2.0
"""Trusts from the creator of a lease to the service user."""

import logging

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.service.clients import keystone as keystone_client
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.clients.keystone import MEMORY
from tests.standins.keystone import KeystoneServer
from tests.standins.keystone import SERVICE


@pytest.fixture
def cloud():
    cloud = KeystoneServer()
    cloud.add_user('alice', p1=['member', 'reader'], p2=['reader'])
    yield cloud
    cloud.stop()


@pytest.fixture
def conf(cloud, tmp_path):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(cloud.configuration())
    return service_conf.load(files=[str(path)])


@pytest.fixture
def keystone(conf):
    return keystone_client.load(conf)


@pytest.fixture
def token(cloud):
    return cloud.issue('alice', 'p1')


@pytest.fixture
def trust(keystone, token):
    return keystone.create_trust(token, 'alice', 'p1', ['member', 'reader'])


def whoami(keystone, trust_id):
    api = keystone.adapter_for(trust_id, 'compute')
    return api and api.get('/whoami').json()


def test_a_trust_lends_the_tokens_roles_and_no_more(cloud, trust):
    assert cloud.trusts == {trust: {
        'trustor_user_id': 'alice',
        'trustee_user_id': SERVICE,
        'project_id': 'p1',
        'roles': [{'name': 'member'}, {'name': 'reader'}],
        'impersonation': True,
        'allow_redelegation': False,
    }}


def test_a_trust_costs_one_call(cloud, keystone, token, trust):
    cloud.asked.clear()
    keystone.create_trust(token, 'alice', 'p1', ['member'])
    cloud.revoke(SERVICE)
    keystone.create_trust(token, 'alice', 'p1', ['member'])
    assert cloud.asked == [('POST', '/v3/OS-TRUST/trusts')] * 2


def test_no_token_is_logged(keystone, token, caplog):
    # The log levels of the service are higher.
    for name in (None, 'keystoneauth', 'urllib3.connectionpool'):
        caplog.set_level(logging.DEBUG, name)
    trust = keystone.create_trust(token, 'alice', 'p1', ['member'])
    keystone.delete_trust(trust, token)
    assert caplog.text
    assert token not in caplog.text


def test_a_delegated_token_makes_no_trust(cloud, keystone):
    token = cloud.issue('alice', 'p1', delegated=True)
    assert keystone.create_trust(token, 'alice', 'p1', ['member']) is None


def test_a_role_that_is_not_assigned_makes_no_trust(keystone, token):
    assert keystone.create_trust(token, 'alice', 'p1', ['admin']) is None


def test_a_revoked_token_is_refused(cloud, keystone, token):
    cloud.revoke('alice')
    with pytest.raises(exception.Unauthorized):
        keystone.create_trust(token, 'alice', 'p1', ['member'])


def test_a_trust_outlives_the_token(cloud, keystone, trust):
    cloud.revoke('alice')
    assert whoami(keystone, trust) == {'user': 'alice', 'project': 'p1'}


def test_a_trust_lends_the_least_roles(cloud, conf):
    cloud.add_user('root', p1=['admin', 'manager', 'member'])
    token = cloud.issue('root', 'p1')
    roles = ['admin', 'manager', 'member']
    keystone = keystone_client.load(conf)
    trust = keystone.create_trust(token, 'root', 'p1', roles)
    assert cloud.trusts[trust]['roles'] == [{'name': 'member'}]
    assert keystone.create_trust(token, 'root', 'p1', ['admin']) is None
    conf.set_override('trust_roles', ['manager'], 'keystone')
    keystone = keystone_client.load(conf)
    trust = keystone.create_trust(token, 'root', 'p1', roles)
    assert cloud.trusts[trust]['roles'] == [{'name': 'manager'}]


def test_without_a_trust_nobody_is_impersonated(keystone):
    assert keystone.adapter_for(None, 'compute') is None
    keystone.delete_trust(None)


def test_without_a_keystone_there_are_no_trusts():
    keystone = keystone_client.load(service_conf.load(files=[]))
    assert keystone.create_trust('t', 'alice', 'p1', ['member']) is None
    assert keystone.adapter_for('t1', 'compute') is None
    keystone.delete_trust('t1')


def kill_by_delete(cloud):
    cloud.delete_user('alice')


def kill_by_disable(cloud):
    cloud.disabled.add('alice')


def kill_by_role(cloud):
    cloud.roles['alice']['p1'].remove('member')


KILLS = [kill_by_delete, kill_by_disable, kill_by_role]


@pytest.mark.parametrize('kill', KILLS)
def test_a_dead_trust_costs_one_call_a_minute(cloud, conf, trust, kill):
    now = 0.0
    keystone = keystone_client.load(conf, lambda: now)
    kill(cloud)
    cloud.asked.clear()
    for _ in range(3):
        assert keystone.adapter_for(trust, 'compute') is None
    authenticated = ('POST', '/v3/auth/tokens')
    assert cloud.asked.count(authenticated) == 1
    now += MEMORY + 1
    assert keystone.adapter_for(trust, 'compute') is None
    assert cloud.asked.count(authenticated) == 2


@pytest.mark.parametrize('kill', KILLS)
def test_a_dead_trust_is_deleted_by_our_own_user(cloud, keystone, trust, kill):
    kill(cloud)
    keystone.delete_trust(trust)
    assert cloud.trusts == {}


def test_a_trust_is_deleted_in_its_trustors_name(cloud, keystone, trust):
    """The service user need not be an admin."""
    cloud.roles[SERVICE]['service'].clear()
    assert whoami(keystone, trust)
    keystone.delete_trust(trust)
    assert cloud.trusts == {}
    assert keystone.adapter_for(trust, 'compute') is None
    keystone.delete_trust(trust)


@pytest.mark.parametrize('by_token', [False, True])
def test_a_trust_that_another_has_just_deleted_is_gone(
    cloud, keystone, token, trust, by_token
):
    """The token of the trust is deleted with the trust."""
    answer = cloud.answer

    def overtaken(method, path, *args):
        if method == 'DELETE':
            cloud.trusts.clear()
            cloud.revoke('alice')
        return answer(method, path, *args)

    cloud.answer = overtaken
    keystone.delete_trust(trust, token if by_token else None)
    assert cloud.trusts == {}


def test_the_trustor_deletes_it_with_one_call(cloud, keystone, token, trust):
    cloud.asked.clear()
    keystone.delete_trust(trust, token)
    assert cloud.trusts == {}
    assert len(cloud.asked) == 1


def test_a_trust_that_may_not_be_deleted_is_left(cloud, keystone, trust):
    cloud.disabled.add('alice')
    cloud.roles[SERVICE]['service'].clear()
    keystone.delete_trust(trust)
    assert list(cloud.trusts) == [trust]


def test_a_keystone_that_fails_kills_no_trust(cloud, keystone, token, trust):
    cloud.broken = True
    for ask in (
        lambda: keystone.adapter_for(trust, 'compute'),
        lambda: keystone.delete_trust(trust),
        lambda: keystone.create_trust(token, 'alice', 'p1', ['member']),
    ):
        with pytest.raises(exception.Unavailable):
            ask()
    cloud.broken = False
    assert whoami(keystone, trust)


def test_a_keystone_that_is_away_is_found_later(cloud, conf, token):
    keystone = keystone_client.load(conf)
    cloud.broken = True
    with pytest.raises(exception.Unavailable):
        keystone.create_trust(token, 'alice', 'p1', ['member'])
    cloud.broken = False
    assert keystone.create_trust(token, 'alice', 'p1', ['member'])


class TestEmail:
    def test_email_address_is_of_the_user(self, cloud, keystone):
        cloud.emails['alice'] = 'alice@example.org'
        assert keystone.email('alice') == 'alice@example.org'

    @pytest.mark.parametrize('user_id', ['alice', 'bob', '../tokens', '?x='])
    def test_user_without_address_has_no_email(self, keystone, user_id):
        assert keystone.email(user_id) is None

    def test_user_that_may_not_be_read_has_no_email(
        self, cloud, keystone, caplog
    ):
        cloud.add_user(SERVICE, service=['service'])
        assert keystone.email('alice') is None
        assert 'alice' in caplog.text

    def test_what_is_no_text(self, cloud, keystone):
        cloud.emails['alice'] = ['alice@example.org']
        assert keystone.email('alice') is None

    def test_without_a_keystone(self):
        assert Keystone(None).email('alice') is None

    def test_a_keystone_that_fails(self, cloud, keystone):
        keystone.email('alice')
        cloud.broken = True
        with pytest.raises(exception.Unavailable):
            keystone.email('alice')
