# SPDX-License-Identifier: Apache-2.0
"""Clocks that jump by hours, and clocks that differ by hours."""

import collections
import threading
import time

import futurist
import pytest

from blazar_sched.domain import exception
from blazar_sched.service.bus import rpc
from blazar_sched.service.events import clock as manager_clock
from blazar_sched.service.events.clock import Clock
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.metrics import CLOCK_DIFFERENCE
from tests.fault import site as fault_site
from tests.fault.site import Deployment
from tests.fault.site import SLOT

HOUR = 3600
# The number of polls in which one event, a start or an end, is found.
LOOKS = 3
# The number of renewals; a claim lasts as long as three of them.
RENEWALS = 6


class Member:
    """A manager with a wall clock of its own, `ahead` of all others."""

    def __init__(self, site, pool=None):
        self.ahead = 0
        self.manager = Manager(
            site.conf(), clock=lambda: time.time() + self.ahead, pool=pool
        )
        self.manager.ledger.upgrade()

    def create(self, start, end, reservation=SLOT):
        """Create a lease; times are seconds from now by the true clock."""
        now = int(time.time())
        return self.manager.leases.create(
            {
                'name': 'lease',
                'project_id': 'project',
                'user_id': 'user',
                'start': start if start == 'now' else now + start,
                'end': now + end,
                'before_end': None,
                'reservations': [reservation],
            }
        ).id

    def look(self):
        """Run the events that are due for this manager."""
        for _ in range(LOOKS):
            self.manager.runner.step()

    def status(self, lease_id):
        return self.manager.ledger.lease(lease_id).status

    def wait_for(self, lease_id, status):
        fault_site.wait_for(status, lambda: self.status(lease_id) == status)

    def wait_until_it_differs(self, differs):
        """Wait until the manager has compared its clock with the database's.
        """
        fault_site.wait_for(
            'a look', lambda: self.manager.clock.differs == differs
        )


@pytest.fixture
def new_member(tmp_path, database_on, cloud):
    """new_member(engine) -> a manager that runs only what the test runs."""
    made = []

    def make(engine):
        # Such a manager renews no claims: a claim lasts as long as a test.
        site = Deployment(
            tmp_path, database_on(engine), cloud=cloud.url,
            event_claim_seconds=HOUR,
        )
        member = Member(site, futurist.SynchronousExecutor())
        made.append(member)
        for name in cloud.hosts:
            member.manager.hosts.create(name, {})
        return member

    yield make
    for member in made:
        member.manager.stop()


@pytest.fixture
def member(new_member):
    return new_member('mysql')


@pytest.fixture
def own(monkeypatch):
    """Make each manager use its own clock, whatever the database's is."""
    monkeypatch.setattr(Clock, 'ask', lambda self, query: query()[0])


def ends_early(member, ahead):
    """Tell whether a lease that lasts for an hour is already over."""
    lease = member.create('now', HOUR)
    member.look()
    assert member.status(lease) == 'ACTIVE'
    member.ahead = ahead
    member.look()
    return member.status(lease) != 'ACTIVE'


@pytest.mark.parametrize('engine', ['mysql', 'postgresql'])
def test_a_clock_that_is_ahead_ends_no_lease(new_member, engine):
    assert not ends_early(new_member(engine), 2 * HOUR)


def test_without_the_databases_clock_it_would(own, member):
    assert ends_early(member, 2 * HOUR)


@pytest.mark.parametrize('ahead', [-2 * HOUR, 2 * HOUR])
def test_manager_reports_a_wrong_clock_once_and_executes_no_event(
    member, caplog, ahead
):
    caplog.set_level('INFO', manager_clock.__name__)
    lease = member.create('now', HOUR)
    member.ahead = ahead
    for _ in range(3):
        member.look()
    assert member.status(lease) == 'PENDING'
    side = 'ahead of' if ahead > 0 else 'behind'
    with pytest.raises(exception.Unavailable, match=f'7200.. s {side}'):
        rpc.Local(member.manager.endpoint).check()
    assert difference(member) == pytest.approx(ahead, abs=1)

    member.ahead = 0
    for _ in range(3):
        member.look()
    assert member.status(lease) == 'ACTIVE'
    rpc.Local(member.manager.endpoint).check()
    assert difference(member) == pytest.approx(0, abs=1)
    said = [
        r.levelname
        for r in caplog.records
        if r.name == manager_clock.__name__
    ]
    assert said == ['ERROR', 'INFO']


def difference(member):
    metrics = member.manager.metrics
    return metrics.of(CLOCK_DIFFERENCE)._value.get()


def test_a_small_difference_is_put_right(member):
    """The lease that starts in three seconds is not started early."""
    member.ahead = 4
    member.look()
    lease = member.create(600, HOUR)
    now = int(member.manager.clock())
    assert now == pytest.approx(time.time(), abs=2)
    assert not member.manager.clock.differs
    member.look()
    assert member.status(lease) == 'PENDING'
    started = member.create('now', HOUR)
    start = member.manager.ledger.lease(started).start
    assert start == pytest.approx(time.time(), abs=2)


def test_a_clock_that_jumps_between_two_looks_changes_nothing(member):
    """An event is compared with the same clock when found and when done."""
    member.look()
    lease = member.create('now', HOUR)
    due = member.manager.runner.due()
    member.ahead = 2 * HOUR
    for event, claim in due:
        member.manager.runner.run(event, claim)
    opened = member.manager.ledger.lease(lease)
    assert opened.status == 'ACTIVE'
    assert [r.status for r in opened.reservations] == ['active']


@pytest.mark.parametrize('ahead', [-2 * HOUR, 2 * HOUR])
def test_now_is_the_databases(member, ahead):
    """Requests to a manager whose clock is hours off use the database's clock.
    """
    member.ahead = ahead
    member.look()
    lease = member.manager.ledger.lease(member.create('now', HOUR))
    assert lease.start == pytest.approx(time.time(), abs=2)
    with pytest.raises(exception.InvalidInput):
        member.create(-HOUR, HOUR)


def test_on_sqlite_it_is_the_managers_own(new_member):
    member = new_member('sqlite')
    assert ends_early(member, 2 * HOUR)
    assert not member.manager.clock.differs


@pytest.fixture
def members(tmp_path, database_on, cloud):
    """Two running managers on one ledger, with two hosts."""
    # Long enough to be renewed by a process that waits for a core.
    site = Deployment(
        tmp_path, database_on('mysql'), cloud=cloud.url, event_claim_seconds=10
    )
    members = [Member(site), Member(site)]
    for name in cloud.hosts:
        members[0].manager.hosts.create(name, {})
    for member in members:
        member.manager.start()
    yield members
    for member in members:
        member.manager.stop()


def test_clocks_that_jump(members, cloud):
    """The clocks jump one after the other: the other manager runs the events.
    """
    first, second = members
    leases = []
    for wrong, ahead in ((first, 6 * HOUR), (second, -6 * HOUR)):
        wrong.ahead = ahead
        wrong.wait_until_it_differs(True)
        leases.append(wrong.create('now', HOUR))
        wrong.wait_for(leases[-1], 'ACTIVE')
        wrong.ahead = 0
        wrong.wait_until_it_differs(False)
    assert {first.status(lease) for lease in leases} == {'ACTIVE'}
    for lease in leases:
        first.manager.leases.update(lease, None, {'end': 'now'})
        first.wait_for(lease, 'TERMINATED')
    assert cloud.flavors == {}
    assert first.manager.ledger.check() == []


def test_a_claim_holds_whatever_the_clocks_say(own, members, cloud):
    """A step that lasts longer than a claim is not done by another manager."""
    go_on = threading.Event()
    asked = []

    def hold(method, path):
        if (method, path) == ('POST', '/flavors'):
            asked.append(path)
            go_on.wait(fault_site.TIMEOUT)

    cloud.before = hold
    lease = members[0].create(0, 20 * HOUR)
    fault_site.wait_for('the step', lambda: asked)
    for member, ahead in zip(members, (10 * HOUR, -10 * HOUR), strict=True):
        member.ahead += ahead
    renewed = set()

    def has_lasted():
        due = members[1].manager.ledger.due_events(0)
        renewed.update(claim.until for _, claim in due)
        return len(renewed) > RENEWALS

    fault_site.wait_for('it has lasted for longer than a claim', has_lasted)
    assert len(asked) == 1

    go_on.set()
    members[0].wait_for(lease, 'ACTIVE')
    assert set(collections.Counter(cloud.effects).values()) == {1}
    assert members[0].manager.ledger.check() == []
