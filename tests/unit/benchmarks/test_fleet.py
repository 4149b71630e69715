# SPDX-License-Identifier: Apache-2.0
"""Workers get a commit soon, at little cost for the manager."""

import random
import time
import types

import pytest

from benchmarks import fleet
from blazar_sched.replica import pace
from blazar_sched.service.manager import feed

WORKERS = 60


@pytest.fixture
def played(monkeypatch):
    monkeypatch.setattr(fleet, 'WORKERS', WORKERS)
    # A response takes OVERHEAD exactly, however busy the machine is.
    clocks = types.SimpleNamespace(perf_counter=lambda: 0.0, time=time.time)
    monkeypatch.setattr(fleet, 'time', clocks)
    # The same pauses in each run: few draws of 60 pauses need more reads.
    monkeypatch.setattr(pace, 'random', random.Random(1))
    return lambda: {
        own.work: own.value for own in fleet.run(lambda text: None)
    }


def test_few_pulls_and_fewer_reads(played):
    found = played()
    # Each worker waits for 3.75 to 5 seconds.
    assert WORKERS / 5 < found[fleet.IDLE] < WORKERS / 3.75
    assert WORKERS <= found[fleet.AFTER_COMMIT] < 1.5 * WORKERS
    assert found[fleet.KNOWN] < 1
    # In simulated time the requests come one after the other, so the page is
    # read again only where it was kept for too long.
    assert found[fleet.READS] < WORKERS / 4
    assert found[fleet.AFTER_RESTART] < WORKERS / 2


def test_control_without_the_kept_page_each_worker_is_a_read(
    played, monkeypatch
):
    monkeypatch.setattr(feed, 'MAX_PAGES', 0)
    assert played()[fleet.READS] >= WORKERS
