# SPDX-License-Identifier: Apache-2.0
"""``flavor:instance`` on a real cloud."""

import pytest

from tests.cloud import person
from tests.cloud import polling


@pytest.fixture(autouse=True)
def hosts(register):
    register('compute-1')
    register('compute-2')


def book(who, flavor_id, affinity=None):
    """Reserve a flavor once the service knows the flavor."""
    wanted = {
        'resource_type': 'flavor:instance',
        'flavor_id': flavor_id,
        'amount': 2,
        'affinity': affinity,
    }

    def look():
        try:
            return who.book(wanted)
        except person.Refused as e:
            if 'flavor_id' not in str(e):
                raise
            return None

    return who.wait_for(polling.until(look), 'ACTIVE')


@pytest.mark.row('F3')
def test_reservation_has_the_size_of_the_flavor_from_start_to_end(
    demo, nova, placement, new_flavor
):
    lease = book(demo, new_flavor(**{'hw:cpu_policy': 'shared'}))
    [reservation] = lease['reservations']
    flavor = nova.flavor(reservation['id'])
    assert (flavor.vcpus, flavor.ram, flavor.disk) == (1, 256, 1)
    assert flavor.ephemeral == 2
    assert flavor.extra_specs['hw:cpu_policy'] == 'shared'
    assert nova.projects_of(reservation['id']) == {demo.project_id}
    assert sum(placement.slots(reservation['id']).values()) == 2

    servers = [demo.boot(name, reservation['id']) for name in ('a', 'b')]
    assert demo.finds_no_host('c', reservation['id'])

    demo.end(lease)
    assert [nova.status_of(server) for server in servers] == [None, None]
    assert nova.flavor(reservation['id']) is None
    assert nova.hosts_in(reservation['id']) is None
    assert not placement.has_class(reservation['id'])


def test_a_trait_that_no_host_may_have_leaves_no_room(demo, new_flavor):
    flavor_id = new_flavor(**{'trait:COMPUTE_NODE': 'forbidden'})
    with pytest.raises(person.Refused, match='NotEnoughHosts'):
        book(demo, flavor_id)


@pytest.mark.row('F15', 'F67')
def test_reservation_with_affinity_grows_and_shrinks_on_its_host(
    demo, nova, placement, new_flavor
):
    lease = book(demo, new_flavor(), affinity=True)
    [reservation] = lease['reservations']
    assert nova.server_group(reservation['id']).policy == 'affinity'
    [(host, number)] = placement.slots(reservation['id']).items()
    assert number == 2
    for amount in (3, 1):
        wanted = {'id': reservation['id'], 'amount': amount}
        demo.update_lease(lease, reservations=[wanted])
        [changed] = demo.opened(lease)['reservations']
        assert changed['amount'] == amount
        assert placement.slots(reservation['id']) == {host: amount}
