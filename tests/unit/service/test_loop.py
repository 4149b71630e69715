# SPDX-License-Identifier: Apache-2.0
"""Loops continue after any error of a step, each at its interval."""

import logging
import threading

from oslo_config import cfg
from oslo_context import context
import pytest

from blazar_sched.domain import exception
from blazar_sched.replica import limited_log
from blazar_sched.service import loop

PATIENCE = 60


@pytest.fixture
def take():
    """take(steps, pace) runs the steps in a loop, which ends after them.

    A step is the value that it returns, or the exception that it raises.
    """

    def run(steps, pace):
        left = iter(steps)
        done = threading.Event()

        def step():
            outcome = next(left, done)
            if outcome is done:
                done.set()
                return loop.STOP_TIMEOUT
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        tried = loop.Loop('the sync', step, pace)
        tried.start()
        assert done.wait(PATIENCE)
        tried.stop()

    return run


@pytest.fixture
def pace():
    """An interval of no time that counts how often it is read."""

    class Pace:
        asked = 0

        def __call__(self):
            self.asked += 1
            return 0.0

    return Pace()


def test_who_says_no_time_goes_at_its_pace(take, pace):
    take([None, 0.0, None], pace)
    assert pace.asked == 2


def test_a_service_that_comes_and_goes_is_told_of_once_a_minute(
    take, pace, caplog
):
    away = exception.Unavailable('compute answered 500', service='compute')
    other = exception.Unavailable('network answered 500', service='network')
    take([away, away, None, away, None, other, None], pace)
    assert [r.getMessage() for r in caplog.records] == [
        'the sync failed, retrying: compute answered 500 '
        '(time 1 in this process)',
        'the sync has recovered (failures: 2)',
        'the sync failed, retrying: network answered 500 '
        '(time 3 in this process)',
        'the sync has recovered (failures: 1)',
    ]


def test_a_service_that_is_away_is_told_of_twice(
    take, pace, caplog, monkeypatch
):
    """The log has a line when the failures begin and one when they end."""
    monkeypatch.setattr(limited_log, 'PERIOD', 0.0)
    away = exception.Unavailable('compute answered 500')
    take([None, away, away, away, None, None, away, None], pace)
    assert pace.asked == 8
    assert {r.levelno for r in caplog.records} == {logging.WARNING}
    assert [r.getMessage() for r in caplog.records] == [
        'the sync failed, retrying: compute answered 500 '
        '(time 1 in this process)',
        'the sync has recovered (failures: 3)',
        'the sync failed, retrying: compute answered 500 '
        '(time 2 in this process)',
        'the sync has recovered (failures: 1)',
    ]
    assert not any(r.exc_info for r in caplog.records)


def test_its_cause_is_told_too(take, pace, caplog):
    away = exception.Unavailable('the database refused 11 attempts')
    away.__cause__ = OSError('Connection refused')
    take([away], pace)
    assert 'Connection refused' in caplog.text


def test_what_nobody_expects_is_traced(take, pace, caplog):
    take([KeyError('x'), None], pace)
    assert pace.asked == 2
    record = caplog.records[0]
    assert record.levelno == logging.ERROR
    assert record.getMessage() == 'the sync failed, retrying'
    assert isinstance(record.exc_info[1], KeyError)


def test_another_trouble_is_told_of_too(take, pace, caplog):
    take([exception.Unavailable('away'), KeyError('x'), KeyError('y')], pace)
    assert [r.levelno for r in caplog.records[:-1]] == [
        logging.WARNING, logging.ERROR,
    ]


def test_a_pace_that_cannot_be_read_does_not_end_the_loop(
    take, caplog, monkeypatch
):
    monkeypatch.setattr(loop, 'PAUSE', 0.0)

    def pace():
        raise cfg.ConfigFileValueError('sync_interval is not valid')

    take([None, None, None], pace)
    assert 'sync_interval is not valid' in caplog.text


def test_the_pause_after_a_failure_doubles_until_it_works():
    outcomes = iter([1] * 6 + [0, 1])

    def step():
        if next(outcomes):
            raise exception.Unavailable('away')

    tried = loop.Loop('the sync', step)
    assert [tried._take() for _ in range(8)] == [1, 2, 4, 8, 8, 8, 1, 1]


def test_a_service_is_left_alone_as_long_as_it_asks():
    outcomes = iter([5.0, 0.5, 3600.0])

    def step():
        raise exception.Unavailable('away', wait=next(outcomes))

    tried = loop.Loop('the sync', step)
    assert [tried._take() for _ in range(3)] == [5, 2, loop.MAX_WAIT]


def test_a_slow_pace_stays_as_it_is():
    def step():
        raise exception.Unavailable('away')

    tried = loop.Loop('the sync', step, lambda: 60.0)
    assert [tried._take() for _ in range(4)] == [60.0] * 4


def test_each_step_has_a_request_id_of_its_own():
    ids = []
    enough = threading.Event()

    def step():
        ids.append(context.get_current().request_id)
        if len(ids) == 2:
            enough.set()
        return 0.0

    tried = loop.Loop('the sync', step)
    tried.start()
    assert enough.wait(PATIENCE)
    tried.stop()
    assert len({*ids}) == len(ids)
