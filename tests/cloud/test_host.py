# SPDX-License-Identifier: Apache-2.0
"""``physical:host`` on a real cloud."""

import datetime

import pytest

from tests.cloud import person

LATER = datetime.timedelta(days=1)
# The properties that `altered` gives to compute-1, and that Nova does not
# report.
TRAIT = 'HW_GPU_API_VULKAN'
ZONE = 'elsewhere'


@pytest.fixture
def altered(admin, placement):
    """altered() changes the zone, the size and the traits of compute-1."""
    compute = admin.sdk.compute
    zone = compute.create_aggregate(name=ZONE, availability_zone=ZONE)

    def say(vcpus, trait):
        placement.change(
            'compute-1', 'inventories', lambda i: i['VCPU'].update(total=vcpus)
        )
        placement.change('compute-1', 'traits', trait)

    def alter():
        if not compute.get_aggregate(zone.id).hosts:
            compute.add_host_to_aggregate(zone, 'compute-1')
        say(6, lambda traits: TRAIT in traits or traits.append(TRAIT))

    yield alter
    say(10, lambda traits: TRAIT not in traits or traits.remove(TRAIT))
    if compute.get_aggregate(zone.id).hosts:
        compute.remove_host_from_aggregate(zone, 'compute-1')
    compute.delete_aggregate(zone)


@pytest.mark.row('C36')
def test_only_an_admin_registers_hosts(demo, admin):
    with pytest.raises(person.Refused, match='403'):
        demo.create('os-hosts', name='compute-1')
    host = admin.create('os-hosts', name='compute-1', gpu='true')
    assert host['hypervisor_hostname'] == 'compute-1'
    assert (host['vcpus'], host['memory_mb']) == (10, 8192)
    assert host['gpu'] == 'true'
    with pytest.raises(person.Refused, match='404'):
        admin.create('os-hosts', name='compute-99')


@pytest.mark.row('C25', 'C36', 'C37', 'F1')
def test_a_host_is_the_leases_from_start_to_end(
    demo, alt, register, nova, until
):
    register('compute-1')
    lease = demo.wait_for(demo.book(person.hosts()), 'ACTIVE')
    [reservation] = lease['reservations']
    assert reservation['status'] == 'active'
    with pytest.raises(person.Refused, match='NotEnoughHosts'):
        alt.book(person.hosts())

    mine = demo.boot('mine', reservation=reservation['id'])
    assert nova.host_of(mine) == 'compute-1'
    assert nova.hosts_in(reservation['id']) == ['compute-1']

    over = demo.end(lease)
    assert [r['status'] for r in over['reservations']] == ['deleted']
    assert nova.status_of(mine) is None
    assert nova.hosts_in(reservation['id']) is None
    alt.wait_for(alt.book(person.hosts()), 'ACTIVE')


@pytest.mark.row('C7', 'F1')
def test_a_lease_starts_and_ends_when_it_is_told_to(demo, register):
    register('compute-1')
    lease = demo.book(
        person.hosts(), start=datetime.timedelta(seconds=8),
        length=datetime.timedelta(seconds=8),
    )
    assert lease['status'] == 'PENDING'
    demo.wait_for(lease, 'ACTIVE')
    over = demo.wait_for(lease, 'TERMINATED')
    assert {event['status'] for event in over['events']} == {'DONE'}


@pytest.mark.row('F85')
def test_a_lease_is_its_projects_own(demo, alt, admin, register):
    register('compute-1')
    lease = demo.book(person.hosts(), start=datetime.timedelta(days=1))
    assert lease['project_id'] == demo.project_id
    with pytest.raises(person.Refused, match='404'):
        alt.lease(lease)
    assert alt.reservation.delete(f'/leases/{lease["id"]}').status_code == 404
    assert alt.get('leases')['leases'] == []
    assert [each['id'] for each in admin.get('leases')['leases']] == [
        lease['id']
    ]


def test_a_host_is_shown_as_nova_and_placement_have_it_now(
    admin, register, altered, until
):
    host = register('compute-1')

    def look():
        # The change is repeated, because Nova may report its own value just
        # then.
        altered()
        now = admin.get(f'os-hosts/{host["id"]}', '1.1')['host']
        return (
            (now['vcpus'], now['availability_zone']) == (6, ZONE)
            and set(now['traits']) == {*host['traits'], TRAIT}
        )

    assert (host['vcpus'], host['availability_zone']) != (6, ZONE)
    until(look)


@pytest.mark.row('F84')
def test_a_host_is_for_nobody_or_for_some_projects_if_it_is_told_so(
    demo, alt, admin, register
):
    host = register('compute-1', disabled='true')
    with pytest.raises(person.Refused, match='NotEnoughHosts'):
        demo.book(person.hosts(), start=LATER)
    admin.update(
        f'os-hosts/{host["id"]}', disabled='false', projects=demo.project_id
    )
    with pytest.raises(person.Refused, match='NotEnoughHosts'):
        alt.book(person.hosts(), start=LATER)
    demo.book(person.hosts(), start=LATER)


@pytest.mark.row('F72')
def test_an_admin_moves_a_lease_to_come_to_another_host(
    demo, admin, register, host_of
):
    first = register('compute-1')
    lease = demo.book(person.hosts(), start=LATER)
    path, asked = f'os-hosts/{first["id"]}/allocation', lease['id']
    with pytest.raises(person.Refused, match='403'):
        demo.update(path, lease_id=asked)
    with pytest.raises(person.Refused, match='NotEnoughHosts'):
        admin.update(path, lease_id=asked)
    assert host_of(lease) == [first['id']]
    second = register('compute-2')
    assert not admin.update(path, lease_id=asked)['reservations']
    assert host_of(lease) == [second['id']]
