# SPDX-License-Identifier: Apache-2.0
"""Attacks by users are refused, or do no harm.

The attackers have two projects, a reader of one project, and an admin, on a
real cloud. The page on defects says what was tried on version 0.1.
"""

import datetime
import pathlib
import uuid

import pytest
import requests

from tests.cloud import person
from tests.cloud import seed

V1_1 = '1.1'
LATER = datetime.timedelta(days=1)
# The header that a proxy of Keystone would send.
CLAIMED = {
    'X-Identity-Status': 'Confirmed',
    'X-User-Id': 'admin',
    'X-Project-Id': 'admin',
    'X-Roles': 'admin,member,reader',
}
# A line end, a control sequence that clears the screen, and one that reverses
# text.
HOSTILE = ('%0A', '%0D', '%1B%5B2J', '%E2%80%AE')


@pytest.fixture(autouse=True)
def host(register):
    return register('compute-1')


@pytest.fixture
def reader(new_user):
    """A user with the reader role in project demo."""
    return new_user('reader')


def ask(who, method, path, body=None):
    """Return the status of the response to a request."""
    answer = who.reservation.request(
        f'/{path}', method, json=body, microversion=V1_1
    )
    return answer.status_code


def body(**reservation):
    return {
        'name': 'a lease',
        'start_date': '2030-01-01 00:00',
        'end_date': '2030-01-01 01:00',
        'reservations': [person.hosts(**reservation)],
    }


@pytest.mark.row('F85')
def test_a_reader_changes_nothing_and_a_stranger_sees_nothing(
    demo, alt, reader, host
):
    lease = demo.book(person.hosts(), start=LATER)
    path = f'leases/{lease["id"]}'
    changes = [
        ('POST', 'leases', body()),
        ('POST', 'leases?dry_run=true', body()),
        ('PUT', path, {'name': 'mine'}),
        ('DELETE', path, None),
    ]
    assert ask(reader, 'GET', path) == 200
    assert {ask(reader, *change) for change in changes} == {403}
    assert ask(alt, 'GET', path) == 404
    assert {ask(alt, *change) for change in changes[2:]} == {404}
    hosts = [
        ('GET', 'os-hosts', None),
        ('POST', 'os-hosts', {'name': 'compute-2'}),
        ('DELETE', f'os-hosts/{host["id"]}', None),
        ('PUT', f'os-hosts/{host["id"]}', {'extra': 'mine'}),
        ('GET', f'os-hosts/allocations?lease_id={lease["id"]}', None),
        ('POST', 'floatingips', {'floating_network_id': uuid.uuid4().hex}),
    ]
    for who in (demo, alt, reader):
        assert {ask(who, *each) for each in hosts} == {403}
    assert demo.lease(lease) == lease


def test_request_without_a_token_is_refused(demo, alt, reader):
    lease = demo.book(person.hosts(), start=LATER)
    url = reader.reservation.get_endpoint()
    for path in ('leases', 'os-hosts', f'leases/{lease["id"]}'):
        answer = requests.get(f'{url}/{path}', headers=CLAIMED, timeout=60)
        assert answer.status_code == 401
    for who, status in ((reader, 403), (alt, 403)):
        answer = who.reservation.get('/os-hosts', headers=CLAIMED)
        assert answer.status_code == status
    listed = alt.reservation.get('/leases', headers=CLAIMED)
    assert listed.json()['leases'] == []


def test_lease_neither_draws_nor_ends_servers_of_another_project(
    demo, alt, admin, nova
):
    trap = {'magnetic': True, 'projects': [alt.project_id, admin.project_id]}
    lease = demo.wait_for(
        demo.book(person.hosts(before_end='snapshot'), microversion=V1_1),
        'ACTIVE',
    )
    [reservation] = lease['reservations']
    demo.update_lease(
        lease, V1_1, reservations=[{'id': reservation['id'], **trap}]
    )
    demo.opened(lease)
    # Other hosts have room, too, and nova-scheduler is not asked for this
    # server.
    theirs = alt.boot('theirs')
    forced = admin.boot('forced', zone='nova:compute-1')
    assert nova.host_of(theirs) != 'compute-1'
    demo.end(lease)
    for server in (theirs, forced):
        assert nova.status_of(server) == 'ACTIVE'
    assert nova.host_of(forced) == 'compute-1'
    images = list(admin.sdk.image.images())
    assert [image.name for image in images] == [seed.IMAGE]


def test_no_path_forges_a_line_of_the_log(reader, description, until):
    log = pathlib.Path(description['folder'], 'api.log')
    seen = log.stat().st_size
    for hostile in HOSTILE:
        path = f'leases/x]{hostile}FORGED'
        assert ask(reader, 'GET', path) == 404
        assert ask(reader, 'DELETE', path) == 403

    def said():
        with log.open(newline='') as file:
            file.seek(seen)
            return file.read()

    until(lambda: said().count('FORGED') >= len(HOSTILE) * 2)
    lines = said().split('\n')
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith('FORGED') for line in lines)


def test_a_lease_of_an_admin_lends_no_more_than_a_member_has(admin):
    lease = admin.book(person.hosts(), start=LATER)
    answer = admin.sdk.identity.get(
        f'/OS-TRUST/trusts/{lease["trust_id"]}/roles'
    )
    roles = {role['name'] for role in answer.json()['roles']}
    assert roles <= {'member', 'reader'}
    assert roles


def test_a_lease_is_shared_with_so_many_projects_at_most(demo, reader):
    nobody = [uuid.uuid4().hex for _ in range(51)]
    shared = body(projects=nobody)
    assert ask(demo, 'POST', 'leases', shared) == 400
    half = [person.hosts(projects=part) for part in (nobody[:26], nobody[26:])]
    assert ask(demo, 'POST', 'leases', {**body(), 'reservations': half}) == 400
    assert ask(reader, 'POST', 'leases', body(projects=nobody[:1])) == 403
    assert demo.get('leases')['leases'] == []
