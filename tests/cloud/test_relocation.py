# SPDX-License-Identifier: Apache-2.0
"""A lease on a host with servers that have no end, on a real cloud.

The fake driver migrates at once. With a real hypervisor the migration takes
time, and needs a common CPU model and shared storage, or block migration.
"""

import datetime
import json

import pytest

from tests.cloud import person
from tests.cloud import polling

# Seconds to plan the paths, and to move the servers.
AHEAD = datetime.timedelta(seconds=35)
NAMED = 'hypervisor_hostname'


@pytest.fixture
def movable(admin):
    """A flavor whose servers may be moved, though they have local disks."""
    compute = admin.sdk.compute
    flavor = compute.create_flavor(name='movable', vcpus=1, ram=512, disk=1)
    compute.create_flavor_extra_specs(flavor, {'blazar:movable': 'live'})
    yield flavor.name
    compute.delete_flavor(flavor)


def test_unbounded_servers_leave_in_time_and_live_on(
    demo, alt, register, description, movable, nova, notified
):
    for name in description['hosts']:
        register(name, unbounded='relocate')
    servers = [alt.boot(f'server-{n}', movable) for n in range(3)]
    host = nova.host_of(servers[0])
    named = json.dumps(['==', f'${NAMED}', host])

    lease = demo.book(person.hosts(resource_properties=named), start=AHEAD)
    lease = demo.wait_for(lease, 'ACTIVE')

    assert not lease['degraded']
    polling.until(lambda: {'ACTIVE'} == {
        nova.status_of(server) for server in servers
    })
    assert host not in {nova.host_of(server) for server in servers}
    # Nobody was told to go: the servers had their places.
    uuids = {server['id'] for server in servers}
    for told in 'instance.vacate', 'instance.unplanned':
        assert uuids.isdisjoint(
            payload['instance_id'] for payload in notified(told)
        )
