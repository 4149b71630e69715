# SPDX-License-Identifier: Apache-2.0
"""The limit on the number of leases, and servers with a lifetime."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.limit.exception import MaxLeases
from tests.functional.manager import test_lifetime
from tests.functional.manager.test_lifetime import boot
from tests.functional.manager.test_lifetime import HOUR
from tests.functional.manager.test_lifetime import made
from tests.functional.manager.test_lifetime import shown
from tests.functional.manager.test_lifetime import sync

host = test_lifetime.host


@pytest.fixture
def conf(conf):
    for name, value in {
        'enabled_filters': [
            'MaxLeasesFilter', 'MaxLeaseDurationFilter',
            'MaxHorizonFilter', 'MaxSizeFilter',
        ],
        'max_leases_per_project': 1,
        'max_lease_duration': HOUR,
    }.items():
        conf.set_override(name, value, 'enforcement')
    return conf


def test_lifetime_leases_that_start_later_count(world, host, slots):
    servers = [
        boot(world, start=500, end=900, project_id='project')
        for _ in range(3)
    ]
    [stays] = sync(world)
    assert world.nova.stored.keys() == {stays}
    with pytest.raises(MaxLeases):
        world.create(slots(), end=HOUR)
    # After its start the server is an ordinary one.
    world.nova.lands_on = 'a'
    for _ in range(3):
        world.run(250)
    [server] = [s for s in servers if s.uuid == stays]
    assert shown(world, server).status == 'ACTIVE'
    world.create(slots(), end=HOUR)
    world.check()


def test_started_lifetimes_are_not_enforced(world, host, slots):
    """Started servers are subject to the cloud's policy."""
    for _ in range(2):
        server, lease = made(world, end=3 * HOUR, project_id='project')
    world.leases.update(lease.id, None, {'end': lease.end + HOUR})
    with pytest.raises(exception.MaxLeaseDuration):
        world.create(slots(), end=9 * HOUR)
    world.create(slots(), end=HOUR)
    with pytest.raises(MaxLeases):
        world.create(slots(), end=HOUR)


def test_sizes_hold_for_lifetime_leases_that_start_later(
    world, conf, host, caplog
):
    conf.set_override('max_instances_per_project', 0, 'enforcement')
    server = boot(world, start=1, end=2)
    assert not sync(world)
    assert server.uuid not in world.nova.stored
    assert 'may have' in caplog.text and server.uuid in caplog.text
    conf.set_override('max_instances_per_project', 1, 'enforcement')
    server = boot(world, start=1, end=2)
    assert sync(world).keys() == {server.uuid}
    world.check()
