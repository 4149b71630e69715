# SPDX-License-Identifier: Apache-2.0
"""Every replica equals the ledger, and a new replica can always be built."""

from tests.simulation import looks
from tests.simulation.promises import registry


@registry.promise_of_ledger(changes=4)
def the_ledger_can_be_read_anew(world):
    """A manager that starts now builds the replica that other managers have.
    """
    try:
        new = looks.anew(world.other_ledger)
    except ValueError as e:
        yield f'{type(e).__name__}: {e}'
        return
    # The managers take turns: one load is enough for each check.
    member = world.members[new.revision % len(world.members)]
    replica = member.manager and member.manager.ledger.replica
    if replica and replica.revision == new.revision:
        new.advance(replica._now)
        there = looks.image(replica)
        if there != looks.image(new):
            yield f'{member.name} differs: {there ^ looks.image(new)}'


@registry.promise
def a_fresh_replica_is_what_the_ledger_says(world):
    for scheduler in world.schedulers:
        copy = scheduler.puller.copy
        if copy is None or not scheduler.puller.is_fresh(copy):
            continue
        at = copy.replica.revision, copy.replica._now
        if world.compared.get(scheduler) == at:
            continue
        world.compared[scheduler] = at
        made = looks.rebuild(world.ledger, *at)
        if made is not None:
            there = looks.image(copy.replica)
            if there != looks.image(made):
                yield f'it differs: {there ^ looks.image(made)}'
