# SPDX-License-Identifier: Apache-2.0
"""The longest windows and those with the most room, against every window."""

from hypothesis import settings
import pytest

from blazar_sched.domain.window import Window
from blazar_sched.parts.offer import best_limits
from blazar_sched.parts.offer.best_search import BestSearch
from tests.unit.placing import test_window_search
from tests.unit.placing.test_window_search import LIMITS
from tests.unit.placing.test_window_search import OF_HOSTS
from tests.unit.placing.test_window_search import SEARCHES
from tests.unit.placing.test_window_search import unbounded

pytestmark = pytest.mark.more


class Asked(test_window_search.Asked):
    """A lease to be, whose search has the limits of all windows, too."""

    def kind(self, *args, **more):
        if self._limits == 'by index':
            more['limits'] = self.limits_by_index
        return BestSearch(*args, **more)

    def limits_by_index(self):
        bounds = self._bounds
        return best_limits.read(
            self._world.replica, self.lease, bounds.first, bounds.last,
            bounds.least, self._options,
        )


@pytest.mark.row('F27')
@settings(max_examples=200, deadline=None)
@SEARCHES
@LIMITS
def test_no_window_is_longer(limits, world, wanted, bounds, options, distance):
    asked = Asked(world, wanted, bounds, options, limits)
    found = asked.search().longest(3, distance)
    lengths = [
        Window(start, end).duration
        for start in asked.starts()
        if (end := asked.longest_end(start)) is not None
    ]
    in_order = [each.window.duration for each in found]
    assert all(asked.has_room(each.window) for each in found)
    assert in_order == sorted(in_order, reverse=True)
    assert (
        in_order[:1] == sorted(lengths)[-1:] and set(in_order) <= set(lengths)
    ) or asked.competes()


@pytest.mark.row('F27')
@settings(max_examples=200, deadline=None)
@SEARCHES
@LIMITS
def test_no_window_has_more(limits, world, wanted, bounds, options, distance):
    asked = Asked(world, wanted, bounds, options, limits)
    found = asked.search().most(3, distance)
    counts = [
        asked.count(start, start + bounds.least) for start in asked.starts()
        if start + bounds.least <= bounds.last_end(start)
    ]
    most = found[0].count if found else 0
    assert all(asked.has_room(each.window) for each in found)
    assert most == max(counts, default=0) or asked.competes()


def known(asked, bounds):
    """Return what is known of each start, by trial and by the limits."""
    starts = list(range(bounds.first, bounds.last + 1))
    limits = asked.limits_by_index()
    ends = limits.last_ends(starts)
    counts = limits.counts(starts, bounds.least)
    for start, end, count in zip(starts, ends, counts, strict=True):
        yield (
            asked.longest_end(start) or 0,
            asked.count(start, start + bounds.least),
        ), (end, count)


@settings(max_examples=300, deadline=None)
@SEARCHES
def test_no_limit_is_too_strict(world, wanted, bounds, options, distance):
    bounds = unbounded(bounds)
    asked = Asked(world, wanted, bounds, options)
    for by_trial, by_index in known(asked, bounds):
        assert by_index[0] >= by_trial[0]
        assert by_index[1] >= by_trial[1]


@settings(max_examples=300, deadline=None)
@OF_HOSTS
def test_the_limits_of_hosts_are_exact(world, wanted, bounds, options):
    bounds = unbounded(bounds)
    asked = Asked(world, wanted, bounds, options)
    for (longest, count), by_index in known(asked, bounds):
        assert by_index[1] == count
        if count:
            assert by_index[0] == longest
