# SPDX-License-Identifier: Apache-2.0
"""A whole lease is placed by trial changes, which are undone."""

from collections import Counter
import dataclasses

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.window import Window
from blazar_sched.placing import lease_placing
from blazar_sched.placing import reallocation
from blazar_sched.placing.options import DEFAULT_OPTIONS
from blazar_sched.placing.options import Options
from blazar_sched.placing.room import Room
from blazar_sched.replica import record
from tests.unit.placing.placements import FLAVOR
from tests.unit.placing.placements import GPU
from tests.unit.placing.placements import grow
from tests.unit.placing.placements import HOSTS
from tests.unit.placing.placements import make_host
from tests.unit.placing.placements import make_lease
from tests.unit.placing.placements import PHYSICAL
from tests.unit.placing.placements import Placements
from tests.unit.placing.placements import RESERVATIONS
from tests.unit.placing.placements import WINDOWS

CHEAP = '["==", "$kind", "cheap"]'
DEAR = '["==", "$kind", "dear"]'


def ask(wanted, text):
    """Return a reservation of a type that requests certain hosts."""
    resource_type, parameters = wanted
    return resource_type, {
        **parameters, 'resource_properties': text, 'asked_properties': text
    }


# More hosts, restricted by nothing but their kind.
OPEN_HOSTS = st.tuples(*(
    st.builds(
        make_host, st.just(name), st.integers(2, 6), st.integers(1, 3),
        st.just(False), st.just(()), st.sampled_from(['cheap', 'dear']),
    )
    for name in 'abcde'
))
CHOOSY = st.lists(
    st.builds(ask, PHYSICAL | FLAVOR, st.sampled_from(['', '', DEAR])),
    min_size=1, max_size=3,
)
TERMS = st.builds(
    lambda retry: Options(0, requirements.parse(CHEAP, 'x'), retry),
    st.booleans(),
)


def amounts(allocations):
    """Return the allocated amounts by host, without times."""
    return {a.host: (a.id, dict(a.amounts), a.whole) for a in allocations}


@settings(max_examples=60, deadline=None)
@given(
    HOSTS, st.lists(st.tuples(WINDOWS, RESERVATIONS), max_size=3), WINDOWS,
    RESERVATIONS, WINDOWS, st.integers(0, 2), st.booleans(),
)
def test_a_lease_finds_room_and_grows(
    hosts, others, window, wanted, later, more, active
):
    world = Placements(hosts)
    for n, (when, theirs) in enumerate(others):
        world.place(make_lease(f'other-{n}', 'theirs', when, theirs), when)
        world.check()
    mine = make_lease('mine', 'mine', window, wanted)
    placed = world.place(mine, window)
    world.check()
    if placed is None:
        return
    assert_open_to('mine', world, placed)
    for r in mine.reservations:
        assert_complete(r, placed[r.id])

    grown = dataclasses.replace(
        mine, reservations=tuple(grow(r, more) for r in mine.reservations)
    )
    again = world.place(grown, later, active)
    world.check()
    if again is not None:
        for r in grown.reservations:
            assert_complete(r, again[r.id])
            if active:
                assert_kept(placed[r.id], again[r.id])


@settings(max_examples=60, deadline=None)
@given(
    HOSTS, st.lists(st.tuples(WINDOWS, RESERVATIONS), max_size=3), WINDOWS,
    RESERVATIONS, WINDOWS, st.booleans(), st.integers(0, 3),
)
def test_a_look_ahead_changes_no_choice(
    hosts, others, window, wanted, later, active, cleaning
):
    """The hosts that equal reservations choose from are enough."""
    options = Options(cleaning)

    def names(placed):
        return placed and [
            [(a.host, dict(a.amounts)) for a in many]
            for many in placed.values()
        ]

    def answers():
        world = Placements(hosts)
        for n, (when, theirs) in enumerate(others):
            world.place(make_lease(f'other-{n}', 'theirs', when, theirs), when)
        mine = make_lease('mine', 'mine', window, 3 * wanted)
        yield names(world.place(mine, window, options=options))
        yield names(world.place(mine, later, active, options))

    ahead = list(answers())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            lease_placing.Placer, 'ahead', lambda self, *more: [self]
        )
        assert ahead == list(answers())


def test_equal_reservations_look_at_all_hosts_only_once(monkeypatch):
    """Other commits wait for the placing of a large lease."""
    looked = []
    real = Room._pick

    def pick(self, rows, *more):
        looked.append(len(rows))
        return real(self, rows, *more)

    monkeypatch.setattr(Room, '_pick', pick)
    slot = {'resources': {'VCPU': 1}, 'amount': 1, 'affinity': None}
    window = Window(0, 1)
    mine = make_lease('mine', 'mine', window, [('flavor:instance', slot)] * 20)
    counts = []
    for number in (100, 1000):
        world = Placements([
            make_host(str(n), 4, 0, False, (), 'cheap') for n in range(number)
        ])
        looked.clear()
        world.place(mine, window)
        world.place(mine, Window(0, 2))
        counts.append(sum(looked))
    assert counts[1] - counts[0] == 2 * 900


@pytest.mark.parametrize('active', [True, False])
def test_other_classes_alone_are_not_extended_over_a_host_taken_whole(active):
    world = Placements([make_host('a', 4, 2, False, (), 'cheap')])
    gpu = {'resources': {GPU: 1}, 'amount': 1, 'affinity': None}
    window = Window(3, 5)
    mine = make_lease('mine', 'mine', window, [('flavor:instance', gpu)])
    world.place(mine, window)
    later = Window(5, 6)
    whole = [('physical:host', {'min': 1, 'max': 1})]
    world.place(make_lease('other', 'theirs', later, whole), later)
    assert world.place(mine, Window(3, 6), active) is None
    assert world.place(mine, window, active)


@settings(max_examples=50, deadline=None)
@given(HOSTS, WINDOWS, RESERVATIONS)
def test_what_is_held_stays_on_a_host_that_was_disabled(hosts, window, wanted):
    world = Placements(hosts)
    mine = make_lease('mine', 'mine', window, wanted)
    placed = world.place(mine, window)
    if placed is None:
        return
    world.replica.apply(world.replica.revision + 1, [
        record.encode(dataclasses.replace(h, disabled=True)) for h in hosts
    ])
    again = world.place(mine, window)
    assert {id_: amounts(many) for id_, many in again.items()} == {
        id_: amounts(many) for id_, many in placed.items()
    }


@settings(max_examples=60, deadline=None)
@given(
    HOSTS, st.lists(st.tuples(WINDOWS, RESERVATIONS), max_size=3), WINDOWS,
    CHOOSY, TERMS,
)
def test_a_default_is_as_if_it_were_asked_for(
    hosts, others, window, wanted, options
):
    def place(lease, options=DEFAULT_OPTIONS):
        world = Placements(hosts)
        for n, (when, theirs) in enumerate(others):
            world.place(make_lease(f'other-{n}', 'theirs', when, theirs), when)
        return sizes(world.place(lease, window, options=options))

    mine = make_lease('mine', 'mine', window, wanted)
    spelt_out = place(make_lease('mine', 'mine', window, spell_out(wanted)))
    if spelt_out is None and options.retry:
        spelt_out = place(mine)
    assert place(mine, options) == spelt_out


@settings(max_examples=60, deadline=None)
@given(HOSTS, WINDOWS, CHOOSY, TERMS, st.booleans())
def test_what_is_held_stays_whatever_the_default(
    hosts, window, wanted, options, active
):
    world = Placements(hosts)
    mine = make_lease('mine', 'mine', window, wanted)
    placed = world.place(mine, window)
    if placed is not None:
        again = world.place(mine, window, active, options)
        assert {id_: amounts(many) for id_, many in again.items()} == {
            id_: amounts(many) for id_, many in placed.items()
        }


@settings(max_examples=60, deadline=None)
@given(
    OPEN_HOSTS, WINDOWS, CHOOSY.map(lambda wanted: wanted[:1]), TERMS,
    st.integers(1, 2),
)
def test_who_leaves_hosts_goes_by_the_default_while_that_is_enough(
    hosts, window, wanted, options, count
):
    def leave(wanted, options=DEFAULT_OPTIONS):
        lease = make_lease('mine', 'mine', window, wanted)
        return reallocation.reallocate(
            world.replica, lease, window, failed, None, options
        )

    world = Placements(hosts)
    placed = world.place(make_lease('mine', 'mine', window, wanted), window)
    if placed is None:
        return
    [old] = placed.values()
    failed = {a.host for a in old[:count]}
    spelt_out = leave(spell_out(wanted))
    if options.retry and is_short(wanted[0], old, *spelt_out.values()):
        spelt_out = leave(wanted)
    assert sizes(leave(wanted, options)) == sizes(spelt_out)


def spell_out(wanted):
    """Make the default requirement explicit where there is none."""
    return [
        ask(each, each[1]['resource_properties'] or CHEAP) for each in wanted
    ]


def is_short(wanted, old, new):
    """Whether a reservation has lost hosts, or has too few slots."""
    resource_type, parameters = wanted
    if resource_type == PHYSICAL_HOST:
        return len(new) < len(old)
    slot = parameters['resources']
    return any(
        sum(a.amounts.get(c, 0) for a in new) < n * parameters['amount']
        for c, n in slot.items()
    )


def sizes(placed):
    """Return the allocations without their ids."""
    return placed and {
        id_: {a.host: (dict(a.amounts), a.whole) for a in many}
        for id_, many in placed.items()
    }


def assert_open_to(project_id, world, placed):
    for many in placed.values():
        for held in many:
            noun = world.hosts[held.host]
            assert not noun.disabled
            assert not noun.projects or project_id in noun.projects


def assert_complete(noun, held):
    assert all(isinstance(a, Allocation) for a in held)
    assert len({a.host for a in held}) == len(held)
    if noun.resource_type == PHYSICAL_HOST:
        assert 1 <= len(held) <= noun.demand.most
        assert all(a.whole for a in held)
        return
    amount = noun.demand.amount
    total = sum((Counter(a.amounts) for a in held), Counter())
    assert total == {c: amount * n for c, n in noun.demand.slot.items()}


def assert_kept(old, new):
    now = amounts(new)
    for held in old:
        id_, amounts_, _ = now[held.host]
        assert id_ == held.id
        assert all(amounts_[c] >= n for c, n in held.amounts.items())


PAIRS = st.lists(
    st.builds(ask, PHYSICAL | FLAVOR, st.sampled_from(['', CHEAP, DEAR])),
    min_size=2, max_size=2,
)


def is_placed_in_turn(hosts, wanted, window):
    """Place each reservation as a lease of its own, in the given order."""
    placements = Placements(hosts)
    return all(
        placements.place(
            make_lease(f'lease-{n}', 'mine', window, [each]), window
        ) is not None
        for n, each in enumerate(wanted)
    )


@settings(deadline=None, max_examples=120)
@given(OPEN_HOSTS, PAIRS, WINDOWS)
def test_the_order_of_two_reservations_does_not_matter(hosts, pair, window):
    orders = [pair, pair[::-1]]
    expected = any(
        is_placed_in_turn(hosts, wanted, window) for wanted in orders
    )
    for wanted in orders:
        lease = make_lease('lease', 'mine', window, wanted)
        placements = Placements(hosts)
        placed = placements.place(lease, window)
        assert (placed is not None) == expected
        placements.check()


@settings(deadline=None, max_examples=120)
@given(
    OPEN_HOSTS, WINDOWS,
    st.lists(
        st.sampled_from([
            ask(('physical:host', {'min': 1, 'max': 1}), text)
            for text in ('', CHEAP, DEAR)
        ] + [
            ('flavor:instance', {
                'resources': {'VCPU': n}, 'amount': 1, 'affinity': None,
            })
            for n in (1, 2)
        ]),
        min_size=2, max_size=5,
    ),
)
def test_orders_of_equal_reservations_are_one_order(hosts, window, wanted):
    """As much finds room as if each reservation were different."""
    placed = []
    for note in (None, 1):
        lease = make_lease('lease', 'mine', window, [
            (resource_type, {**parameters, 'note': note and n})
            for n, (resource_type, parameters) in enumerate(wanted)
        ])
        placed.append(Placements(hosts).place(lease, window) is not None)
    assert placed[0] == placed[1]


@pytest.mark.parametrize('different, orders_tried', [(0, 1), (1, 11)])
def test_a_lease_without_room_is_tried_in_few_orders(
    different, orders_tried, monkeypatch
):
    """Of a hundred equal reservations, there is one order."""
    chosen, failed = [], set()
    choose = lease_placing.Placer.choose

    def count(placer, reservation, *args):
        # What finds no room on the first hosts is placed again on all hosts.
        if reservation.id not in failed:
            chosen.append(reservation.id)
        failed.discard(reservation.id)
        try:
            return choose(placer, reservation, *args)
        except exception.NotEnoughHostsAvailable:
            if placer.only is not None:
                failed.add(reservation.id)
            raise

    monkeypatch.setattr(lease_placing.Placer, 'choose', count)
    window = Window(0, 1)
    lease = make_lease('lease', 'mine', window, [
        ('flavor:instance', {
            'resources': {'VCPU': 1}, 'amount': 1, 'affinity': None,
            'note': different and n,
        })
        for n in range(100)
    ])
    hosts = [make_host('a', 50, 0, False, (), 'cheap')]
    assert Placements(hosts).place(lease, window) is None
    # Fifty find room each time, and the next one does not.
    assert len(chosen) == 51 * orders_tried


def test_a_reservation_leaves_the_only_host_that_suits_another():
    window = Window(0, 1)
    hosts = [
        make_host('a', 2, 1, False, (), 'dear'),
        make_host('b', 4, 1, False, (), 'cheap'),
    ]
    gpu = ('flavor:instance', {
        'resources': {'VCPU': 1, GPU: 1}, 'amount': 1, 'affinity': None,
    })
    wanted = [ask(gpu, ''), ask(gpu, DEAR)]
    # By itself, the first reservation takes the fuller host.
    assert not is_placed_in_turn(hosts, wanted, window)
    lease = make_lease('lease', 'mine', window, wanted)
    placed = Placements(hosts).place(lease, window)
    assert [placed[r.id][0].host for r in lease.reservations] == ['b', 'a']
    with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
        lease_placing.place(
            Placements(hosts[:1]).replica,
            make_lease('lease', 'mine', window, wanted), window,
        )
    # The refusal is that in the order of the lease.
    assert refusal.value.offer == {'reservation': 1, 'available': 0}
    assert 'beside the other reservations' in refusal.value.args[0]
