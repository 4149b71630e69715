# SPDX-License-Identifier: Apache-2.0
"""Loops go on whatever a step meets, each at its pace."""

import logging
import threading

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.manager import loop

PATIENCE = 10


@pytest.fixture
def take():
    """take(steps, pace) -> take the steps in a loop, which ends with them.

    A step is what it returns, or raises.
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
    """A pace of no time at all that counts how often it is asked for."""

    class Pace:
        asked = 0

        def __call__(self):
            self.asked += 1
            return 0.0

    return Pace()


def test_who_says_no_time_goes_at_its_pace(take, pace):
    take([None, 0.0, None], pace)
    assert pace.asked == 2


def test_a_service_that_is_away_is_a_warning(take, pace, caplog):
    take([exception.Unavailable('compute answered 500'), None], pace)
    assert pace.asked == 2
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == 'the sync failed: compute answered 500'
    assert record.exc_info is None


def test_what_nobody_expects_is_traced(take, pace, caplog):
    take([KeyError('x'), None], pace)
    assert pace.asked == 2
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == 'the sync failed'
    assert isinstance(record.exc_info[1], KeyError)
