# SPDX-License-Identifier: Apache-2.0
"""Properties of leases of every resource type."""

import datetime

import pytest

from tests.cloud import person
from tests.cloud.reservation import MAX_LEASE_DURATION

MAX_DURATION = datetime.timedelta(seconds=MAX_LEASE_DURATION)
LATER = datetime.timedelta(days=1)
# The default of the service.
BEFORE_END = datetime.timedelta(hours=1)
SOON = datetime.timedelta(seconds=25)
SECOND = datetime.timedelta(seconds=1)
V1_1 = '1.1'


@pytest.mark.row('F76')
def test_a_limit_holds_though_there_is_room(demo, register):
    register('compute-1')
    with pytest.raises(person.Refused, match='400.*MaxLeaseDuration'):
        demo.book(person.hosts(), start=LATER, length=MAX_DURATION + SECOND)
    demo.book(person.hosts(), start=LATER, length=MAX_DURATION)


def test_lease_is_notified_on_the_bus(demo, register, until, notified):
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


@pytest.mark.row('F58')
def test_servers_are_copied_before_the_lease_ends(demo, register, until):
    register('compute-1')
    register('compute-2')
    lease = demo.book(
        person.hosts(before_end='snapshot'),
        person.instances(before_end='snapshot'), length=BEFORE_END + SOON,
        microversion=V1_1,
    )
    demo.wait_for(lease, 'ACTIVE')
    host, instance = lease['reservations']
    demo.boot('mine', reservation=host['id'])
    demo.boot('another', instance['id'])
    for name, reservation in (('mine', host), ('another', instance)):
        image = until(
            lambda name=name: demo.sdk.image.find_image(f'reserved_{name}')
        )
        assert image.owner_id == demo.project_id
        assert image.properties['blazar:reservation'] == reservation['id']


@pytest.mark.row('F66')
def test_reservations_come_to_an_active_lease_and_leave_it(
    demo, register, nova, until
):
    register('compute-1')
    register('compute-2')
    lease = demo.wait_for(demo.book(person.hosts()), 'ACTIVE')
    [old] = lease['reservations']
    changed = demo.update_lease(lease, V1_1, reservations=[person.instances()])
    [new] = [r for r in changed['reservations'] if r['id'] != old['id']]
    demo.opened(lease)
    assert nova.flavor(new['id'])

    leaving = {'id': old['id'], 'remove': True}
    demo.update_lease(lease, V1_1, reservations=[leaving])
    until(lambda: nova.hosts_in(old['id']) is None)
    lease = demo.opened(lease)
    assert lease['status'] == 'ACTIVE'
    assert [r['id'] for r in lease['reservations']] == [new['id']]
    demo.boot('mine', new['id'])
