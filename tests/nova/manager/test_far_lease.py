# SPDX-License-Identifier: Apache-2.0
"""A cloud with the README's lines and no others: no member shuts it.

A member books hosts for an hour, weeks ahead.
"""

import time

import pytest

from blazar_sched.domain import exception
from tests.nova import managing
from tests.nova.manager.test_leases import fed
from tests.nova.managing import hosts
from tests.nova.managing import OTHER

pytestmark = [pytest.mark.more, pytest.mark.usefixtures('both')]

DAY = 86400


@pytest.fixture
def conf(conf):
    """The options are those of a new installation."""
    for name in 'relocate_instances', 'unbounded':
        conf.clear_override(name, 'manager')
    conf.clear_override('enabled_filters', 'enforcement')
    return conf


def book(manager, days, number):
    start = int(time.time()) + days * DAY
    return managing.book(manager, start, start + 3600, hosts(number))


@pytest.fixture
def boots(cloud, manager, wait_for):
    """boots(host) tells whether a server without an end boots there.

    The flavors of the tests have local disks, and are moved only if they say
    so.
    """
    movable = cloud.flavor(1, extra_specs={'blazar:movable': 'live'})

    def boot(host):
        fed(cloud, manager, wait_for)
        server = cloud.boot(movable, host=host, project_id=OTHER)
        return server['status'] == 'ACTIVE'

    return boot


def held_by(manager, cloud, lease):
    """Return the names of the hosts of a lease, and of the other hosts."""
    held = {
        each.host for each, _ in manager.ledger.allocations(lease_id=lease.id)
    }
    return [
        [name for name, uuid in cloud.hosts.items() if (uuid in held) == has]
        for has in (True, False)
    ]


def test_a_member_can_neither_book_all_hosts_nor_far_ahead(
    manager, cloud, boots
):
    with pytest.raises(exception.MaxStartHorizon):
        book(manager, 80, 1)
    half = len(cloud.hosts) // 2
    with pytest.raises(exception.MaxResources, match='50 % of all hosts'):
        book(manager, 20, half + 1)

    leased, free = held_by(manager, cloud, book(manager, 20, half))
    assert boots(leased[0])
    assert boots(free[0])


class TestWithoutLimits:
    @pytest.fixture
    def conf(self, conf):
        conf.set_override('enabled_filters', [], 'enforcement')
        return conf

    def test_ordinary_servers_boot_before_a_far_lease_of_most_hosts(
        self, manager, cloud, boots
    ):
        lease = book(manager, 80, len(cloud.hosts) - 1)
        leased, [free] = held_by(manager, cloud, lease)
        assert all(map(boots, leased))
        assert boots(free)


class TestForever:
    """The default of earlier releases, as a control."""

    @pytest.fixture
    def conf(self, conf):
        conf.set_override('unbounded', 'forever', 'manager')
        return conf

    def test_the_hosts_of_a_lease_are_shut(self, manager, cloud, boots):
        leased, free = held_by(manager, cloud, book(manager, 20, 1))
        assert not boots(leased[0])
        assert boots(free[0])
