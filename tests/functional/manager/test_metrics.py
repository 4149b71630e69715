# SPDX-License-Identifier: Apache-2.0
"""The metrics of a manager, which never disturb the manager."""

import contextlib
import functools
import logging
import threading
import time
from unittest import mock
import urllib.request

import prometheus_client
import pytest
from sqlalchemy import exc

from blazar_sched.domain import exception
from blazar_sched.replica import wire
from blazar_sched.service import assembly
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service.bus import rpc
from blazar_sched.service.ledger import ledger
from blazar_sched.service.ledger import retry
from blazar_sched.service.ledger import writer
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.manager import gauges
from blazar_sched.service.upkeep import monitor
from tests import tables


@pytest.fixture
def value(world):
    """value(metric, label=…) -> a sample of the manager's metrics."""
    registry = world.manager.metrics.registry

    def value(metric, suffix='', **labels):
        with contextlib.suppress(exception.Unavailable):
            world.manager.gauges.step()
        return registry.get_sample_value(metric.name + suffix, labels)

    return value


def of_event(value, outcome, kind='start_lease'):
    return value(metrics.EVENTS, '_total', type=kind, outcome=outcome)


def test_events_by_what_came_of_them(world, value, slots):
    world.add_host('a')
    world.create(slots())
    world.nova.failures = 1
    world.run(100)
    assert of_event(value, metrics.PUT_OFF) == 1
    assert of_event(value, metrics.DONE) is None
    world.run(10)
    assert of_event(value, metrics.PUT_OFF) == 1
    assert of_event(value, metrics.DONE) == 1


def test_an_event_that_was_given_up(world, value, conf, slots):
    conf.set_override('event_max_retries', 0, 'manager')
    world.add_host('a')
    world.create(slots())
    world.nova.failures, world.nova.refuses = 1, True
    world.run(100)
    assert of_event(value, metrics.GIVEN_UP) == 1


def test_how_late_an_event_was_begun(world, value, slots):
    world.add_host('a')
    world.create(slots())
    world.nova.failures = 1
    late = functools.partial(value, metrics.LATENESS, type='start_lease')
    world.run(107)
    assert (late('_count'), late('_sum')) == (1, 7)
    # A retry does not change the lateness.
    world.run(20)
    assert (late('_count'), late('_sum')) == (1, 7)


def test_calls_by_method_and_what_came_of_them(world, value):
    client = rpc.Local(world.manager.endpoint)
    calls = functools.partial(value, metrics.CALL_SECONDS, '_count')
    client.call({}, 'ping')
    with pytest.raises(exception.LeaseNotFound):
        client.call({}, 'get_lease', lease_id='none', project_id=None)
    with pytest.raises(TypeError):
        client.call({}, 'get_lease')
    with pytest.raises(AttributeError):
        client.call({}, 'no_such_method')
    assert calls(method='ping', outcome=metrics.ANSWERED) == 1
    assert calls(method='get_lease', outcome=metrics.REFUSED) == 1
    assert calls(method='get_lease', outcome=metrics.FAILED) == 1
    assert calls(method='no_such_method', outcome=metrics.FAILED) is None


def test_refusals_by_reason(world, value):
    client = rpc.Local(world.manager.endpoint)
    for _ in range(2):
        with pytest.raises(exception.LeaseNotFound):
            client.call({}, 'get_lease', lease_id='none', project_id=None)
    assert value(
        metrics.REFUSALS, '_total', method='get_lease', reason='LeaseNotFound'
    ) == 2


def test_events_that_are_due_and_the_age_of_the_oldest(world, value, slots):
    world.add_host('a')
    for start in 100, 140, 500:
        world.create(slots(), start=start, end=600)
    assert (value(metrics.DUE), value(metrics.DUE_AGE)) == (0, 0)
    world.clock.now += 150
    assert (value(metrics.DUE), value(metrics.DUE_AGE)) == (2, 50)
    world.run()
    assert (value(metrics.DUE), value(metrics.DUE_AGE)) == (0, 0)


def test_a_scrape_never_waits_for_the_database(world, monkeypatch):
    world.manager.gauges.step()
    monkeypatch.setattr(
        world.ledger, 'statistics', mock.Mock(side_effect=AssertionError)
    )
    shown = world.manager.metrics.registry.get_sample_value(
        metrics.REVISION.name
    )
    assert shown == 0


def test_the_log_has_what_another_service_answered(world, monkeypatch, caplog):
    def fail(*args):
        raise exception.Unavailable('Nova is away', detail='at 10.20.30.40')

    caplog.set_level(logging.INFO, 'blazar_sched')
    client = rpc.Local(world.manager.endpoint)
    monkeypatch.setattr(world.manager.ledger, 'owned_lease', fail)
    with pytest.raises(exception.Unavailable):
        client.call({}, 'get_lease', lease_id='none', project_id=None)
    assert (
        'Refused: get_lease lease_id=none: Nova is away: at 10.20.30.40'
        in caplog.text
    )


def test_commits_count_and_refusals_do_not(world, value):
    def fail(tx):
        raise RuntimeError('on purpose')

    before = value(metrics.COMMIT_SECONDS, '_count')
    spent = value(metrics.COMMIT_SECONDS, '_sum')
    began = time.monotonic()
    world.add_host('a')
    elapsed = time.monotonic() - began
    after = value(metrics.COMMIT_SECONDS, '_count')
    assert 0 < value(metrics.COMMIT_SECONDS, '_sum') - spent <= elapsed
    with pytest.raises(RuntimeError):
        world.ledger.commit(fail)
    assert after > before
    assert value(metrics.COMMIT_SECONDS, '_count') == after


@pytest.mark.row('F126')
@pytest.mark.parametrize('work', ['commit', 'write', 'dry_run'])
@pytest.mark.parametrize('fails', [False, True])
def test_each_hold_of_the_ledger_is_measured_by_its_cause(world, work, fails):
    def count():
        return world.manager.metrics.registry.get_sample_value(
            f'{metrics.HELD_SECONDS.name}_count', {'cause': 'mine'}
        )

    def hold():
        def work(tx):
            seen.append(count())
            if fails:
                raise exception.Conflict('on purpose')
        return work

    seen = []
    step = loop.Loop('mine', lambda: getattr(world.ledger, work)(hold()))
    step._take()
    # Only once the lock is given back.
    assert (seen, count()) == ([None], 1)


def test_the_cause_of_a_hold_is_a_call_or_an_event(world, value, slots):
    def causes():
        family = next(
            each for each in world.manager.metrics.registry.collect()
            if each.name == metrics.HELD_SECONDS.name
        )
        return {
            each.labels['cause'] for each in family.samples
            if each.name.endswith('_count')
        }

    world.add_host('a')
    made = world.start_lease(slots())
    world.manager.endpoint.delete_lease(
        {}, lease_id=made.id, project_id='project'
    )
    assert causes() == {'other', 'start_lease', 'delete_lease', 'end_lease'}


def test_conflicts_that_a_commit_overcame(world, value):
    before = value(metrics.CONFLICTS, '_total')
    refusals = iter((retry.Conflict, retry.Conflict))

    def work(tx):
        for refusal in refusals:
            raise refusal

    world.ledger.commit(work)
    assert value(metrics.CONFLICTS, '_total') == before + 2


def test_leases_by_status_and_revisions(world, value, slots):
    world.add_host('a')
    world.create(slots(), start='now')
    world.create(slots(), start=500, end=600)
    world.run()
    assert value(metrics.LEASES, status='ACTIVE') == 1
    assert value(metrics.LEASES, status='PENDING') == 1
    assert value(metrics.LEASES, status='ERROR') is None
    newest = world.ledger.changes(0, 1)['newest']
    assert value(metrics.REVISION) == newest
    assert value(metrics.REPLICA_REVISION) == newest


def test_leases_that_are_degraded(world, value, slots):
    world.add_host('a')
    ids = [world.create(slots()).id for _ in range(3)]
    assert value(metrics.DEGRADED) == 0
    for lease_id, status in zip(
        ids, ('ACTIVE', 'ERROR', 'TERMINATED'), strict=True
    ):
        world.ledger.commit(
            lambda tx, id_=lease_id, status=status: tx.set_lease_status(
                id_, status, 1, degraded=True
            )
        )
    # A lease that is over has no missing resources any more.
    assert value(metrics.DEGRADED) == 2


def test_when_each_loop_last_did_its_work(world, value):
    runner = world.manager.runner
    assert value(metrics.LOOPS, loop='claim renewer') == 0
    [renewer] = [x for x in runner.loops if x.name == 'claim renewer']
    before = time.time()
    renewer._take()
    at = value(metrics.LOOPS, loop='claim renewer')
    assert before <= at <= time.time()
    renewer._step = mock.Mock(side_effect=exception.Unavailable('away'))
    renewer._take()
    assert value(metrics.LOOPS, loop='claim renewer') == at


def test_every_loop_is_told_of(world, value):
    """A thread without this metric could hang unnoticed."""
    told = {x.name for x in world.manager._loops}
    assert told == {
        'claim renewer', 'event runner', 'fanout', 'flavor sync',
        'host monitor', 'host sync', 'instance poll', 'instance sync',
        'notifier', 'pruner', 'relocation', 'restorer', 'trust deletion',
        'closing', 'clearing', 'leavable hosts', 'metrics',
        *tables.names('LOOPS'),
    }


def test_hosts_that_get_allocations_and_those_that_do_not(world, value):
    world.add_hosts('a', 'b', 'c')
    world.hosts.update(world.host('a').id, {'disabled': True})
    assert value(metrics.HOSTS, available='true') == 2
    assert value(metrics.HOSTS, available='false') == 1


def test_without_the_database_the_rest_is_told(world, value, monkeypatch):
    def fail(now):
        raise exception.Unavailable('away')

    world.add_host('a')
    assert value(metrics.DATABASE_UP) == 1
    monkeypatch.setattr(world.ledger, 'statistics', fail)
    # What was read last is shown for a minute.
    world.clock.now += 60
    assert value(metrics.REVISION) == 1
    world.clock.now += 1
    assert value(metrics.REVISION) is None
    assert value(metrics.DATABASE_UP) == 0
    assert value(metrics.REPLICA_REVISION) == 1
    assert value(metrics.COMMIT_SECONDS, '_count') >= 1


def test_a_database_that_does_not_write_is_told_with_what_it_reads(
    world, value, monkeypatch
):
    def refuse(connection):
        raise exc.OperationalError('INSERT', {}, Exception(1290, 'read-only'))

    check = rpc.Local(world.manager.endpoint).check
    world.add_host('a')
    check()
    assert value(metrics.DATABASE_UP) == 1
    monkeypatch.setattr(ledger, 'WRITTEN_FOR', 0)
    monkeypatch.setattr(writer, 'probe', refuse)

    assert value(metrics.DATABASE_UP) == 0
    assert value(metrics.REVISION) == 1
    with pytest.raises(exception.Unavailable):
        check()
    # It is asked again soon.
    assert world.manager.gauges.loops[0]._pace() < gauges.INTERVAL

    monkeypatch.undo()
    check()
    assert value(metrics.DATABASE_UP) == 1


def test_every_metric_is_in_the_table(world, slots):
    world.add_host('a')
    world.start_lease(slots())
    world.manager.gauges.step()
    told = {
        family.name: family for family in
        world.manager.metrics.registry.collect()
        if not family.name.startswith('process_')
    }
    table = {each.name: each for each in (
        *metrics.COUNTED, *metrics.LOOKED_UP, *tables.GAUGES
    )}
    assert told.keys() == table.keys()
    for name, family in told.items():
        assert family.documentation == table[name].documentation
        shown = {label for sample in family.samples for label in sample.labels}
        assert shown <= {*table[name].labels, 'le'}


def test_the_version_and_the_process_are_told(value):
    labels = {k: str(v) for k, v in wire.versions().items()}
    assert value(metrics.BUILD, **labels) == 1
    text = prometheus_client.generate_latest(metrics.new().registry)
    assert b'process_resident_memory_bytes' in text


def told(counted):
    return [family.name for family in counted.registry.collect()]


@pytest.fixture
def closed(monkeypatch):
    """The ledgers that were closed."""
    closed = []
    close = Ledger.close

    def close_(self):
        closed.append(self)
        close(self)

    monkeypatch.setattr(Ledger, 'close', close_)
    return closed


def test_repeated_start_of_a_manager_leaves_no_metrics(
    world, conf, closed, monkeypatch
):
    """While the database is away each attempt makes a new manager."""
    before = mock.Mock(side_effect=[*[exception.Unavailable('away')] * 3, 1])
    monkeypatch.setattr(Ledger, 'require_current', before)
    counted = metrics.new()
    names = told(counted)

    for tries in 1, 2, 3:
        with pytest.raises(exception.Unavailable):
            assembly.start_manager(conf, world.nova, world.placement, counted)
        assert told(counted) == names
        assert len(set(closed)) == tries
    manager = assembly.start_manager(
        conf, world.nova, world.placement, counted
    )
    assert told(counted).count(metrics.LOST.name) == 1

    # A second stop is no error.
    for _ in range(2):
        manager.stop()
    assert told(counted) == names
    assert closed[-1] is manager.ledger


def test_what_was_started_in_part_is_stopped(world, conf, closed, monkeypatch):
    monkeypatch.setattr(
        monitor.Monitor, 'start', mock.Mock(side_effect=RuntimeError)
    )
    # Nothing waits for the end of a thread that was not started.
    monkeypatch.setattr(rpc, 'STOP_TIMEOUT', 60)
    conf.set_override('enable_notification_monitor', True, 'manager')
    threads = set(threading.enumerate())
    counted = metrics.new()
    names = told(counted)
    began = time.monotonic()
    with pytest.raises(RuntimeError):
        assembly.start_manager(conf, world.nova, world.placement, counted)
    assert time.monotonic() - began < 30
    assert set(threading.enumerate()) <= threads
    assert told(counted) == names
    assert len(closed) == 1


def test_names_follow_one_rule():
    for each in tables.METRICS:
        assert each.name.startswith('blazar_sched_')
        assert each.documentation
        if each.kind is prometheus_client.Histogram:
            assert each.name.endswith('_seconds')
    names = [each.name for each in tables.METRICS]
    assert len(names) == len(set(names))


class TestPort:
    @pytest.fixture
    def serving(self, conf, world, port):
        """A server of the metrics, on a free port."""
        conf.set_override('port', port, 'metrics')
        server = metrics.serve(conf, world.manager.metrics)
        yield
        server.shutdown()
        server.server_close()

    def test_metrics_have_no_port_by_default(self, conf, world):
        assert metrics.serve(conf, world.manager.metrics) is None

    def test_port_shows_every_metric(self, world, port, serving):
        world.add_host('a')
        world.manager.gauges.step()
        url = f'http://127.0.0.1:{port}/metrics'
        with urllib.request.urlopen(url, timeout=20) as answer:
            text = answer.read().decode()
        assert 'blazar_sched_manager_hosts{available="true"} 1.0' in text

    def test_a_port_that_is_taken_is_an_error(self, conf, world, serving):
        with pytest.raises(OSError):
            metrics.serve(conf, world.manager.metrics)
