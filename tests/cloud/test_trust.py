# SPDX-License-Identifier: Apache-2.0
"""Leases whose creator's token has expired, or whose creator was deleted."""

import datetime

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1.identity import v3
import pytest

from tests.cloud import person

SOON = datetime.timedelta(seconds=4)
LATER = datetime.timedelta(days=1)


@pytest.fixture
def eve(new_user):
    """A user in project demo, whom the tests may delete."""
    return new_user('member')


@pytest.fixture
def trusts(admin):
    """trusts(person) -> the ids of the trusts of a user."""

    def trusts(trustor):
        answer = admin.sdk.identity.get(
            '/OS-TRUST/trusts', params={'trustor_user_id': trustor.user_id}
        )
        return [trust['id'] for trust in answer.json()['trusts']]

    return trusts


@pytest.fixture
def is_gone(nova, placement):
    """is_gone(lease) tells whether all slots of a lease are removed."""

    def is_gone(lease):
        [reservation] = lease['reservations']
        return not (
            nova.flavor(reservation['id'])
            or placement.has_class(reservation['id'])
            or placement.slots(reservation['id'])
        )

    return is_gone


def revoke(who):
    token = who.sdk.auth_token
    answer = who.sdk.identity.delete(
        '/auth/tokens', headers={'X-Subject-Token': token}
    )
    assert answer.status_code == 204


@pytest.mark.row('C10')
def test_a_lease_lives_without_the_token_that_made_it(
    eve, admin, register, trusts, nova, is_gone, until
):
    register('compute-1')
    lease = eve.book(person.instances(affinity=True), start=SOON)
    assert trusts(eve) == [lease['trust_id']]
    revoke(eve)
    admin.wait_for(lease, 'ACTIVE')
    [reservation] = lease['reservations']
    assert nova.projects_of(reservation['id']) == {eve.project_id}
    # Nova cannot make a server group for another project.
    group = nova.server_group(reservation['id'])
    assert (group.project_id, group.user_id) == (eve.project_id, eve.user_id)
    admin.end(lease)
    assert is_gone(lease)
    assert nova.server_group(reservation['id']) is None
    # Keystone is called after the commit that ends the lease.
    until(lambda: trusts(eve) == [])


def test_leases_start_end_and_are_deleted_without_their_creator(
    eve, admin, register, nova, is_gone
):
    register('compute-1')
    ended, deleted = (
        eve.book(person.instances(), start=SOON) for _ in range(2)
    )
    pending = eve.book(person.instances(), start=LATER)
    admin.sdk.identity.delete_user(eve.user_id)
    for lease in ended, deleted:
        admin.wait_for(lease, 'ACTIVE')
        [reservation] = lease['reservations']
        assert nova.flavor(reservation['id'])
    admin.end(ended)
    assert admin.lease(deleted)['user_id'] == eve.user_id
    for lease in deleted, pending:
        answer = admin.reservation.delete(f'/leases/{lease["id"]}')
        assert answer.status_code == 204, answer.text
        with pytest.raises(person.Refused, match='404'):
            admin.lease(lease)
    assert all(map(is_gone, (ended, deleted, pending)))


def test_a_lease_that_is_deleted_or_refused_leaves_no_trust(
    eve, register, trusts
):
    register('compute-1')
    lease = eve.book(person.hosts(), start=LATER)
    with pytest.raises(person.Refused, match='NotEnoughHosts'):
        eve.book(person.hosts(), start=LATER)
    assert trusts(eve) == [lease['trust_id']]
    eve.reservation.delete(f'/leases/{lease["id"]}')
    assert trusts(eve) == []


@pytest.fixture
def with_credential(eve, description):
    """with_credential(**options): let eve use an application credential."""
    def use(**options):
        credential = eve.sdk.identity.create_application_credential(
            eve.user_id, 'program', **options
        )
        auth = v3.ApplicationCredential(
            description['auth_url'], application_credential_id=credential.id,
            application_credential_secret=credential.secret,
        )
        eve.reservation = adapter.Adapter(
            session.Session(auth), service_type='reservation', raise_exc=False
        )

    return use


def test_an_application_credential_makes_a_lease_without_a_trust(
    eve, register, trusts, with_credential
):
    register('compute-1')
    with_credential()
    lease = eve.book(person.hosts())
    assert lease['trust_id'] is None
    assert trusts(eve) == []
    eve.wait_for(lease, 'ACTIVE')
    eve.end(lease)


def test_access_rules_of_an_application_credential_are_obeyed(
    eve, with_credential
):
    with_credential(access_rules=[
        {'service': 'reservation', 'method': 'GET', 'path': '/v1/leases'},
    ])
    assert eve.reservation.get('/leases').status_code == 200
    assert eve.reservation.get('/series').status_code == 401
    assert eve.reservation.post('/leases', json={}).status_code == 401
