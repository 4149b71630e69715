# SPDX-License-Identifier: Apache-2.0
"""Clocks that jump by hours, and clocks that are hours apart."""

import collections
import threading
import time

import pytest

from blazar_sched.service.manager import manager as manager_
from tests.fault import site as site_

HOUR = 3600
# Seconds in which a manager would do what it must not.
PATIENCE = 5


class Member:
    """A manager with a clock of its own."""

    def __init__(self, site):
        self.ahead = 0
        self.manager = manager_.Manager(
            site.conf(), clock=lambda: time.time() + self.ahead
        )
        self.manager.ledger.upgrade()

    def create(self, start, end):
        """Create a lease; times are seconds from now, by its clock."""
        now = int(time.time()) + self.ahead
        return self.manager.leases.create(
            {
                'name': 'lease',
                'project_id': 'project',
                'user_id': 'user',
                'start': now + start,
                'end': now + end,
                'before_end': None,
                'reservations': [site_.SLOT],
            }
        ).id

    def status(self, lease_id):
        return self.manager.ledger.lease(lease_id).status

    def wait_for(self, lease_id, status):
        site_.wait_for(status, lambda: self.status(lease_id) == status)


@pytest.fixture
def members(tmp_path, database_on, cloud):
    """Two managers at work on one ledger, with two hosts."""
    site = site_.Site(tmp_path, database_on('mysql'), cloud=cloud.url)
    members = [Member(site), Member(site)]
    for name in cloud.hosts:
        members[0].manager.hosts.create(name, {})
    for member in members:
        member.manager.start()
    yield members
    for member in members:
        member.manager.stop()


def test_clocks_that_jump(members, cloud):
    first, second = members
    lease = first.create(HOUR, 2 * HOUR)
    for member in members:
        member.ahead += HOUR + 1
    first.wait_for(lease, 'ACTIVE')

    # Back to where it had not begun.
    for member in members:
        member.ahead -= 3 * HOUR
    later = second.create(0, HOUR)
    first.wait_for(later, 'ACTIVE')
    assert first.status(lease) == 'ACTIVE'

    for member in members:
        member.ahead += 6 * HOUR
    for each in (lease, later):
        first.wait_for(each, 'TERMINATED')
    assert cloud.left()['flavors'] == {}
    assert first.manager.ledger.check() == []


def test_a_claim_holds_whatever_the_clocks_say(members, cloud):
    """A step that takes longer than a claim lasts is not done by another."""
    go_on = threading.Event()
    asked = []

    def hold(method, path):
        if (method, path) == ('POST', '/flavors'):
            asked.append(path)
            go_on.wait(site_.TIMEOUT)

    cloud.before = hold
    lease = members[0].create(0, 20 * HOUR)
    site_.wait_for('the step', lambda: asked)
    for member, ahead in zip(members, (10 * HOUR, -10 * HOUR), strict=True):
        member.ahead += ahead
    time.sleep(PATIENCE)
    assert len(asked) == 1

    go_on.set()
    members[0].wait_for(lease, 'ACTIVE')
    assert set(collections.Counter(cloud.effects).values()) == {1}
    assert members[0].manager.ledger.check() == []
