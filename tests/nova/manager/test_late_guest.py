# SPDX-License-Identifier: Apache-2.0
"""A preemptible server that is being built when a lease starts on its host."""

from concurrent import futures
import threading

from nova.compute import manager as compute
import pytest

from blazar_sched.domain.reservation import WAITED_FOR
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.upkeep import clearing
from demo import cloud as demo_cloud
from tests.nova import clouds
from tests.nova.manager.test_leases import fed
from tests.nova.managing import hosts
from tests.nova.managing import OTHER
from tests.nova.managing import OWNER
from tests.nova.managing import slots

pytestmark = pytest.mark.more

CLOUD = clouds.PAIR


@pytest.fixture
def conf(conf, monkeypatch):
    conf.set_override('clear_notice', 0, 'manager')
    monkeypatch.setattr(clearing, 'INTERVAL', 1.0)
    return conf


@pytest.fixture
def other_manager(manager, nova, placement, conf):
    """Another running manager on the same ledger."""
    other = Manager(conf, nova, placement)
    other.start()
    yield other
    other.stop()


@pytest.fixture
def building(monkeypatch):
    """Compute services build nothing until `go`; `held` is set meanwhile.

    A method that a message names cannot be replaced: the service of Nova
    keeps each such method after the first message.
    """
    held, go = threading.Event(), threading.Event()
    real = compute.ComputeManager._do_build_and_run_instance

    def build(*args, **values):
        held.set()
        go.wait()
        return real(*args, **values)

    monkeypatch.setattr(
        compute.ComputeManager, '_do_build_and_run_instance', build
    )
    yield held, go
    go.set()


@pytest.mark.parametrize(
    'asked', [hosts(2), slots(2, vcpus=7)], ids=['hosts', 'slots']
)
def test_it_goes_and_the_owner_boots(
    manager, other_manager, cloud, lease, building, wait_for, asked
):
    held, go = building
    for each in cloud.hosts:
        manager.hosts.create(each, {})
    fed(cloud, manager, wait_for)
    spot = cloud.flavor(8, extra_specs={'blazar:preemptible': 'true'})
    with futures.ThreadPoolExecutor(1) as pool:
        guest = pool.submit(cloud.boot, spot, project_id=OTHER)
        wait_for(
            'the scheduler has chosen', lambda: held.is_set() or guest.done()
        )
        assert held.is_set(), guest.result().get('fault')
        mine = lease(asked)
        go.set()
        guest = guest.result()

    def is_clear():
        [reservation] = manager.ledger.lease(mine.id).reservations
        left = {each['id'] for each in cloud.servers()}
        return guest['id'] not in left and WAITED_FOR not in reservation.made

    wait_for('the host is clear', is_clear)
    fed(cloud, manager, wait_for)
    plain = cloud.flavor(8 if asked['resource_type'] == 'physical:host' else 7)
    hint = {'reservation': mine.reservations[0].id}
    for _ in range(2):
        booted = cloud.boot(plain, hint, project_id=OWNER)
        assert booted['status'] == 'ACTIVE', booted.get('fault')
        assert demo_cloud.host_of(booted) in cloud.hosts
