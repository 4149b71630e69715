# SPDX-License-Identifier: Apache-2.0
"""The operator is told of each crossing of a threshold, exactly once."""

from collections import Counter
import itertools

from tests.simulation.promises import registry


@registry.promise
def a_crossing_is_told_once(world):
    """No crossing is told twice, and none is left out, where nothing fails.
    """
    if not world.is_calm or 'away' in world.features:
        return
    told = world.outside.crossings
    for key, times in Counter(each.key for each in told).items():
        if times > 1:
            yield f'the crossing {key} was told {times} times'
    by_threshold = {}
    for each in told:
        by_threshold.setdefault(each.threshold_id, []).append(each.low)
    for id_, lows in by_threshold.items():
        expected = itertools.islice(itertools.cycle((True, False)), len(lows))
        if lows != list(expected):
            yield f'a crossing of {id_} was left out: {lows}'


def check_told(world):
    """Check that each threshold is told as it is, once all is calm.

    :raises Broken: if a threshold is low and was not told, or the other way
        round
    """
    told = {each.threshold_id: each.low for each in world.outside.crossings}
    for each in world.conf.manager.capacity_threshold:
        free = world.members[0].run(
            lambda m, each=each: m.capacity.count('', each.within)
        )
        if told.get(each.id, False) != (free < each.below):
            raise registry.Broken(
                f'threshold {each} was told as {told.get(each.id)}: '
                f'{free} are free'
            )
