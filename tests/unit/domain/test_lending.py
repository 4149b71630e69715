# SPDX-License-Identifier: Apache-2.0
"""What reservations lend, step by step, against what must always hold."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from blazar_sched.domain.lending import BURST
from blazar_sched.domain.lending import LENDING
from blazar_sched.domain.lending import Lending
from blazar_sched.domain.lending import MEMORY
from blazar_sched.domain.lending import next_lending

NOW = 10**9
HOSTS = 'abc'

counts = st.dictionaries(st.sampled_from(HOSTS), st.integers(1, 5))
steps = st.lists(
    st.tuples(
        counts, st.dictionaries(st.sampled_from(HOSTS), st.integers(0, 6)),
        st.booleans(),
        st.integers(1, BURST // 2) | st.integers(BURST, MEMORY // 2),
        st.sets(st.sampled_from(HOSTS)),
    ),
    max_size=12,
)


@given(steps)
def test_units_are_lent_beside_use_and_reserve(looks):
    known, now, looked = Lending(), NOW, [(NOW - BURST, 0)]
    for units, used, lends, later, cleared in looks:
        now += later
        looked.append((now, sum(used.values())))
        new = next_lending(known, units, used, now, lends, 'cba'.index)
        for host in set(units) | set(new.lent) | set(new.recalled):
            away = new.lent.get(host, 0) + new.recalled.get(host, 0)
            # A host that a reservation has lost is forgotten.
            assert away <= units.get(host, 0)
            # What comes into use comes back.
            assert away - new.recalled.get(host, 0) <= max(
                0, units.get(host, 0) - used.get(host, 0)
            )
        # No unit goes from recalled to lent before it was cleared.
        for host, count in known.recalled.items():
            assert new.recalled.get(host, 0) >= min(
                count, units.get(host, 0)
            )
        assert set(new.recalled) == set(new.recalled_at)
        # The reserve: as many as came into use at once in the last day.
        lately = [
            after - before
            for (_, before), (at, after) in itertools.pairwise(looked)
            if now - at < MEMORY - BURST
        ]
        assert new.reserve >= max([1, *lately])
        assert new.reserve <= max([1, *(
            looked[last][1] - looked[first - 1][1]
            for last in range(1, len(looked)) for first in range(1, last + 1)
            if looked[last][0] - looked[first][0] < BURST
        )])
        free = sum(
            max(0, n - used.get(h, 0) - new.lent.get(h, 0))
            for h, n in units.items()
        )
        if not lends:
            assert not new.lent
        elif new.lent:
            assert free >= new.reserve
        known = new
        for host in cleared & set(known.recalled):
            known = known.cleared(host)


@given(counts, st.integers(0, 3))
def test_all_but_the_reserve_is_lent(units, in_use):
    used = dict.fromkeys(list(units)[:1], in_use)
    found = next_lending(Lending(used=in_use), units, used, NOW, True, ord)
    free = sum(max(0, n - used.get(h, 0)) for h, n in units.items())
    assert found.away == max(0, free - 1)


def test_what_costs_least_comes_back_first():
    known = Lending({'a': 1, 'b': 1, 'c': 1}, used=0)
    units = dict.fromkeys('abcd', 1)
    cost = {'a': 512, 'b': 0, 'c': 1024}.__getitem__
    found = next_lending(known, units, {'d': 1}, NOW, True, cost)
    assert found.recalled == {'b': 1}
    assert found.recalled_at == {'b': NOW}
    assert found.lent == {'a': 1, 'c': 1}


def played(*looks, known=None):
    """Return the lending of `a` with nine units after looks at times."""
    known = known or Lending()
    for at, used in looks:
        known = next_lending(known, {'a': 9}, {'a': used}, at, True, ord)
    return known


def test_units_that_come_within_a_minute_are_one_burst():
    ten_seconds = [(10 * n, n) for n in range(1, 7)]
    assert played(*ten_seconds).reserve == 6
    assert played(*ten_seconds, (75, 9)).reserve == 6
    assert played(*ten_seconds, (75, 9), (80, 9)).lent == {}
    # Units that left and came back within the minute came once.
    assert played((10, 4), (20, 0), (30, 5)).reserve == 5


def test_each_burst_is_remembered_for_a_day():
    day, later = MEMORY, 2 * BURST
    known = played((0, 4), (BURST, 0), (later, 2), (later + 1, 0))
    assert known.reserve == 4
    for at, reserve in (day - 1, 4), (day, 2), (day + 1, 2), (day + later, 1):
        known = played((at, 0), known=known)
        assert known.reserve == reserve


def test_a_lent_unit_that_the_owner_took_fills_no_reserve():
    """The host with the reserve is lost at the same moment."""
    known = Lending({'a': 1, 'b': 1}, used=0)
    units, used = {'a': 1, 'b': 1}, {'b': 1}
    found = next_lending(known, units, used, NOW, True, 'ba'.index)
    assert found.recalled == units


def test_what_another_version_has_written_is_read():
    known = Lending(lent={'a': 2}, bursts=[[1, NOW]])
    made = known.encode()
    made[LENDING]['burst_at'] = NOW
    del made[LENDING]['told']
    assert Lending.decode(made) == known
