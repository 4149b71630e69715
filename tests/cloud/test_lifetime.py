# SPDX-License-Identifier: Apache-2.0
"""Servers whose hints create their leases."""

import datetime
import json

import pytest

from tests.cloud import person

LEASE = ('reservation', 'lease')
SOON = datetime.timedelta(seconds=25)


@pytest.fixture(autouse=True)
def hosts(register, description):
    for name in description['hosts']:
        register(name)


@pytest.fixture
def lease_of(until):
    """lease_of(who, server) -> the lease of a server's lifetime."""

    def lease_of(who, server):
        def look():
            for lease in who.get('leases')['leases']:
                [reservation] = lease['reservations']
                if reservation.get('instance_id') == server['id']:
                    return lease

        return until(look)

    return lease_of


def after(time):
    """Return the time that is `seconds` from now, in the format of hints."""
    moment = datetime.datetime.now(datetime.UTC) + time
    return moment.strftime('%Y-%m-%dT%H:%M:%SZ')


@pytest.mark.row('C31', 'C43', 'F52')
def test_a_server_with_a_lifetime_has_a_lease_that_ends_it(
    demo, alt, nova, lease_of
):
    server = demo.boot('mine', lifetime='1h', lease_name='short')
    lease = lease_of(demo, server)
    [listed] = demo.openstack(*LEASE, 'list')
    assert (listed['id'], listed['name']) == (lease['id'], 'short')
    shown = demo.openstack(*LEASE, 'show', 'short')
    assert 'instance:lifetime' in shown['reservations']
    assert alt.get('leases')['leases'] == []
    demo.end(lease)
    assert nova.status_of(server) is None


def test_the_image_of_a_server_is_its_projects(demo, nova, lease_of, until):
    """The service makes the image as an admin; the owner can delete the image.
    """
    server = demo.boot('mine', lifetime='1h', lease_on_end='snapshot')
    demo.end(lease_of(demo, server))
    assert nova.status_of(server) is None
    image = until(lambda: demo.sdk.image.find_image('lifetime_mine'))
    assert image.owner_id == demo.project_id
    demo.sdk.image.delete_image(image)


@pytest.mark.row('C31')
def test_a_lease_in_climates_words_goes_with_its_server(demo, until, lease_of):
    params = {'name': 'night-run', 'start': 'now', 'end': after(SOON * 100)}
    server = demo.boot('mine', lease_params=json.dumps(params))
    lease = lease_of(demo, server)
    assert lease['name'] == 'night-run'
    assert lease['status'] == 'ACTIVE'
    demo.sdk.compute.delete_server(server['id'])
    until(lambda: demo.get('leases')['leases'] == [])


def test_a_hint_that_cannot_be_read_is_refused_at_once(demo):
    with pytest.raises(person.Refused, match="400.*lifetime 'soon'"):
        demo.boot('mine', lifetime='soon')
    assert not list(demo.sdk.compute.servers())


@pytest.mark.row('C35', 'F54')
def test_a_server_that_starts_later_is_shelved_until_then(
    demo, nova, until, lease_of
):
    begins = after(SOON)
    server = demo.boot('mine', lease_start=begins, lifetime='1h')
    lease = lease_of(demo, server)
    until(lambda: nova.status_of(server) == 'SHELVED_OFFLOADED')
    assert demo.lease(lease)['status'] == 'PENDING'
    demo.wait_for(lease, 'ACTIVE')
    assert after(datetime.timedelta()) >= begins
    assert nova.status_of(server) == 'ACTIVE'
