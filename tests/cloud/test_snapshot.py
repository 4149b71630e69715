# SPDX-License-Identifier: Apache-2.0
"""Images of the servers that a lease ends, on a real cloud."""

import datetime

import pytest

from tests.cloud import person

V1_1 = '1.1'
# Seconds; shorter than the default notice of an end.
HALF_AN_HOUR = datetime.timedelta(minutes=30)
SOON = datetime.timedelta(seconds=10)


@pytest.fixture(autouse=True)
def host(register):
    return register('compute-1')


@pytest.fixture
def book(demo):
    """book(reservation) -> demo's lease, which is ACTIVE."""

    def book(reservation):
        lease = demo.book(reservation, length=HALF_AN_HOUR, microversion=V1_1)
        return demo.wait_for(lease, 'ACTIVE')

    return book


def images_of(who, server):
    return [
        image
        for image in who.sdk.image.images()
        if image.instance_uuid == server['id']
    ]


def assert_left_as_image(who, server, nova):
    """Check that only one complete image of a server is left, its owner's."""
    assert nova.status_of(server) is None
    [image] = images_of(who, server)
    assert (image.status, image.size) == ('active', 512)
    assert image.owner_id == who.project_id
    assert image.name == f'reserved_{server["name"]}'
    who.sdk.image.delete_image(image)
    assert not images_of(who, server)


@pytest.mark.row('F58')
def test_a_lease_that_is_shorter_than_the_notice_copies_its_servers(
    demo, nova, book
):
    lease = book(person.hosts(before_end='snapshot'))
    [reservation] = lease['reservations']
    start, notice, end = (
        datetime.datetime.fromisoformat(event['time'])
        for kind in ('start_lease', 'before_end_lease', 'end_lease')
        for event in lease['events']
        if event['event_type'] == kind
    )
    # The operator's notice is an hour.
    middle = start + (end - start) / 2
    assert abs(notice - middle) < datetime.timedelta(seconds=1)
    server = demo.boot('mine', reservation=reservation['id'])
    assert not images_of(demo, server)
    # The lease keeps half of the remaining time then, for which the test need
    # not wait.
    soon = datetime.datetime.now(datetime.UTC) + SOON
    demo.update_lease(lease, V1_1, end_date=soon.strftime('%Y-%m-%d %H:%M:%S'))
    over = demo.wait_for(lease, 'TERMINATED')
    assert {event['status'] for event in over['events']} == {'DONE'}
    assert not over['degraded']
    assert_left_as_image(demo, server, nova)


def test_the_image_of_a_guest_is_the_guests(demo, alt, nova, book):
    """An admin makes the image: the lease has no trust of the guest."""
    lease = book(
        person.hosts(before_end='snapshot', projects=[alt.project_id])
    )
    [reservation] = lease['reservations']
    theirs = alt.boot('theirs', reservation=reservation['id'])
    demo.end(lease)
    assert not images_of(demo, theirs)
    assert_left_as_image(alt, theirs, nova)
