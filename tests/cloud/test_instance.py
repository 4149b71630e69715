# SPDX-License-Identifier: Apache-2.0
"""``virtual:instance`` on a real cloud."""

import pytest

from tests.cloud import person


@pytest.mark.row('C12', 'F2', 'F50')
def test_a_flavor_and_slots_are_there_from_start_to_end(
    demo, register, nova, placement
):
    for name in ('compute-1', 'compute-2'):
        register(name)
    # The flavor and the server group exist when the response comes, for a user
    # who boots at once.
    lease = demo.book(person.instances(2, affinity=False))
    [reservation] = lease['reservations']
    flavor = nova.flavor(reservation['id'])
    assert (flavor.vcpus, flavor.ram, flavor.disk) == (2, 1024, 1)
    assert not flavor.is_public
    assert nova.projects_of(reservation['id']) == {demo.project_id}
    group = reservation['server_group_id']
    assert nova.server_group(reservation['id']).id == group

    servers = [
        demo.boot(name, reservation['id'], group=group)
        for name in ('first', 'second')
    ]
    slots = placement.slots(reservation['id'])
    assert slots == {'compute-1': 1, 'compute-2': 1}
    assert nova.hosts_in(reservation['id']) == sorted(slots)
    assert set(map(nova.host_of, servers)) == set(slots)
    assert demo.finds_no_host('third', reservation['id'])

    demo.end(lease)
    assert [nova.status_of(server) for server in servers] == [None, None]
    assert nova.flavor(reservation['id']) is None
    assert nova.server_group(reservation['id']) is None
    assert nova.hosts_in(reservation['id']) is None
    assert placement.slots(reservation['id']) == {}
    assert not placement.has_class(reservation['id'])
