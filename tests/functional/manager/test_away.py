# SPDX-License-Identifier: Apache-2.0
"""Services that can do nothing now make leases late, and fail none."""

from collections import Counter
import logging
import re

from keystoneauth1 import exceptions
import pytest

from blazar_sched.replica import limited_log
from blazar_sched.service.events.runner import Runner
from tests.functional.manager.conftest import Clock
from tests.functional.manager.conftest import instances
from tests.functional.manager.managed_cloud import ManagedCloud
from tests.standins.rest import answer
from tests.standins.rest import Trouble
from tests.told import notified

HOUR = 3600
PLACEMENT = re.compile('/(resource_|allocation|reshaper|traits|usages)')


class NoKeystone(Trouble):
    """No token can be had, for any service."""

    def __init__(self, error):
        super().__init__(False)
        self._error = error

    def answer(self):
        raise self._error


def service_of(path):
    if path.startswith('/v2.0/'):
        return 'network'
    return 'placement' if PLACEMENT.match(path) else 'compute'


def only(service, said=None):
    """Return what is wrong with the requests to one service."""

    def meddle(method, path):
        return Trouble(False, said) if service_of(path) == service else None

    return meddle


AWAY = {
    'Nova does not answer': only('compute'),
    'Nova is in maintenance': only('compute', answer(503, {})),
    'Nova has no database': only('compute', answer(500, {})),
    'Placement is overloaded': only('placement', answer(429, {})),
    'Placement is behind a proxy that is alone': only(
        'placement', answer(502, {})
    ),
    'Keystone does not answer': lambda method, path: NoKeystone(
        exceptions.ConnectFailure('refused')
    ),
    'the password is refused': lambda method, path: NoKeystone(
        exceptions.Unauthorized('The request requires authentication')
    ),
}


class Cloud(ManagedCloud):
    """Half of the leases are to start at `at`, the others to end."""

    def __init__(self, conf, many, **options):
        old = [f'old-{n}' for n in range(many // 8 + 1)]
        new = [f'new-{n}' for n in range(many // 8 + 1)]
        super().__init__(conf, Clock(), *old, *new, **options)
        for name in old + new:
            self.manager.hosts.create(name, {'side': name[:3]})
        self.prepare(many)
        self.at = self.clock.now + 1000
        ends = [
            self.create('old', self.clock.now, self.at) for _ in range(many)
        ]
        self.run()
        starts = [
            self.create('new', self.at, self.at + 9000) for _ in range(many)
        ]
        self.leases = [lease.id for lease in starts + ends]
        assert self.statuses() == {'PENDING': many, 'ACTIVE': many}

    def prepare(self, many):
        """Register what the leases have besides."""

    def others(self):
        """Return what a lease has besides."""
        return []

    def create(self, side, start, end):
        """Create a lease of a slot, on hosts of a side, and of `others`."""
        slot = instances(
            1, 1, resource_properties=f'["==", "$side", "{side}"]'
        )
        return self.manager.leases.create({
            'name': 'lease', 'project_id': 'project', 'user_id': 'user',
            'start': start, 'end': end, 'before_end': None,
            'reservations': [slot, *self.others()],
        })

    def run(self, seconds=0):
        """Let time pass, and run once each event that is due."""
        self.clock.now += seconds
        runner = self.manager.runner
        over = True
        while over:
            over = max(
                [runner.run(*each) for each in runner.due()], default=False
            )

    def statuses(self):
        return Counter(self.ledger.lease(id_).status for id_ in self.leases)

    def be_away(self, meddle):
        self.cloud.meddle = meddle


@pytest.fixture
def many():
    return 2


@pytest.fixture
def away():
    """What is wrong with services, by name."""
    return AWAY


@pytest.fixture(params=AWAY)
def trouble(request):
    return request.param


@pytest.fixture
def cloud(conf, many):
    # An event that is refused is given up within the minute.
    conf.set_override('event_max_retries', 2, 'manager')
    cloud = Cloud(conf, many)
    yield cloud
    cloud.ledger.close()


def be_away_for_an_hour(cloud, meddle, until=HOUR):
    """Let services be away; more looks at first, then one in four minutes."""
    cloud.be_away(meddle)
    cloud.run(cloud.at - cloud.clock.now)
    for _ in range(20):
        cloud.run(3)
    while cloud.clock.now < cloud.at + until:
        cloud.run(240)


def come_back(cloud):
    """Let the services be back, for less than a minute."""
    cloud.be_away(lambda method, path: None)
    for _ in range(11):
        cloud.run(5)


@pytest.mark.row('F125')
class TestAnHour:
    def test_all_leases_are_late_and_none_fails(
        self, cloud, away, trouble, many, monkeypatch, caplog
    ):
        told = notified(cloud.manager, monkeypatch)
        caplog.set_level(logging.WARNING)
        be_away_for_an_hour(cloud, away[trouble])
        assert cloud.statuses() == {'STARTING': many, 'TERMINATING': many}
        # A line a minute at most, for each of the services.
        lines = [r for r in caplog.records if r.name.startswith('blazar')]
        of_runner = [
            r for r in lines if r.getMessage().startswith('event runner')
        ]
        services = 3 if 'Keystone' in trouble or 'password' in trouble else 1
        assert 0 < len(of_runner) <= services * (1 + HOUR // 60)
        assert lines == of_runner
        assert not any(r.exc_info for r in lines)

        come_back(cloud)
        assert cloud.statuses() == {'ACTIVE': many, 'TERMINATED': many}
        types = Counter(event_type for event_type, _ in told)
        assert types['lease.degraded'] == 2 * many
        assert types['lease.healed'] == many
        assert types['lease.event.start_lease'] == many
        assert types['lease.event.end_lease'] == many

    def test_the_next_manager_goes_on(
        self, cloud, away, trouble, many, killed, conf
    ):
        be_away_for_an_hour(cloud, away[trouble], HOUR / 2)
        cloud.clock.now += 60
        with killed('start_lease:claimed'):
            cloud.run()
        cloud.manager = cloud.another()
        for _ in range(10):
            cloud.run(180)
        assert cloud.statuses() == {'STARTING': many, 'TERMINATING': many}
        come_back(cloud)
        assert cloud.statuses() == {'ACTIVE': many, 'TERMINATED': many}


@pytest.mark.more
@pytest.mark.parametrize('many', [50])
@pytest.mark.parametrize('trouble', [
    'Nova does not answer', 'Placement is overloaded',
    'Keystone does not answer',
])
class TestAnHourOfMany(TestAnHour):
    """One failure of each service, with many leases."""


def test_a_counted_failure_fails_leases(cloud, many, monkeypatch):
    """The control: failures of services that are away use up retries."""
    monkeypatch.setattr(
        Runner, '_await_service',
        lambda self, event, lease, mine, tried, error: self._try_again(
            event, lease, mine, tried
        ),
    )
    be_away_for_an_hour(cloud, only('compute'))
    assert cloud.statuses() == {'ERROR': 2 * many}


def test_a_line_for_each_failure_floods_the_log(cloud, monkeypatch, caplog):
    """The control: no service is told of once a minute."""
    monkeypatch.setattr(limited_log, 'PERIOD', 0.0)
    be_away_for_an_hour(cloud, only('compute'))
    assert len(caplog.records) > HOUR / 60


@pytest.mark.parametrize('status', [403, 501])
def test_a_refusal_uses_up_retries(cloud, many, status):
    be_away_for_an_hour(cloud, only('compute', answer(status, {})))
    assert cloud.statuses()['ERROR']


def test_a_start_is_tried_until_the_lease_ends(cloud, many):
    cloud.be_away(only('compute'))
    cloud.run(cloud.at - cloud.clock.now)
    for _ in range(24):
        cloud.run(400)
    assert cloud.statuses() == {'TERMINATING': 2 * many}
    come_back(cloud)
    assert cloud.statuses() == {'TERMINATED': 2 * many}
    assert not cloud.cloud.flavors


def test_a_service_is_left_alone_as_long_as_it_asks(cloud, many):
    busy = answer(503, {})
    busy.headers['Retry-After'] = '45'
    cloud.be_away(only('compute', busy))
    cloud.run(cloud.at - cloud.clock.now)
    for _ in range(44):
        asked = len(cloud.cloud.asked)
        cloud.run(1)
        assert len(cloud.cloud.asked) == asked
    cloud.run(1)
    assert len(cloud.cloud.asked) > asked


def test_the_owner_of_a_start_behind_a_late_end_is_told_too(world):
    world.add_host('a')
    first = world.create(start='now', end=100)
    second = world.create(start=100, end=2000)
    world.run()
    world.nova.failures = 10**6
    for seconds in (100, 30, 30, 30):
        world.run(seconds)
    assert world.lease(first).status == 'TERMINATING'
    later = world.lease(second)
    assert (later.status, later.degraded) == ('PENDING', True)
    world.nova.failures = 0
    for _ in range(2):
        world.run(30)
    assert world.lease(first).status == 'TERMINATED'
    later = world.lease(second)
    assert (later.status, later.degraded) == ('ACTIVE', False)
