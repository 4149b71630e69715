# SPDX-License-Identifier: Apache-2.0
"""The manager and a real cloud: Nova, Placement and the filters."""

import time

from keystoneauth1 import adapter
import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.placement import Placement
from blazar_sched.service.manager.manager import Manager
from demo import cloud as demo_cloud

# The project that has the leases.
OWNER = 'owner'


@pytest.fixture(scope='module')
def hostnames():
    return 'compute-1', 'compute-2'


@pytest.fixture(scope='module')
def cloud(bare_cloud):
    """A cloud whose scheduler pulls from the manager of the test."""
    return bare_cloud


@pytest.fixture(scope='module')
def nova(cloud):
    return Nova(adapter.Adapter(cloud.session(), service_type='compute'))


@pytest.fixture(scope='module')
def placement_api(cloud):
    return adapter.Adapter(cloud.session(), service_type='placement')


@pytest.fixture(scope='module')
def placement(placement_api):
    return Placement(placement_api)


@pytest.fixture
def limits():
    """The options of the enforcement; most tests need all hosts."""
    return {'enabled_filters': []}


@pytest.fixture
def conf(tmp_path, limits):
    """The configuration of the manager."""
    conf = service_conf.load(files=[])
    url = f'sqlite:///{tmp_path}/ledger.sqlite'
    conf.set_override('connection', url, 'database')
    conf.set_override('transport_url', 'fake://')
    conf.set_override('sync_interval', 1.0, 'manager')
    # Tests of relocation set what they are about.
    conf.set_override('relocate_instances', False, 'manager')
    conf.set_override('unbounded', 'forever', 'manager')
    for name, value in limits.items():
        conf.set_override(name, value, 'enforcement')
    return conf


@pytest.fixture
def manager(cloud, nova, placement, conf):
    """A running manager with an empty ledger.

    The ledger is a new one for each test, not a copy: nova-scheduler knows a
    ledger by its UUID.
    """
    manager = Manager(conf, nova, placement)
    manager.ledger.upgrade()
    manager.start()
    yield manager
    manager.stop()
    left = cloud.servers()
    if left:
        cloud.delete(*left)


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

    def create(*reservations, length=600):
        created = manager.leases.create(
            {
                'name': 'lease',
                'project_id': OWNER,
                'user_id': 'user',
                'start': 'now',
                'end': int(time.time()) + length,
                'before_end': None,
                'reservations': list(reservations),
            }
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
