# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers in an active lease that is not used, on a real cloud."""

import pytest

from tests.cloud import person
from tests.cloud import polling
from tests.cloud import seed

V1_1 = '1.1'


@pytest.fixture
def spot(admin):
    """A flavor whose servers yield."""
    compute = admin.sdk.compute
    flavor = compute.create_flavor(name='spot', vcpus=1, ram=1024, disk=1)
    compute.create_flavor_extra_specs(
        flavor, {'lifecycle:preemptable': 'true'}
    )
    yield flavor.name
    compute.delete_flavor(flavor)


@pytest.fixture
def lend(demo, register, description):
    """Book a reservation that lends, and wait until it does."""
    for name in description['hosts']:
        register(name)

    def lend(reservation, lent):
        lease = demo.book(reservation, microversion=V1_1)
        lease = demo.wait_for(lease, 'ACTIVE')
        polling.until(lambda: lent_by(demo, lease) == lent)
        [booked] = lease['reservations']
        return lease, booked['id']

    return lend


def lent_by(who, lease):
    shown = who.get(f'leases/{lease["id"]}', V1_1)['lease']
    return sum(each['lent'] for each in shown['reservations'])


def boot_all(who, flavor, count):
    """Boot servers at once; return their statuses, and delete failed ones.
    """
    compute = who.sdk.compute
    who.command(
        'server', 'create', '--nic', 'none', '--image', seed.IMAGE,
        '--flavor', flavor, '--min', count, '--max', count, 'burst',
    )

    def look():
        found = [s.status for s in compute.servers(name='burst')]
        return 'BUILD' not in found and found

    statuses = polling.until(look)
    for server in compute.servers(name='burst', status='ERROR'):
        compute.delete_server(server)
    polling.until(lambda: not list(
        compute.servers(name='burst', status='ERROR')
    ))
    return statuses


def recall(who, lease):
    answer = who.reservation.post(
        f'/leases/{lease["id"]}/recall', microversion=V1_1
    )
    assert answer.status_code == 200, answer.text


@pytest.mark.row('F110')
def test_the_owner_gets_its_hosts_back_one_by_one(
    demo, alt, nova, description, lend, spot
):
    every = len(description['hosts'])
    lease, reservation = lend(person.hosts(every, lend=True), every - 1)
    guests = [alt.boot(f'guest-{n}', spot) for n in range(2)]
    assert alt.finds_no_host('ordinary')

    for number in range(every):
        # The reserve is one host, which is free at each boot.
        mine = demo.boot(f'mine-{number}', reservation=reservation)
        assert nova.status_of(mine) == 'ACTIVE'
        polling.until(
            lambda n=number: lent_by(demo, lease) == max(0, every - 2 - n)
        )
    assert not any(map(nova.status_of, guests))
    assert demo.lease(lease)['status'] == 'ACTIVE'


def test_a_burst_beyond_the_reserve_needs_a_recall(
    demo, alt, nova, lend, spot
):
    lease, reservation = lend(person.instances(4, lend=True), 3)
    guest = alt.boot('guest', spot)
    assert boot_all(demo, reservation, 4) == ['ERROR'] * 4
    recall(demo, lease)
    polling.until(lambda: lent_by(demo, lease) == 0)
    assert boot_all(demo, reservation, 4) == ['ACTIVE'] * 4
    # There is room for the guest beside the lease.
    assert nova.status_of(guest) == 'ACTIVE'


def test_ten_servers_at_once_come_from_a_reserve_of_ten(
    demo, alt, nova, lend, spot
):
    """The reserve is what the owner booted at once lately."""
    lease, reservation = lend(person.instances(14, vcpus=1, lend=True), 13)
    recall(demo, lease)
    polling.until(lambda: lent_by(demo, lease) == 0)
    assert boot_all(demo, reservation, 10) == ['ACTIVE'] * 10
    for server in demo.sdk.compute.servers(name='burst'):
        demo.sdk.compute.delete_server(server)
    demo.update_lease(lease, microversion=V1_1, reservations=[
        {'id': reservation, 'lend': True},
    ])
    polling.until(lambda: lent_by(demo, lease) == 4)
    guests = []
    with pytest.raises(person.Refused, match='No valid host'):
        while True:
            guests.append(alt.boot(f'guest-{len(guests)}', spot))

    assert boot_all(demo, reservation, 10) == ['ACTIVE'] * 10
    # The reserve is filled again.
    polling.until(lambda: lent_by(demo, lease) == 0)
    polling.until(
        lambda: [nova.status_of(guest) for guest in guests].count(None) == 4
    )
    assert demo.lease(lease)['status'] == 'ACTIVE'
