# SPDX-License-Identifier: Apache-2.0
"""The usage of reservations, and its report."""

from collections import Counter
import contextlib
import datetime
import random
import threading

from oslo_messaging.notify import _impl_test
import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain.window import Window
from blazar_sched.parts.report import manager as upkeep
from blazar_sched.parts.report import models
from blazar_sched.parts.report import usage
from blazar_sched.parts.report.usage import DAY
from blazar_sched.parts.report.usage import HOST
from blazar_sched.service import faults
from blazar_sched.service import turns
from tests import waiting
from tests.parts.report import usages
from tests.seeds import seeds

HOUR = 3600
VCPUS = 8


@pytest.fixture
def world(world):
    for name in 'abcd':
        world.add_host(name, VCPUS)
    return world


def measure(world, seconds=0, manager=None):
    """Let time pass, and measure, without another look at events."""
    world.clock.now += seconds
    usages.of(manager or world.manager).step()


def report(world, *group_by, project_id=None, start=None, end=None):
    """Return the rows of a report, by group and resource class."""
    rows = usages.of(world.manager).report(
        project_id, world.now - 30 * DAY if start is None else start,
        world.now + 1 if end is None else end, group_by,
    )['items']
    return {
        (*(row[name] for name in group_by), row['resource_class']): row
        for row in rows
    }


def boot(world, lease, node, vcpus=1):
    server = world.add_server(
        node, lease.project_id, vcpus=vcpus, created=world.now,
        reservation_id=lease.reservations[0].id,
    )
    world.manager.instances.sync()
    return server


@pytest.mark.row('F91')
def test_whole_hosts_are_reserved_used_and_idle(world, whole):
    measure(world)
    lease = world.create(whole(2, 2), start=0, end=10 * HOUR)
    world.run(10)
    node = next(
        h.hypervisor_hostname for h in world.ledger.hosts()
        if h.uuid == world.held(lease)[0][1]
    )
    measure(world, HOUR - 10)
    boot(world, lease, node, vcpus=3)
    measure(world, HOUR)
    rows = report(world, 'project_id')
    hosts, vcpus = rows['project', HOST], rows['project', 'VCPU']
    assert (hosts['reserved'], hosts['used'], hosts['idle']) == (4, 1, 3)
    assert (vcpus['reserved'], vcpus['used']) == (4 * VCPUS, 3)
    assert hosts['no_show'] == 0


def test_a_reservation_without_a_server_has_not_shown_up(world, slots):
    measure(world)
    world.create(slots(amount=3, vcpus=2), start=0, end=2 * HOUR)
    world.run()
    measure(world, HOUR)
    assert report(world)['VCPU',]['no_show'] == 6


def test_a_server_on_one_day_counts_for_the_other_days(world, whole):
    measure(world)
    lease = world.create(whole(), start=0, end=3 * DAY)
    world.run()
    measure(world, DAY)
    assert {r['no_show'] > 0 for r in report(world, 'day').values()} == {True}
    node = next(
        h.hypervisor_hostname for h in world.ledger.hosts()
        if h.uuid == world.held(lease)[0][1]
    )
    boot(world, lease, node)
    measure(world, DAY)
    rows = report(world, 'day', end=world.now + DAY)
    assert len(rows) > 6
    assert {r['no_show'] for r in rows.values()} == {0}


def test_what_ended_between_two_measurements_counts_to_its_end(world, slots):
    measure(world)
    lease = world.create(slots(amount=1, vcpus=4), start=HOUR, end=2 * HOUR)
    world.run(HOUR)
    server = boot(world, lease, 'a', vcpus=4)
    measure(world, 60)
    world.run(5 * HOUR)
    assert server.uuid not in world.nova.stored
    measure(world)
    row = report(world)['VCPU',]
    assert (row['reserved'], row['used']) == (4, 4)


@pytest.mark.parametrize('measured', [True, False])
@pytest.mark.parametrize('how', ['delete', 'end', 'remove'])
def test_what_is_deleted_between_two_measurements_counts(
    world, whole, slots, how, measured
):
    """Otherwise a project would have leases of some minutes for nothing."""
    measure(world)
    other = world.create(whole(), start=50, end=HOUR, project_id='other')
    measure(world, 100 if measured else 0)
    lease = world.create(slots(2, 3), slots(1, 1), start=0, end=HOUR)
    world.run(200)
    update = world.leases.update
    if how == 'remove':
        update(lease.id, None, {'reservations': [
            {'id': lease.reservations[0].id, 'remove': True},
        ]})
    if how == 'end':
        update(lease.id, None, {'end': 'now'})
    world.run()
    if how != 'remove':
        world.leases.delete(lease.id, None)
    measure(world, 50)
    measure(world, 50)
    rows = report(world, 'project_id')
    rest = world.now - lease.start if how == 'remove' else 200
    assert rows['project', 'VCPU']['reserved'] * HOUR == 6 * 200 + rest
    assert rows['other', HOST]['reserved'] * HOUR == world.now - other.start


def test_what_a_lease_gives_up_counts_until_then(world, slots):
    measure(world)
    lease = world.create(slots(8, 1), start=0, end=HOUR)
    world.run(200)
    world.leases.update(lease.id, None, {
        'reservations': [{'id': lease.reservations[0].id, 'amount': 1}],
    })
    measure(world, 50)
    rest = world.now - lease.start - 200
    assert report(world)['VCPU',]['reserved'] * HOUR == 8 * 200 + rest


def test_a_late_start_is_told(world, slots):
    measure(world)
    world.create(slots(), start=0, end=2 * HOUR)
    measure(world, HOUR)
    world.run()
    measure(world, HOUR // 2)
    assert report(world)['VCPU',]['late'] == 1


def test_the_usage_outlives_the_lease_for_a_time(world, whole, conf):
    measure(world)
    lease = world.create(whole(), start=0, end=HOUR)
    world.run()
    world.run(HOUR)
    measure(world)
    world.leases.delete(lease.id, None)
    world.run()
    assert world.ledger.leases() == []
    assert report(world, 'lease_id')[lease.id, HOST]['reserved'] == 1
    conf.set_override('keep_usage', 5 * DAY, 'manager')
    measure(world, 4 * DAY)
    assert report(world)
    measure(world, 2 * DAY)
    assert not report(world)


@pytest.fixture
def exists(conf):
    """exists() -> the notifications `reservation.exists` since the last call.
    """
    _impl_test.reset()
    conf.set_override('driver', ['test'], 'oslo_messaging_notifications')
    conf.set_override('notify_usage', True, 'manager')

    def exists():
        messages = [message for _, message, *_ in _impl_test.NOTIFICATIONS]
        _impl_test.reset()
        return [
            m['payload'] for m in messages
            if m['event_type'] == 'reservation.exists'
        ]

    yield exists
    _impl_test.reset()


def test_each_day_of_a_reservation_is_told_once(
    exists, world, whole, conf, monkeypatch
):
    """Two managers measure: one of them finds that a day is over."""
    monkeypatch.setattr(upkeep, '_PAGE', 2)
    managers = [world.manager, world.another(conf)]

    def measure_by_all(seconds):
        world.clock.now += seconds
        for each in managers:
            usages.of(each).step()
        for each in managers:
            usages.of(each).notify()
        managers.reverse()

    measure_by_all(0)
    for _ in range(3):
        world.create(whole(), start=0, end=2 * DAY + HOUR)
    world.run()
    told = []
    for _ in range(30):
        measure_by_all(3 * HOUR)
        told += exists()
    assert len(told) == 9
    found = {
        (p['audit_period_beginning'][:10], p['reservation_id'], name):
        p['reserved'][name]
        for p in told for name in p['reserved']
    }
    rows = report(world, 'day', 'reservation_id', end=world.now + DAY)
    assert found == {key: row['reserved'] for key, row in rows.items()}
    assert {p['audit_period_ending'][11:] for p in told} == {'00:00:00.000000'}


def test_a_failure_between_two_notifications_repeats_none(
    exists, world, whole, monkeypatch
):
    measure(world)
    for _ in range(3):
        world.create(whole(), start=0, end=3 * DAY)
    world.run()
    measure(world, DAY)
    mine, read = usages.of(world.manager), models.of_day
    monkeypatch.setattr(upkeep, '_PAGE', 2)
    pages = []

    def fail(*args):
        if len(pages) == 1:
            pages.append(None)
            raise exception.Unavailable('no database')
        pages.append(read(*args))
        return pages[-1]

    monkeypatch.setattr(models, 'of_day', fail)
    with pytest.raises(exception.Unavailable):
        mine.notify()
    assert len(exists()) == 2
    mine.notify()
    assert len(exists()) == 1


def test_no_day_is_told_unless_the_operator_wants_it(
    exists, world, whole, conf
):
    conf.set_override('notify_usage', False, 'manager')
    measure(world)
    world.create(whole(), start=0, end=3 * DAY)
    world.run()
    measure(world, DAY)
    usages.of(world.manager).notify()
    assert exists() == []


@pytest.mark.parametrize('window', [(5, 5), (9, 5), (0, 367 * DAY)])
def test_a_report_has_a_window_of_a_year_at_most(world, window):
    with pytest.raises(exception.InvalidInput) as refusal:
        report(world, start=window[0], end=window[1])
    assert refusal.value.field == 'end_date'


def day_of(row):
    """Return the start of the day of a row in epoch seconds."""
    day = datetime.datetime.fromisoformat(f'{row["day"]}T00:00:00+00:00')
    return int(day.timestamp())


def test_a_report_has_a_bound(world, whole, monkeypatch):
    measure(world)
    world.create(whole(), start=0, end=HOUR)
    world.run()
    measure(world, 60)
    monkeypatch.setattr(usage, 'MAX_ROWS', len(report(world)))
    report(world)
    monkeypatch.setattr(usage, 'MAX_ROWS', len(report(world)) - 1)
    with pytest.raises(exception.InvalidInput) as refusal:
        report(world)
    assert refusal.value.field == 'group_by'


def written(world, seconds, managers):
    """Return the rows of usage that steps write within some seconds."""
    found = []

    def note(connection, cursor, statement, parameters, *_):
        if 'INSERT INTO usage_day' in statement:
            many = isinstance(parameters, list)
            found.extend(parameters if many else [parameters])

    world.clock.now += seconds
    for each in managers:
        engine = each.ledger._to_write
        sa.event.listen(engine, 'before_cursor_execute', note)
        usages.of(each).step()
        sa.event.remove(engine, 'before_cursor_execute', note)
    return len(found)


def test_nothing_is_written_while_nothing_changes(world, conf, whole, slots):
    """Of three managers, one measures; the others tell the same amounts."""
    managers = [world.manager, world.another(conf), world.another(conf)]
    world.create(whole(), start=0, end=3 * DAY)
    world.create(slots(1, 1), start=0, end=3 * DAY)
    world.run()
    assert written(world, 60, managers) > 0
    assert sum(written(world, 300, managers) for _ in range(12)) == 0
    vcpus = {
        each.ledger.run(models.reserved_now)['project', 'VCPU']
        for each in managers
    }
    assert vcpus == {VCPUS + 1}
    assert report(world)['VCPU',]['reserved'] == (VCPUS + 1) * 61 / 60
    # The next day begins once.
    world.clock.now += DAY - world.now % DAY
    assert written(world, 60, managers) > 0
    assert written(world, 60, managers) == 0


def test_another_manager_measures_once_one_is_gone(world, conf, whole):
    other = world.another(conf)
    measure(world)
    world.create(whole(), start=0, end=DAY)
    world.run()
    measure(world, 60)
    measure(world, 300, other)
    assert round(report(world)[HOST,]['reserved'] * HOUR) == 60
    measure(world, HOUR, other)
    reserved = report(world)[HOST,]['reserved'] * HOUR
    assert round(reserved) == 60 + 300 + HOUR


@pytest.mark.parametrize('fail_at', [1, 2, 3])
def test_a_manager_that_is_killed_while_it_measures(
    world, conf, slots, monkeypatch, fail_at
):
    """Each reservation is counted once, also those that had been written."""
    monkeypatch.setattr(upkeep, '_SLICE', 1)
    other = world.another(conf)
    measure(world)
    leases = [
        world.create(slots(1, 1), start=0, end=end)
        for end in (HOUR, 2 * DAY, 3 * DAY)
    ]
    world.run()
    measure(world, 60)
    # The reservations are written in one commit each, as the day is over.
    world.run(DAY)
    write, writes = world.ledger.write, []

    def killed(work):
        writes.append(work)
        if len(writes) == fail_at:
            raise exception.Unavailable('killed')
        return write(work)

    with monkeypatch.context() as patch:
        patch.setattr(world.ledger, 'write', killed)
        with pytest.raises(exception.Unavailable):
            usages.of(world.manager).step()
    # The fake clock has gone on while the manager has waited.
    deleted = world.now
    world.leases.delete(leases[1].id, None)
    world.run()
    end = world.now + HOUR // 2
    measure(world, HOUR // 2, other)
    rows = report(world, 'lease_id')
    assert [
        round(rows[lease.id, 'VCPU']['reserved'] * HOUR) for lease in leases
    ] == [HOUR, deleted - leases[1].start, end - leases[2].start]


def test_a_measurement_that_comes_too_late_is_not_written(world, whole):
    """The lease is deleted after it was read, and before it is written."""
    measure(world)
    lease = world.create(whole(), start=0, end=DAY)
    world.run()
    measure(world, 60)
    world.clock.now += DAY

    def delete(at):
        if at == 'usage:measured':
            faults.arm(None)
            world.leases.delete(lease.id, None)
            world.run()

    faults.arm(delete)
    measure(world)
    measure(world, 60)
    assert report(world)[HOST,]['reserved'] * HOUR == DAY


def steps_of_report(url, number):
    """Return SQLite's steps, in hundreds, for a report of used reservations.
    """
    engine, steps = sa.create_engine(url), Counter()
    row = {
        'day': DAY, 'resource_class': HOST, 'lease_id': 'l',
        'project_id': 'p', 'resource_type': 'physical:host', 'flavor': '',
        'product': '', 'reserved': 9, 'used': 3, 'late': 0, 'refused': 0,
        'since': 0, 'reserved_rate': 0, 'used_rate': 0, 'late_rate': 0,
    }
    with engine.begin() as connection:
        connection.execute(sa.delete(models.UsageDay))
        connection.execute(
            sa.insert(models.UsageDay),
            [{'reservation_id': str(n), **row} for n in range(number)],
        )
        sqlite = connection.connection.driver_connection
        sqlite.set_progress_handler(lambda: steps.update(['hundreds']), 100)
        [found] = models.sums(connection, Window(0, 2 * DAY), 'p', [])
        sqlite.set_progress_handler(None, 0)
    engine.dispose()
    assert (found['reserved'], found['no_show']) == (9 * number, 0)
    return steps['hundreds']


def test_a_report_grows_with_the_reservations_and_not_with_their_square(
    world, conf
):
    url = conf.database.connection
    assert steps_of_report(url, 2000) < 6 * steps_of_report(url, 500)


def test_few_reports_are_made_at_a_time(world, monkeypatch):
    """One runs; another project has its turn while one has all of its own."""
    with holding(usages.of(world.manager)._turns) as hold:
        for _ in range(turns.MAX_OF_ONE):
            hold('p')
        with pytest.raises(exception.TooManyRequests) as refusal:
            report(world, project_id='p')
        assert refusal.value.retry_after
        hold('q')
    assert report(world, project_id='p') == {}


@contextlib.contextmanager
def holding(turns_):
    """Return a function that has a request run or wait in the block."""
    go_on, threads = threading.Event(), []

    def run(owner):
        with turns_.take(owner, wait=30):
            go_on.wait(30)

    def hold(owner):
        before = turns_._owners[owner]
        threads.append(threading.Thread(target=run, args=(owner,)))
        threads[-1].start()
        waiting.until(lambda: turns_._owners[owner] > before)

    try:
        yield hold
    finally:
        go_on.set()
        for thread in threads:
            thread.join()


class History:
    """Random leases and servers, and what each of them has had.

    `log` has the amounts x seconds by day, project and resource class.
    """

    def __init__(self, world, conf, seed):
        self.world = world
        self.managers = [world.manager, world.another(conf)]
        self.random = random.Random(seed)
        self.log = Counter()
        self.leases, self.servers = {}, {}

    def book(self):
        start = self.random.choice([0, 0, self.random.randint(1, DAY)])
        demand = self.random.choice(['whole', 'slots'])
        count, vcpus = self.random.randint(1, 2), self.random.randint(1, 3)
        wanted = {
            'whole': {
                'resource_type': 'physical:host', 'min': count, 'max': count,
                'hypervisor_properties': '', 'resource_properties': '',
            },
            'slots': {
                'resource_type': 'virtual:instance', 'vcpus': vcpus,
                'memory_mb': 1, 'disk_gb': 0, 'amount': count,
                'affinity': None, 'resource_properties': '',
            },
        }[demand]
        with contextlib.suppress(exception.NotEnoughHostsAvailable):
            lease = self.world.create(
                wanted, start=start,
                end=start + self.random.randint(1, 2 * DAY),
                project_id=self.random.choice('pq'),
            )
            amounts = (
                {HOST: count, 'VCPU': count * VCPUS} if demand == 'whole'
                else {'VCPU': count * vcpus}
            )
            self.leases[lease.id] = (
                lease.project_id, lease.start, lease.end, amounts
            )

    def end(self):
        """End a lease that is active."""
        for lease_id, (project, start, _, amounts) in self.leases.items():
            lease = self.world.ledger.lease(lease_id)
            if lease.status == 'ACTIVE' and lease.start < self.world.now:
                self.world.leases.update(lease_id, None, {'end': 'now'})
                self.leases[lease_id] = (
                    project, start, self.world.now, amounts
                )
                return

    def boot(self):
        for lease_id in self.leases:
            lease = self.world.ledger.lease(lease_id)
            if lease.status == 'ACTIVE' and lease_id not in self.servers:
                [(_, host, _), *_] = self.world.held(lease)
                node = next(
                    h.hypervisor_hostname for h in self.world.ledger.hosts()
                    if h.uuid == host
                )
                boot(self.world, lease, node)
                self.servers[lease_id] = self.world.now
                return

    def act(self):
        before = self.world.now
        for action in (self.book, self.end, self.boot):
            if self.random.random() < 0.4:
                action()
        self.world.run(self.random.randint(1, DAY // 3))
        self.random.shuffle(self.managers)
        self.measure()
        self.note(before, self.world.now)

    def measure(self):
        for each in self.managers:
            measure(self.world, manager=each)

    def note(self, before, now):
        for lease_id, (project, start, end, amounts) in self.leases.items():
            for at in range(before - before % DAY, now, DAY):
                seconds = min(end, now, at + DAY) - max(start, before, at)
                for name, amount in amounts.items() if seconds > 0 else ():
                    self.log[at, project, name, 'reserved'] += amount * seconds
                # A server is seen at the end, or at the measurement before.
                since = self.servers.get(lease_id, now)
                if seconds > 0 and since < (now if now < end else before):
                    self.log[at, project, 'VCPU', 'used'] += seconds

    def reported(self):
        rows = usages.of(self.world.manager).report(
            None, self.world.now - 300 * DAY, self.world.now + DAY,
            ['day', 'project_id'],
        )['items']
        return {
            (day_of(row), row['project_id'], row['resource_class'], what):
            round(row[what] * HOUR)
            for row in rows for what in ('reserved', 'used')
            if row[what] and row['resource_class'] in (HOST, 'VCPU')
        }


@pytest.mark.parametrize('seed', seeds(5))
def test_the_report_is_that_of_an_independent_log(world, conf, seed):
    """Two managers measure, either of them first."""
    history = History(world, conf, seed)
    for each in history.managers:
        measure(world, manager=each)
    for _ in range(40):
        history.act()
    found = {
        key: value for key, value in history.reported().items()
        if key[2:] != (HOST, 'used')
    }
    assert found == {k: v for k, v in history.log.items() if v}


class Killed(History):
    """The same, where managers are killed while they measure."""

    def measure(self):
        for each in self.managers:
            left = self.random.randint(1, 6)

            def kill(at):
                nonlocal left
                left -= at == 'usage:measured' or at == 'commit:before'
                if not left:
                    raise RuntimeError('killed')

            faults.arm(kill)
            try:
                with contextlib.suppress(RuntimeError):
                    measure(self.world, manager=each)
            finally:
                faults.arm(None)
        # The claim of a manager that was killed expires.
        self.world.clock.now += 2 * HOUR
        self.world.run()
        super().measure()

    def reserved(self):
        """Return the seconds by project that the budget of a project has."""
        return {
            (project, name): amount
            for project in 'pq'
            for name, amount in self.world.ledger.run(
                models.reserved, project, 0, self.world.now
            ).items() if name in (HOST, 'VCPU')
        }


@pytest.mark.parametrize('seed', seeds(3))
def test_what_is_reserved_is_exact_although_managers_are_killed(
    world, conf, seed, monkeypatch
):
    """In the report, and for the budgets, at any time."""
    monkeypatch.setattr(upkeep, '_SLICE', 2)
    history = Killed(world, conf, seed)
    for each in history.managers:
        measure(world, manager=each)
    for _ in range(25):
        history.act()
        world.run(history.random.randint(1, HOUR))
        budget = Counter()
        for project, start, end, amounts in history.leases.values():
            for name, amount in amounts.items():
                seconds = min(end, world.now) - start
                budget[project, name] += amount * max(0, seconds)
        assert +Counter(history.reserved()) == +budget
    world.clock.now += 2 * HOUR
    world.run()
    History.measure(history)
    total = Counter()
    for project, start, end, amounts in history.leases.values():
        for name, amount in amounts.items():
            total[project, name] += amount * max(
                0, min(end, world.now) - start
            )
    found = Counter()
    for (_, project, name, what), amount in history.reported().items():
        if what == 'reserved':
            found[project, name] += amount
    assert found == +total


@pytest.mark.row('F91')
def test_what_is_refused_is_in_the_report(world, whole, slots):
    measure(world)
    world.create(whole(), start=0, end=DAY)
    measure(world, HOUR)
    for lease, end in (
        (whole(9, 9), 2 * HOUR), (slots(amount=40, vcpus=4), 3 * HOUR),
    ):
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(lease, start=HOUR, end=end)
    with pytest.raises(exception.NotEnoughHostsAvailable):
        # A dry run is no request.
        world.leases.create({
            'name': 'lease', 'project_id': 'project', 'user_id': 'user',
            'start': world.now, 'end': world.now + HOUR, 'before_end': None,
            'reservations': [whole(9, 9)],
        }, dry_run=True)
    measure(world, HOUR)
    by_type = report(world, 'resource_type')
    assert by_type['physical:host', HOST]['refused'] == 9
    assert by_type['virtual:instance', 'VCPU']['refused'] == 40 * 4 * 2
    assert by_type['physical:host', 'VCPU']['refused'] == 0
    row = report(world, 'lease_id', 'reservation_id')['', '', HOST]
    assert (row['refused'], row['reserved'], row['no_show']) == (9, 0, 0)


def test_the_refused_requests_of_a_day_are_one_row(world, whole):
    for n in range(3):
        for _ in range(2):
            with pytest.raises(exception.NotEnoughHostsAvailable):
                world.create(whole(9, 9), start=HOUR * n, end=DAY)
        measure(world, 60)
    with world.ledger._to_read.connect() as connection:
        rows = connection.exec_driver_sql('SELECT COUNT(*) FROM usage_day')
        assert rows.scalar() == 1
    assert report(world)[HOST,]['refused'] == 2 * 9 * (24 + 23 + 22)


def test_what_is_refused_waits_for_the_database(world, whole, monkeypatch):
    with pytest.raises(exception.NotEnoughHostsAvailable):
        world.create(whole(9, 9), start=0, end=HOUR)

    def away(work):
        raise exception.Unavailable('the database is away')

    with monkeypatch.context() as patch:
        patch.setattr(world.ledger, 'write', away)
        with pytest.raises(exception.Unavailable):
            measure(world, 60)
    measure(world, 60)
    measure(world, 60)
    assert report(world)[HOST,]['refused'] == 9


def test_refusals_between_two_measurements_are_bounded(
    world, whole, monkeypatch
):
    monkeypatch.setattr(upkeep, 'MAX_REFUSED', 2)
    for _ in range(4):
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(whole(9, 9), start=0, end=HOUR)
    measure(world, 60)
    assert report(world)[HOST,]['refused'] == 18
