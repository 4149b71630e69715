# SPDX-License-Identifier: Apache-2.0
"""Transitions of leases, reservations and events, as in Blazar's table."""

import itertools

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import state_machine

# The v1 contract: the old status, and the statuses that may follow.
TABLE = {
    'lease': """
        CREATING PENDING DELETING
        PENDING STARTING UPDATING DELETING
        STARTING ACTIVE ERROR DELETING
        ACTIVE TERMINATING UPDATING DELETING
        UPDATING PENDING ACTIVE TERMINATED ERROR DELETING
        TERMINATING TERMINATED ERROR DELETING
        TERMINATED UPDATING DELETING
        ERROR TERMINATING UPDATING DELETING
        DELETING ERROR
    """,
    'reservation': """
        pending active deleted error
        active deleted error
        error deleted
        deleted
    """,
    'event': """
        UNDONE IN_PROGRESS
        IN_PROGRESS DONE ERROR UNDONE
        DONE
        ERROR
    """,
}


def rows(noun):
    lines = (line.split() for line in TABLE[noun].split('\n'))
    return {line[0]: set(line[1:]) for line in lines if line}


@pytest.mark.parametrize('noun', TABLE)
def test_states_are_those_of_the_table(noun):
    assert set(state_machine.MACHINES[noun].states) == set(rows(noun))


PAIRS = [
    (noun, old, new)
    for noun in TABLE
    for old, new in itertools.product(rows(noun), repeat=2)
]


@pytest.mark.parametrize('noun, old, new', PAIRS)
def test_transition(noun, old, new):
    if new in rows(noun)[old]:
        state_machine.check(noun, old, new)
        assert new in state_machine.allowed(noun, old)
    else:
        with pytest.raises(exception.InvalidStatus) as caught:
            state_machine.check(noun, old, new)
        assert old in str(caught.value) and new in str(caught.value)
        assert new not in state_machine.allowed(noun, old)


def test_an_active_lease_is_updated_and_stays_active():
    state_machine.check('lease', 'ACTIVE', 'UPDATING')
    state_machine.check('lease', 'UPDATING', 'ACTIVE')


def test_nothing_follows_an_unknown_status():
    assert state_machine.allowed('lease', 'active') == set()
    with pytest.raises(exception.InvalidStatus):
        state_machine.check('lease', 'ACTIVE', 'NONSENSE')


@pytest.mark.parametrize('noun', TABLE)
def test_machines_cannot_be_changed(noun):
    assert state_machine.MACHINES[noun].frozen
