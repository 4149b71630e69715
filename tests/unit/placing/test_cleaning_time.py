# SPDX-License-Identifier: Apache-2.0
"""What a lease gets has room together with the cleaning time around it.

The oracle counts minute by minute what is on each host.
"""

from collections import Counter
import dataclasses
import itertools

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.placing import reallocation
from blazar_sched.placing.options import Options
from blazar_sched.replica import record
from tests.unit.placing.placements import GPU
from tests.unit.placing.placements import grow
from tests.unit.placing.placements import make_host
from tests.unit.placing.placements import make_lease
from tests.unit.placing.placements import PHYSICAL
from tests.unit.placing.placements import Placements

pytestmark = pytest.mark.row('F25')

NAMES = 'ab'
MINUTE = 60
MINUTES = st.builds(
    lambda start, length: Window(MINUTE * start, MINUTE * (start + length)),
    st.integers(1, 4), st.integers(1, 2),
)
# Small slots, so that some of a lease share a host with others.
SLOTS = st.builds(
    lambda resources, amount, affinity: (
        'flavor:instance',
        {'resources': resources, 'amount': amount, 'affinity': affinity},
    ),
    st.sampled_from([{GPU: 1}, {GPU: 1}, {'VCPU': 1, GPU: 1}]),
    st.sampled_from([1, 1, 1, 2]),
    st.sampled_from([None, None, None, True, False]),
)
RESERVATIONS = st.lists(
    st.one_of(*5 * [SLOTS], PHYSICAL), min_size=2, max_size=3
)


@dataclasses.dataclass
class Cleaning:
    """Cleaning times in minutes: of the cloud, by type, and by host or None.
    """

    cloud: int
    by_type: dict
    own: tuple

    @property
    def options(self):
        by_type = {name: MINUTE * n for name, n in self.by_type.items()}
        return Options(MINUTE * self.cloud, cleaning_times=by_type)

    def around(self, resource_type, allocation):
        """Return the window of an allocation with the cleaning time."""
        usual = self.by_type.get(resource_type, self.cloud)
        own = self.own[NAMES.index(allocation.host)]
        seconds = MINUTE * (usual if own is None else own)
        return Window(
            max(0, allocation.start - seconds), allocation.end + seconds
        )


CLEANING = st.builds(
    Cleaning, st.integers(1, 3),
    st.sampled_from([{}, {}, {'physical:host': 3}, {'flavor:instance': 1}]),
    st.tuples(*[st.sampled_from([None, None, 0, 2])] * 2),
)
BOOKED = st.lists(
    st.tuples(MINUTES, SLOTS | SLOTS | PHYSICAL), min_size=2, max_size=4
)


def make_world(cleaning):
    return Placements(
        dataclasses.replace(
            make_host(name, 3, 3, False, (), 'cheap'), cleaning_time=own
        )
        for name, own in zip(NAMES, cleaning.own, strict=True)
    )


def book(world, others):
    """Place leases without cleaning, so that they may be adjacent."""
    for when, theirs in others:
        id_ = f'other-{len(world.allocations)}'
        world.place(make_lease(id_, 'theirs', when, [theirs]), when)


@settings(max_examples=100, deadline=None)
@given(
    CLEANING, MINUTES, RESERVATIONS, BOOKED, st.integers(0, 1),
    st.integers(-2, 2), st.integers(0, 2),
)
@pytest.mark.parametrize('active', [False, True])
def test_a_lease_that_is_moved_is_apart_from_others(
    active, cleaning, window, wanted, others, more, later, longer
):
    start = window.start if active else max(0, window.start + MINUTE * later)
    end = start + window.duration + MINUTE * longer
    world = make_world(cleaning)
    lease = make_lease('mine', 'mine', window, wanted)
    before = world.place(lease, window)
    if before is None:
        return
    book(world, others)
    lease = dataclasses.replace(
        lease, start=start, end=end,
        reservations=tuple(grow(r, more) for r in lease.reservations),
    )
    after = world.place(lease, lease.window, active, cleaning.options)
    if after is not None:
        assert_apart(world, cleaning, lease, before)


@settings(max_examples=100, deadline=None)
@given(CLEANING, MINUTES, RESERVATIONS, BOOKED, st.integers(1, 2))
@pytest.mark.parametrize('active', [False, True])
def test_a_lease_that_grows_is_apart_from_others(
    active, cleaning, window, wanted, others, more
):
    world = make_world(cleaning)
    lease = make_lease('mine', 'mine', window, wanted)
    before = world.place(lease, window)
    if before is None:
        return
    book(world, others)
    # The other reservations ask for no more than before.
    first, *settled = lease.reservations
    lease = dataclasses.replace(
        lease, reservations=(grow(first, more), *settled)
    )

    after = world.place(
        lease, window, active, cleaning.options, {r.id for r in settled}
    )

    if after is not None:
        assert_apart(world, cleaning, lease, before)


@settings(max_examples=100, deadline=None)
@given(CLEANING, MINUTES, RESERVATIONS, st.sampled_from(NAMES), BOOKED)
def test_a_lease_that_leaves_a_host_is_apart_from_others(
    cleaning, window, wanted, failed, others
):
    world = make_world(cleaning)
    lease = make_lease('mine', 'mine', window, wanted)
    before = world.place(lease, window)
    if before is None:
        return
    book(world, others)
    world.allocations |= reallocation.reallocate(
        world.replica, lease, window, {failed}, None, cleaning.options
    )
    assert_apart(world, cleaning, lease, before)


@settings(max_examples=100, deadline=None)
@given(
    CLEANING, st.lists(st.tuples(MINUTES, RESERVATIONS), max_size=3), BOOKED
)
def test_leases_of_one_commit_are_apart(cleaning, asked, others):
    world = make_world(cleaning)
    book(world, others)
    with world.replica.changing() as put:
        for n, (window, wanted) in enumerate(asked):
            lease = make_lease(f'mine-{n}', 'mine', window, wanted)
            try:
                placed = lease_placing.place(
                    world.replica, lease, window, options=cleaning.options
                )
            except exception.NotEnoughHostsAvailable:
                continue
            put(map(record.encode, itertools.chain(*placed.values())))
            world.allocations |= placed
            assert_apart(world, cleaning, lease, {})


def assert_apart(world, cleaning, lease, before):
    """Check that all a lease has fits where it has something new.

    :param before: the allocations that the lease had before
    """
    types = {r.id: r.resource_type for r in lease.reservations}
    mine = [
        (a, cleaning.around(types[id_], a))
        for id_ in types for a in world.allocations.get(id_, ())
    ]
    others = [
        (a, Window(a.start, a.end))
        for id_, many in world.allocations.items()
        for a in many if id_ not in types
    ]
    old = list(itertools.chain(*before.values()))
    for new, around in mine:
        if new in old:
            continue
        for at in range(around.start, around.end, MINUTE):
            there = [
                each for each, window in (*mine, *others)
                if each.host == new.host and window.contains(at)
            ]
            assert len(there) == 1 or not any(a.whole for a in there)
            used = sum((Counter(a.amounts) for a in there), Counter())
            for c, amount in used.items():
                assert amount <= world.hosts[new.host].capacity(c)
