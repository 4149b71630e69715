# SPDX-License-Identifier: Apache-2.0
"""What is the same for leases of everything."""

import datetime

import pytest

from tests.cloud import person
from tests.cloud import reservation as reservation_

LONGEST = datetime.timedelta(seconds=reservation_.MAX_LEASE_DURATION)
LATER = datetime.timedelta(days=1)
# As the service has it by default.
BEFORE_END = datetime.timedelta(hours=1)
SOON = datetime.timedelta(seconds=15)
SECOND = datetime.timedelta(seconds=1)


def test_a_limit_holds_though_there_is_room(demo, register):
    register('compute-1')
    with pytest.raises(person.Refused, match='400.*MaxLeaseDuration'):
        demo.book(person.hosts(), start=LATER, length=LONGEST + SECOND)
    demo.book(person.hosts(), start=LATER, length=LONGEST)


def test_what_becomes_of_a_lease_is_told_on_the_bus(
    demo, register, until, notified
):
    register('compute-1')
    lease = demo.wait_for(demo.book(person.hosts()), 'ACTIVE')
    demo.end(lease)
    demo.reservation.delete(f'/leases/{lease["id"]}')

    def told(event_type):
        return lease['id'] in {p['lease_id'] for p in notified(event_type)}

    for event in (
        'create', 'event.start_lease', 'update', 'event.end_lease', 'delete',
    ):
        until(lambda event=event: told(f'lease.{event}'))


def test_servers_are_copied_before_the_lease_ends(demo, register, until):
    register('compute-1')
    lease = demo.book(
        person.hosts(before_end='snapshot'), length=BEFORE_END + SOON
    )
    demo.wait_for(lease, 'ACTIVE')
    [reservation] = lease['reservations']
    demo.boot('mine', reservation=reservation['id'])
    image = until(lambda: demo.sdk.image.find_image('reserved_mine'))
    assert image.owner_id == demo.project_id
    assert image.properties['blazar:reservation'] == reservation['id']
