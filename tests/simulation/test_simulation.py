# SPDX-License-Identifier: Apache-2.0
"""Some seeds of the simulation; ``python -m tests.simulation`` has the rest.

BLAZAR_SCHED_SEEDS sets how many.
"""

import os

import pytest

from tests.simulation import play

SEEDS = int(os.environ.get('BLAZAR_SCHED_SEEDS', '100'))
BLOCK = 10


@pytest.fixture(scope='module')
def player():
    new = play.Player()
    yield new
    new.close()


@pytest.mark.parametrize('first', range(0, SEEDS, BLOCK))
def test_every_promise_holds(player, first):
    for seed in range(first, min(first + BLOCK, SEEDS)):
        trace, broken = player.play(seed)
        if broken:
            pytest.fail(
                '\n'.join([*trace, broken, 'again: python -m '
                           f'tests.simulation --seed {seed}']),
                pytrace=False,
            )


def test_a_broken_promise_is_seen(player, monkeypatch):
    """The negative control: a lease that is taken back after its 201."""
    from blazar_sched.service.manager import lease

    real = lease.Leases.create

    def create(self, *args, **kwargs):
        made = real(self, *args, **kwargs)
        self._ledger.commit(lambda tx: tx.delete_lease(made.id))
        return made

    monkeypatch.setattr(lease.Leases, 'create', create)
    broken = [player.play(seed)[1] for seed in range(5)]
    assert any(b and 'is not there' in b for b in broken)
