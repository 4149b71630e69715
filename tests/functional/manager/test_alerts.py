# SPDX-License-Identifier: Apache-2.0
"""The alerting rules that are shipped, by promtool, on metrics of a manager.

The loops of a manager run for hours of pretended time, a step each minute at
most, and its metrics are read once in each minute.
"""

import json
import pathlib
from types import SimpleNamespace

import pytest
import yaml

from blazar_sched.domain.window import FOREVER
from blazar_sched.replica import metrics as worker_metrics
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service.ledger import ledger
from tests import promtool
from tests import tables
from tests.functional.manager.conftest import hosts

RULES = pathlib.Path(__file__).parents[3] / 'doc/source/admin/alerts.yml'
MINUTES = 120
FIRING = 'group by (alertname) (ALERTS{alertstate="firing"})'


class Recorded:
    """The metrics of a manager and of a nova-scheduler worker by the minute.
    """

    def __init__(self, world):
        self._world = world
        self._loops = dict.fromkeys(world.manager._loops, 0)
        self.worker = metrics.Metrics(worker_metrics.ALL, 'worker')
        for each in self._loops:
            each.succeeded_at = world.now
        self.series = {}
        self.minutes = 0

    def run(self, trouble=lambda: None):
        """Let MINUTES pass; `trouble` happens once in each minute."""
        for _ in range(MINUTES):
            trouble()
            self._note()
            for each, due in self._loops.items():
                if due <= self._world.now:
                    self._loops[each] = self._world.now + each._take()
            self._world.clock.now += 60
        return self

    def _note(self):
        for registry in (self._world.manager.metrics, self.worker):
            for family in registry.registry.collect():
                for name, labels, value, *_ in family.samples:
                    text = ','.join(
                        f'{k}={json.dumps(v)}' for k, v in labels.items()
                    )
                    self.series.setdefault(
                        f'{name}{{{text}}}', ['_'] * self.minutes
                    ).append(repr(value))
        self.minutes += 1
        for values in self.series.values():
            values += ['_'] * (self.minutes - len(values))


@pytest.fixture
def recorded(world, conf, monkeypatch):
    conf.set_override('relocate_instances', True, 'manager')
    times = SimpleNamespace(time=world.clock, monotonic=world.clock.monotonic)
    for module in loop, ledger:
        monkeypatch.setattr(module, 'time', times)
    world.begin(conf)
    world.add_hosts('a', 'b')
    return Recorded(world)


def firing(folder, series, minutes):
    """Assert by promtool which alerts fire in which minutes."""
    promtool.check(folder, RULES, series, [
        {
            'expr': FIRING,
            'eval_time': f'{minute}m',
            'exp_samples': [
                {'labels': f'{{alertname="{name}"}}', 'value': 1}
                for name in sorted(names)
            ],
        }
        for minute, names in minutes.items()
    ])


def since(recorded):
    """Return the series with times in seconds since the first sample."""
    begun = recorded._world.now - recorded.minutes * 60
    return {
        name: [
            value if value == '_' or '_timestamp_' not in name
            else repr(float(value) - begun)
            for value in values
        ]
        for name, values in recorded.series.items()
    }


def test_a_manager_that_is_left_alone_fires_none(recorded, tmp_path):
    series = since(recorded.run())
    loops = [each for each in series if 'loop_success' in each]
    assert len(loops) == len(recorded._world.manager._loops)
    firing(tmp_path, series, dict.fromkeys(range(0, MINUTES, 5), ()))


def test_an_event_fires_only_while_no_manager_executes_it(
    recorded, world, tmp_path
):
    """A manager executes the start of a lease, and then no end of a lease."""
    world.create(hosts(), start=30 * 60, end=60 * 60)
    stuck = range(60, 100)

    def trouble():
        if recorded.minutes not in stuck:
            world.run()

    world.runner.loops[0]._step = lambda: loop.IDLE
    series = since(recorded.run(trouble))
    alert = ('BlazarSchedEventStaysDue',)
    firing(tmp_path, series, {
        **dict.fromkeys(range(0, 66, 5), ()),
        **dict.fromkeys(range(68, 100), alert),
        **dict.fromkeys(range(102, MINUTES), ()),
    })


@pytest.mark.row('F90')
@tables.EVERY
def test_few_hosts_fire_while_they_are_reserved(recorded, world, tmp_path):
    world.create(hosts(2, 2), start=30 * 60, end=60 * 60)
    series = since(recorded.run(world.run))
    alert = ('BlazarSchedFewHosts',)
    firing(tmp_path, series, {
        **dict.fromkeys(range(0, 30), ()),
        **dict.fromkeys(range(36, 60), alert),
        # The usage is measured every five minutes, and its metric is read a
        # step later.
        **dict.fromkeys(range(67, MINUTES), ()),
    })


def test_each_alert_fires_once_there_is_cause(recorded, world, tmp_path):
    recorded.run()
    of, of_worker = world.manager.metrics.of, recorded.worker.of
    ids = [world.create(hosts(), start=10 ** 6, end=FOREVER).id for _ in 'ab']
    runner, *_ = world.runner.loops

    def change(tx):
        tx.set_lease_status(ids[0], 'ERROR', 1)
        tx.set_lease_status(ids[1], 'ACTIVE', 1, degraded=True)

    def fail():
        raise RuntimeError('on purpose')

    def once():
        world.ledger.commit(change)
        runner._step = fail
        world.ledger.require_writable = fail
        world.create(hosts(), start=60, end=10 ** 5)
        of(metrics.MOVES, metrics.FAILED).inc(2)
        of_worker(worker_metrics.STALE).set(1)
        of_worker(worker_metrics.LEFT_OUT).set(1)
        of_worker(
            worker_metrics.DECISIONS, 'LifetimeFilter', 'incomplete'
        ).inc()

    def trouble():
        if recorded.minutes == MINUTES:
            once()
        # What the loops write tells otherwise.
        world.ledger.is_writable = recorded.minutes < MINUTES
        of(metrics.UNPLANNED).set(1)
        of(metrics.LATE).set(1)
        of(metrics.REQUESTS, '/v1/leases', 'GET', '503').inc(10)
        of(metrics.LATENESS, 'start_lease').observe(300)
        for _ in range(2):
            of(metrics.HELD_SECONDS, 'series').observe(.06)

    series = since(recorded.run(trouble))
    names = {
        rule['alert']
        for rule in yaml.safe_load(RULES.read_text())['groups'][0]['rules']
    } - {'BlazarSchedFewHosts'}
    short = {'BlazarSchedMovesFail', 'BlazarSchedFilterFails'}
    late = {'BlazarSchedLoopFails', 'BlazarSchedNoHeadroom'}
    gone = {'BlazarSchedNoManager'}
    firing(tmp_path, series, {
        MINUTES - 1: (),
        MINUTES + 4: names - gone - late - {
            'BlazarSchedLeaseDegraded', 'BlazarSchedEventsLate',
            'BlazarSchedApiFails', 'BlazarSchedEventStaysDue',
            'BlazarSchedCommitsWait',
        },
        MINUTES + 25: names - gone - late - short,
        2 * MINUTES - 1: names - gone - short,
        # Nothing is scraped any more.
        2 * MINUTES + 15: gone,
    })
