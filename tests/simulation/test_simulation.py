# SPDX-License-Identifier: Apache-2.0
"""Some seeds of the simulation; ``python -m tests.simulation`` has the rest.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.seeds import seeds
from tests.simulation import controls
from tests.simulation import play

# The seeds among which a control must find its fault.
SEARCHED = 30


@pytest.fixture(scope='module')
def player():
    new = play.Player()
    yield new
    new.close()


@pytest.mark.parametrize('seed', seeds(15, few=3))
def test_every_promise_holds(player, seed):
    trace, broken = player.play(seed)
    if broken:
        pytest.fail(
            '\n'.join([*trace, broken, 'again: python -m '
                       f'tests.simulation --seed {seed}']),
            pytrace=False,
        )


@pytest.mark.more
@pytest.mark.parametrize('name', sorted(controls.ALL))
def test_without_its_mend_a_fault_is_found(player, name):
    """A fault whose fix is undone is found, as a negative control."""
    control = controls.ALL[name]
    with control.off():
        for seed in range(control.first, control.first + SEARCHED):
            _, broken = player.play(seed, control.features, control.often)
            if control.finds(broken):
                return
    pytest.fail(f'{name} is not missed within {SEARCHED} seeds')


@pytest.mark.more
def test_a_seed_is_played_the_same_anywhere(player):
    """A seed is played the same in a process with another hash seed."""
    script = (
        'import json, sys; from tests.simulation import play; '
        'json.dump(play.Player().play(3), sys.stdout)'
    )
    told = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', script],
        env={**os.environ, 'PYTHONHASHSEED': '1234'}, capture_output=True,
        check=True, text=True,
    ).stdout
    assert json.loads(told) == list(player.play(3))
