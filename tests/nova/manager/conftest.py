# SPDX-License-Identifier: Apache-2.0
"""The manager and a real cloud: Nova, Placement and the filters."""

import time

from keystoneauth1 import adapter
import pytest

from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.manager.manager import Manager
from demo import cloud as demo_cloud
from tests.nova import managing


@pytest.fixture(scope='module')
def cloud(bare_cloud):
    """A cloud whose scheduler pulls from the manager of the test."""
    return bare_cloud


@pytest.fixture(scope='module')
def nova(cloud):
    return managing.nova_of(cloud)


@pytest.fixture(scope='module')
def placement_api(cloud):
    return adapter.Adapter(cloud.session(), service_type='placement')


@pytest.fixture(scope='module')
def placement(placement_api):
    return Placement(placement_api)


@pytest.fixture
def conf(tmp_path):
    """The configuration of the manager."""
    return managing.configured(tmp_path, sync_interval=1.0)


@pytest.fixture
def manager(cloud, nova, placement, conf):
    """A running manager with an empty ledger.

    The ledger is a new one for each test, not a copy: nova-scheduler knows a
    ledger by its UUID.
    """
    manager = Manager(conf, nova, placement)
    manager.ledger.upgrade()
    manager.start()
    with cloud.restoring():
        yield manager
    manager.stop()
    cloud.delete(*cloud.servers())
    # The next test has another ledger, and finds nothing of these leases.
    for lease in manager.ledger.leases():
        if lease.status == 'ACTIVE':
            for driver, part in manager.runner._parts(lease):
                assert driver.end(part)


@pytest.fixture
def both(manager, cloud):
    """The hosts of the cloud, registered."""
    cloud.report()
    return [manager.hosts.create(name, {}) for name in cloud.hosts]


@pytest.fixture
def wait_for():
    return demo_cloud.wait_for


@pytest.fixture
def settle(manager, wait_for):
    """Wait until no event is due or in progress, so that leases can change."""

    def settle():
        wait_for(
            'no event is due',
            lambda: not manager.ledger.due_events(int(time.time())),
        )

    return settle


@pytest.fixture
def lease(manager, wait_for):
    """lease(reservation, …) creates a lease and waits until it is ACTIVE."""

    def create(*reservations, length=600, before_end=None):
        created = managing.book(
            manager, 'now', int(time.time()) + length, *reservations,
            before_end=before_end,
        )
        return wait_for(
            'lease ACTIVE', lambda: having(manager, created.id, 'ACTIVE')
        )

    return create


@pytest.fixture
def started(manager, wait_for):
    """started(lease): starts a lease now, and waits until it is ACTIVE."""

    def start(lease):
        manager.leases.update(lease.id, None, {'start': 'now'})
        wait_for('lease ACTIVE', lambda: having(manager, lease.id, 'ACTIVE'))

    return start


@pytest.fixture
def ended(manager, wait_for, settle):
    """ended(lease): ends a lease now, and waits until it is TERMINATED."""

    def end(lease):
        settle()
        manager.leases.update(lease.id, None, {'end': 'now'})
        wait_for(
            'lease TERMINATED', lambda: having(manager, lease.id, 'TERMINATED')
        )

    return end


@pytest.fixture
def host_of():
    return demo_cloud.host_of


def having(manager, lease_id, status):
    """Return a lease if it has a status; it must not be in ERROR."""
    lease = manager.ledger.lease(lease_id)
    assert lease.status != 'ERROR'
    return lease if lease.status == status else None
