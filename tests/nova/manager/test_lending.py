# SPDX-License-Identifier: Apache-2.0
"""The owner of a lease that lends boots ten servers at once."""

from concurrent import futures
import time

import pytest

from blazar_sched.worker import process
from demo import cloud as demo_cloud
from tests.nova.manager.conftest import having
from tests.nova.manager.test_leases import fed
from tests.nova.manager.test_leases import OTHER
from tests.nova.manager.test_leases import OWNER
from tests.nova.manager.test_leases import slots

pytestmark = pytest.mark.more

# The hosts have 16 vCPUs: two are beside the lease.
SLOTS, BURST = 14, 10


@pytest.fixture
def conf(conf):
    for name, value in (
        # The owner's first burst comes before.
        ('lend_after', 3600), ('lend_notice', 0),
        # The test looks when it wants.
        ('lend_interval', 3600.0), ('vacate_preemptible_order', ['delete']),
    ):
        conf.set_override(name, value, 'manager')
    return conf


@pytest.fixture
def look(manager, cloud, wait_for):
    """Have the manager look at Nova, and at what is lent."""

    def look():
        manager.instances.sync()
        manager.lendings.step()
        fed(cloud, manager, wait_for)

    return look


@pytest.fixture
def owner(cloud):
    """owner(flavor) boots BURST servers, each in a request of its own."""

    def boot(flavor):
        with futures.ThreadPoolExecutor(BURST) as pool:
            asked = [
                pool.submit(cloud.boot, flavor, project_id=OWNER)
                for _ in range(BURST)
            ]
        return [each.result() for each in asked]

    return boot


def statuses(servers):
    return sorted(each['status'] for each in servers)


def check_refused(cloud, servers):
    """Check that nothing is left of servers, and that a reason is told."""
    for each in servers:
        assert 'No valid host was found' in each['fault']['message']
        assert demo_cloud.host_of(each) is None
        allocations = cloud._nova.placement.api.get(
            f'/allocations/{each["id"]}'
        ).body['allocations']
        assert allocations == {}
    explain = process.ensure_started()._explain
    told = [
        reason for each in servers for known in explain(each['id'], None)
        for reason in known['hosts'].values()
    ]
    assert any('lent to preemptible instances' in each for each in told), told


@pytest.mark.row('F110')
def test_what_the_reserve_has_room_for_always_boots(
    manager, cloud, conf, look, owner, wait_for
):
    cloud.configure(pending_ttl=60)
    for name in cloud.hosts:
        manager.hosts.create(name, {})
    mine = manager.leases.create({
        'name': 'lease', 'project_id': OWNER, 'user_id': 'user',
        'start': 'now', 'end': int(time.time()) + 36000, 'before_end': None,
        'reservations': [slots(SLOTS, vcpus=1, lend=True)],
    })
    wait_for('lease ACTIVE', lambda: having(manager, mine.id, 'ACTIVE'))
    flavor = mine.reservations[0].id
    fed(cloud, manager, wait_for)
    first = cloud.boot_many(BURST, flavor, project_id=OWNER)
    assert statuses(first) == ['ACTIVE'] * BURST
    look()
    cloud.delete(*first)
    conf.set_override('lend_after', 0, 'manager')
    look()
    spot = cloud.flavor(extra_specs={'blazar:preemptible': 'true'})
    guests = [cloud.boot(spot, project_id=OTHER) for _ in range(7)]
    # The reserve is ten: four are lent, and two are beside the lease.
    assert statuses(guests) == ['ACTIVE'] * 6 + ['ERROR']
    look()

    # No server of a request comes where all have no room.
    beyond = cloud.boot_many(BURST + 1, flavor, project_id=OWNER)
    assert statuses(beyond) == ['ERROR'] * (BURST + 1)
    check_refused(cloud, beyond)
    assert statuses(owner(flavor)) == ['ACTIVE'] * BURST
    look()

    # The guests leave what is recalled, and the next servers have room there.
    def refilled():
        look()
        shown = manager.ledger.lease(mine.id).reservations[0]
        return not shown.made['lending']['recalled']

    wait_for('the reserve', refilled)
    again = owner(flavor)
    assert statuses(again) == ['ACTIVE'] * 4 + ['ERROR'] * 6
    left = {each['id'] for each in cloud.servers()}
    assert len(left.intersection(each['id'] for each in guests)) == 3
    assert manager.ledger.check() == []
