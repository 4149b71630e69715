# SPDX-License-Identifier: Apache-2.0
"""Sharing of a reservation, and the end of servers in it."""

import pytest

from tests.cloud import person

V1_1 = '1.1'


@pytest.fixture(autouse=True)
def host(register):
    register('compute-1')


def book(who, reservation):
    return who.wait_for(who.book(reservation, microversion=V1_1), 'ACTIVE')


def test_another_project_uses_hosts_that_are_shared_with_it(demo, alt, nova):
    lease = book(demo, person.hosts(projects=[alt.project_id]))
    [reservation] = lease['reservations']
    theirs = alt.boot('theirs', reservation=reservation['id'])
    assert nova.host_of(theirs) == 'compute-1'
    with pytest.raises(person.Refused, match='404'):
        alt.lease(lease)
    demo.end(lease)
    assert nova.status_of(theirs) is None


def test_another_project_uses_instances_that_are_shared_with_it(
    demo, alt, nova
):
    lease = book(demo, person.instances(projects=[alt.project_id]))
    [reservation] = lease['reservations']
    theirs = alt.boot('theirs', reservation['id'])
    demo.end(lease)
    assert nova.status_of(theirs) is None


@pytest.mark.row('F51')
def test_a_server_needs_no_hint_where_a_reservation_is_magnetic(
    demo, alt, nova
):
    book(demo, person.hosts(magnetic=True))
    assert nova.host_of(demo.boot('mine')) == 'compute-1'
    assert nova.host_of(alt.boot('theirs')) != 'compute-1'


@pytest.mark.parametrize(
    'on_end, status', [('keep', 'ACTIVE'), ('shelve', 'SHELVED_OFFLOADED')]
)
@pytest.mark.parametrize('wanted', [person.hosts, person.instances])
def test_a_server_outlives_the_lease(
    demo, nova, until, wanted, on_end, status
):
    lease = book(demo, wanted(on_end=on_end))
    [reservation] = lease['reservations']
    if wanted is person.hosts:
        server = demo.boot('mine', reservation=reservation['id'])
    else:
        server = demo.boot('mine', reservation['id'])
    demo.end(lease)
    # The lease ends when the server has left its host: Nova says so after it.
    until(lambda: nova.status_of(server) == status)
