# SPDX-License-Identifier: Apache-2.0
"""A maintenance of hosts with a lease and a server, on a real cloud."""

import datetime
import json

import pytest

from tests.cloud import person

# Seconds to create the maintenance and to vacate the hosts.
AHEAD = datetime.timedelta(seconds=45)
# The maintenance is ended by a change, once the hosts have been looked at.
CLOSED = datetime.timedelta(hours=1)
SOON = datetime.timedelta(seconds=2)


def text(at):
    return at.strftime('%Y-%m-%d %H:%M:%S')


@pytest.fixture
def removed(admin):
    """removed(maintenance): remove a maintenance after the test."""
    made = []
    yield made.append
    for each in made:
        admin.reservation.delete(
            f'/maintenances/{each["id"]}', microversion='1.1'
        )


def test_hosts_are_left_in_time_and_open_again(
    demo, alt, admin, register, description, nova, host_of, until, notified,
    removed,
):
    names = {register(name)['id']: name for name in description['hosts']}
    server = alt.boot('stays')
    start = datetime.datetime.now(datetime.UTC) + AHEAD
    lease = demo.book(person.instances(), start=AHEAD)
    [held] = host_of(lease)
    closed = sorted({nova.host_of(server), names[held]})
    wanted = {
        'name': 'rack 7', 'reason': 'the power supply is replaced',
        'start_date': text(start), 'end_date': text(start + CLOSED),
        'hosts': closed,
    }
    expected = admin.create('maintenances?dry_run=true', '1.1', **wanted)
    assert expected['in_the_way'] == []
    assert host_of(lease) == [held]

    made = admin.create('maintenances', '1.1', **wanted)
    removed(made)
    assert [each['lease_id'] for each in made['moved']] == [lease['id']]
    assert made['servers'] == expected['servers'] == 1
    [now_held] = host_of(lease)
    assert names[now_held] not in closed
    until(lambda: [
        payload for payload in notified('lease.maintenance')
        if payload['lease_id'] == lease['id']
        and payload['maintenance']['reason'] == wanted['reason']
    ])

    def shown():
        return admin.get(f'maintenances/{made["id"]}', '1.1')['maintenance']

    until(lambda: shown()['status'] == 'ACTIVE')
    assert nova.status_of(server) == 'ACTIVE'
    assert nova.host_of(server) not in closed
    assert shown()['servers'] == 0
    assert server['id'] in {
        payload['instance_id'] for payload in notified('instance.vacate')
        if payload.get('maintenance_id') == made['id']
    }
    # Nova's scheduler places nobody on the hosts.
    other = alt.boot('another')
    assert nova.host_of(other) not in closed
    named = json.dumps(['==', '$hypervisor_hostname', closed[0]])

    def book():
        return demo.book(
            person.hosts(resource_properties=named),
            length=datetime.timedelta(minutes=5),
        )

    with pytest.raises(person.Refused, match='0 are free'):
        book()

    end = datetime.datetime.now(datetime.UTC) + SOON
    admin.update(f'maintenances/{made["id"]}', '1.1', end_date=text(end))
    until(lambda: shown()['status'] == 'OVER')
    demo.wait_for(book(), 'ACTIVE')
