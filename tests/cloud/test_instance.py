# SPDX-License-Identifier: Apache-2.0
"""``virtual:instance`` on a real cloud."""

import contextlib

import pytest

from tests.cloud import person


@pytest.fixture(autouse=True)
def hosts(register):
    register('compute-1')
    register('compute-2')


@pytest.mark.row('C12', 'F2')
def test_a_flavor_and_slots_are_there_from_start_to_end(demo, nova, placement):
    lease = demo.wait_for(demo.book(person.instances(3)), 'ACTIVE')
    [reservation] = lease['reservations']
    slots = placement.slots(reservation['id'])
    assert sum(slots.values()) == 3
    flavor = nova.flavor(reservation['id'])
    assert (flavor.vcpus, flavor.ram, flavor.disk) == (2, 1024, 1)
    assert not flavor.is_public
    assert nova.projects_of(reservation['id']) == {demo.project_id}
    assert nova.hosts_in(reservation['id']) == sorted(slots)

    server = demo.boot('mine', reservation['id'])
    assert nova.host_of(server) in slots

    demo.end(lease)
    assert nova.status_of(server) is None
    assert nova.flavor(reservation['id']) is None
    assert nova.hosts_in(reservation['id']) is None
    assert placement.slots(reservation['id']) == {}
    assert not placement.has_class(reservation['id'])


@pytest.mark.row('F50')
def test_no_more_boot_than_are_reserved(demo):
    lease = demo.wait_for(demo.book(person.instances(1)), 'ACTIVE')
    [reservation] = lease['reservations']
    demo.boot('first', reservation['id'])
    assert demo.finds_no_host('second', reservation['id'])


@pytest.mark.row('F65')
def test_as_many_boot_as_an_active_one_is_grown_and_shrunk_to(
    demo, placement, until
):
    lease = demo.wait_for(demo.book(person.instances(1)), 'ACTIVE')
    [reservation] = lease['reservations']

    def change(amount):
        wanted = {'id': reservation['id'], 'amount': amount}
        return demo.update_lease(lease, reservations=[wanted])

    def can_be(amount):
        with contextlib.suppress(person.Refused):
            return change(amount)

    def slots():
        return sum(placement.slots(reservation['id']).values())

    demo.boot('first', reservation['id'])
    change(2)
    demo.opened(lease)
    assert slots() == 2
    second = demo.boot('second', reservation['id'])
    with pytest.raises(person.Refused, match='409.*amount'):
        change(1)

    demo.sdk.compute.delete_server(second['id'])
    # Placement is updated a little later than Nova's API.
    until(lambda: can_be(1))
    # The slot is given up before the response: another lease may get it then.
    assert slots() == 1
    assert demo.finds_no_host('third', reservation['id'])


@pytest.mark.row('C27')
def test_another_project_cannot_use_the_flavor(demo, alt):
    lease = demo.wait_for(demo.book(person.instances(1)), 'ACTIVE')
    [reservation] = lease['reservations']
    with pytest.raises(person.Refused, match='No Flavor found'):
        alt.boot('theirs', reservation['id'])


@pytest.mark.row('C26', 'F15')
@pytest.mark.parametrize(
    'affinity, policy', [(True, 'affinity'), (False, 'anti-affinity')]
)
def test_a_server_group_keeps_the_affinity(
    demo, nova, placement, affinity, policy
):
    lease = demo.book(person.instances(2, affinity=affinity))
    # The flavor exists when the response comes, for a user who boots at once.
    [reservation] = lease['reservations']
    group = nova.server_group(reservation['id'])
    assert group.id == reservation['server_group_id']
    assert group.policy == policy
    assert group.project_id == demo.project_id

    servers = [
        demo.boot(
            name, reservation['id'], group=reservation['server_group_id']
        )
        for name in ('first', 'second')
    ]
    hosts = {nova.host_of(server) for server in servers}
    assert len(hosts) == (1 if affinity else 2)
    assert set(placement.slots(reservation['id'])) == hosts

    demo.end(lease)
    assert nova.server_group(reservation['id']) is None
