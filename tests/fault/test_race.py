# SPDX-License-Identifier: Apache-2.0
"""24 creators in three processes race for the last slot, round after round.

Each has a whole API in front of it. The managers behind share only the
database.
"""

import collections

import pytest

from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from tests.fault import processes as process_types
from tests.fault import racer
from tests.fault.site import Deployment

# Together with the fleets of other tests the racers would need more than the
# default number of PostgreSQL's connections.
pytestmark = pytest.mark.usefixtures('bus')

PROCESSES = 3
CREATORS = 24
# Each keeps some connections open, of PostgreSQL's default of 100.
MANAGERS = 6
ROUNDS = 20
# Enough rounds to see a failure.
ROUNDS_WITHOUT = 2
YEAR = 2030


def window(number):
    """Return the number-th day from YEAR on, as a window."""
    months, day = divmod(number, 28)
    years, month = divmod(months, 12)
    day = f'{YEAR + years}-{month + 1:02}-{day + 1:02}'
    return f'{day} 10:00', f'{day} 11:00'


@pytest.fixture
def engine():
    return 'mysql'


@pytest.fixture
def site(tmp_path, database_on, engine):
    site = Deployment(tmp_path, database_on(engine))
    one = Inventory(1)
    host = Host(
        uuid='h', id='', hypervisor_hostname='h',
        inventory={
            inventory.VCPU: one,
            inventory.MEMORY_MB: one,
            inventory.DISK_GB: one,
        },
    )
    ledger = site.ledger()
    ledger.commit(lambda tx: tx.put_host(host))
    ledger.close()
    return site


@pytest.fixture
def run(site, processes):
    """run(rounds, pause, protocol) -> the count of each status, by round."""

    def run(rounds, pause, protocol):
        barrier = process_types.barrier(CREATORS)
        pipes = []
        for _ in range(PROCESSES):
            ours, theirs = process_types.pipe()
            processes.fork(
                racer.race, site.file(), CREATORS // PROCESSES,
                MANAGERS // PROCESSES, pause, protocol, barrier, theirs,
            )
            pipes.append(ours)
        outcomes = []
        for number in range(rounds):
            for pipe in pipes:
                pipe.send(window(number))
            answers = [status for pipe in pipes for status in pipe.recv()]
            outcomes.append(collections.Counter(answers))
        for pipe in pipes:
            pipe.send(None)
        return outcomes

    return run


@pytest.mark.row('F24')
@pytest.mark.parametrize('engine', ['sqlite', 'mysql', 'postgresql'])
def test_the_last_slot_is_won_once(run, site):
    outcomes = run(ROUNDS, pause=0.01, protocol=True)

    assert outcomes == [{201: 1, 400: CREATORS - 1}] * ROUNDS
    ledger = site.ledger()
    assert ledger.check() == []
    assert len(ledger.leases()) == ROUNDS
    ledger.close()


def test_without_the_protocol_it_is_overbooked(run, site):
    """The control: the same race without the lock and without a fresh replica.
    """
    outcomes = run(ROUNDS_WITHOUT, pause=0.05, protocol=False)

    assert all(round_[201] > 1 for round_ in outcomes)
    ledger = site.ledger()
    found = [fault for fault in ledger.check() if 'allocated at' in fault]
    ledger.close()
    assert len(found) >= ROUNDS_WITHOUT
