# SPDX-License-Identifier: Apache-2.0
"""Several managers, APIs and workers, each signalled while clients work."""

import os
import signal
import time

import pytest

MANAGERS, APIS, WORKERS = 3, 2, 4
# Seconds that clients work without faults, and between two signals.
QUIET, BETWEEN = 4, 0.5
# Seconds; longer than a claim.
STOPPED = 3
# Seconds in which a lease should reach every replica, and in which it must.
WISH, BOUND = 1, 5


@pytest.fixture
def fleet(bus, new_fleet, database_on):
    return new_fleet(
        database_on('mysql'), bus, managers=MANAGERS, apis=APIS,
        workers=WORKERS,
    )


def latencies(schedulers, traffic, pids):
    """Return the seconds from each request until each worker had the lease."""
    asked = {
        lease['reservations'][0]['id']: traffic.times[id_][0]
        for id_, lease in list(traffic.made.items())
    }
    return sorted(
        line['at'] - asked[reservation_id]
        for pid in pids
        for line in schedulers.learned(pid)
        for reservation_id in line['new']
        if reservation_id in asked
    )


def signal_services(fleet):
    """Terminate or kill each manager and each API."""
    for number in range(MANAGERS + APIS):
        fleet.running[number].signal(signal.SIGHUP)
        time.sleep(BETWEEN)
        assert fleet.running[number].stop() == 0
        fleet.start(number)
        time.sleep(BETWEEN)
        fleet.running[number].kill()
        fleet.start(number)
        time.sleep(BETWEEN)
    for process in (fleet.running[0], fleet.running[-1]):
        process.signal(signal.SIGSTOP)
        time.sleep(STOPPED)
        process.signal(signal.SIGCONT)
    assert all(process.is_alive for process in fleet.running)


def signal_schedulers(schedulers):
    """Terminate or kill workers and their master."""
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
        os.kill(schedulers.pids()[0], number)
        time.sleep(BETWEEN)
    stopped = schedulers.pids()[0]
    os.kill(stopped, signal.SIGSTOP)
    time.sleep(STOPPED)
    os.kill(stopped, signal.SIGCONT)
    schedulers.master.signal(signal.SIGHUP)
    time.sleep(BETWEEN)
    assert schedulers.master.stop() == 0
    schedulers.start()
    time.sleep(BETWEEN)
    schedulers.master.kill()
    schedulers.start()


@pytest.mark.row('F47')
def test_no_lease_or_decision_is_lost(fleet, record_property):
    schedulers = fleet.schedulers
    with fleet.at_work() as traffic:
        time.sleep(QUIET)
        taken = latencies(schedulers, traffic, schedulers.pids())
        signal_services(fleet)
        signal_schedulers(schedulers)

    middle, most = (taken[len(taken) * n // 100] for n in (50, 99))
    record_property(
        'From a client to each of the replicas',
        f'{middle:.3f} s in the middle, {most:.3f} s for 99 % of '
        f'{len(taken)} (wanted: {WISH} s); {len(traffic.made)} leases made',
    )
    assert most < BOUND
