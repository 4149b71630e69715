# SPDX-License-Identifier: Apache-2.0
"""Host selection on a real index, compared with brute force."""

import itertools

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched import ext
from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.demand import Instances
from blazar_sched.domain.demand import Other
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import Window
from blazar_sched.placing import host_selection
from blazar_sched.placing.room import Room
from blazar_sched.replica import accounting
from blazar_sched.replica.catalog import Catalog
from blazar_sched.replica.indexes import Indexes
from tests.unit.hosts import add
from tests.unit.hosts import by_uuid
from tests.unit.hosts import HOSTS
from tests.unit.hosts import make_host
from tests.unit.hosts import make_index
from tests.unit.hosts import these

# There is no index of another resource class.
NONE = {}
SLOT = {'VCPU': 2, 'MEMORY_MB': 4, 'DISK_GB': 0}
WINDOW = Window(10, 20)


def room(index, hosts, window, ignore=None, cleaning_time=0, extra=NONE):
    indexes = Indexes(hosts, accounting.LedgerAccounting)
    indexes.main = index
    indexes.extra.update(extra)
    return Room(indexes, window, cleaning_time, ignore)


def place_hosts(
    index, hosts, window, minimum, maximum, kept=(), *args, **kwargs
):
    return host_selection.place_hosts(
        room(index, hosts, window, *args, **kwargs), these(index, hosts),
        minimum, maximum, kept,
    )


def place_instances(
    index, hosts, window, slot, amount, affinity, kept=None, *args, **kwargs
):
    return host_selection.place_instances(
        room(index, hosts, window, *args, **kwargs), these(index, hosts),
        Instances(slot, amount, affinity), kept,
    )


class TestHosts:
    @pytest.mark.parametrize('hosts, taken, minimum, words', [
        (1, 1, 1, '1 host is needed, 0 are free'),
        (2, 1, 2, '2 hosts are needed, 1 is free'),
        (4, 1, 4, '4 hosts are needed, 3 are free'),
    ])
    def test_refusal_counts_as_people_do(self, hosts, taken, minimum, words):
        few = dict(list(HOSTS.items())[:hosts])
        index = make_index(
            few, *(('other', name, 0, 15, None) for name in [*few][:taken])
        )
        with pytest.raises(exception.NotEnoughHostsAvailable) as caught:
            place_hosts(index, few, WINDOW, minimum, minimum)
        assert str(caught.value) == words

    def test_a_kept_host_that_no_longer_matches_is_given_up(self):
        index = make_index(HOSTS, ('mine', 'd', 10, 15, None))
        few = by_uuid(HOSTS['a'], HOSTS['b'])
        names = place_hosts(
            index, few, WINDOW, 2, 2, kept=['d'], ignore='mine'
        )
        assert sorted(names) == ['a', 'b']

    def test_no_more_than_the_maximum_is_kept(self):
        index = make_index(HOSTS)
        names = place_hosts(
            index, HOSTS, WINDOW, 1, 2, kept=['c', 'c', 'b', 'a']
        )
        assert names == ['c', 'b']

    def test_a_host_that_the_index_does_not_know_is_not_used(self):
        index = make_index(by_uuid(HOSTS['a']))
        names = place_hosts(index, HOSTS, WINDOW, 1, 4, kept=['b', 'gone'])
        assert names == ['a']


class TestInstances:
    @pytest.mark.row('C46', 'F15')
    def test_one_host_for_all(self):
        # Room: a 2, b 4, c 3, d none.
        index = make_index(
            HOSTS, ('other', 'a', 0, 15, (4, 0, 0)),
            ('other', 'c', 0, 15, (0, 4, 0)), ('other', 'd', 0, 15, (7, 0, 0)),
        )

        def on_one(amount):
            return place_instances(index, HOSTS, WINDOW, SLOT, amount, True)

        assert on_one(2) == {'a': 2}
        assert on_one(3) == {'c': 3}
        assert on_one(4) == {'b': 4}
        with pytest.raises(
            exception.NotEnoughHostsAvailable, match='5 .* room for 4'
        ) as caught:
            on_one(5)
        assert caught.value.field == 'reservations'

    @pytest.mark.row('C46', 'F15')
    def test_one_host_each(self):
        index = make_index(HOSTS, ('other', 'd', 0, 15, (7, 0, 0)))
        placed = place_instances(index, HOSTS, WINDOW, SLOT, 3, False)
        assert placed == {'a': 1, 'b': 1, 'c': 1}
        with pytest.raises(
            exception.NotEnoughHostsAvailable, match='4 .* room for 3'
        ):
            place_instances(index, HOSTS, WINDOW, SLOT, 4, False)

    def test_allocation_ratio_and_reserved_as_in_placement(self):
        big = Host(uuid='a', id='1', hypervisor_hostname='a', inventory={
            'VCPU': Inventory(8, 2, 4.0), 'MEMORY_MB': Inventory(100),
        })
        few = by_uuid(big)
        placed = place_instances(
            make_index(few), few, WINDOW, {'VCPU': 1}, 24, None
        )
        assert placed == {'a': 24}
        with pytest.raises(exception.NotEnoughHostsAvailable, match='24$'):
            place_instances(
                make_index(few), few, WINDOW, {'VCPU': 1}, 25, None
            )

    def test_the_largest_slot_is_refused_for_want_of_room(self):
        slot = {**SLOT, 'MEMORY_MB': ext.AMOUNT_LIMIT}
        with pytest.raises(exception.NotEnoughHostsAvailable):
            place_instances(
                make_index(HOSTS), HOSTS, WINDOW, slot, 2**31 - 1, None
            )


class TestPlace:
    def place(self, index, demand, kept=(), hosts=HOSTS, extra=NONE):
        ids = map('new-{}'.format, itertools.count())
        wanted = Reservation('mine', 'lease', 'pending', demand)
        candidates = Catalog(index, hosts).candidates(
            wanted, 'p', kept=[each.host for each in kept]
        )
        return host_selection.place(
            room(index, hosts, WINDOW, 'mine', extra=extra), candidates,
            wanted, kept, lambda: next(ids),
        )

    def test_whole_hosts(self):
        placed = self.place(
            make_index(HOSTS),
            Hosts(
                1, 2,
                '["in", "$hypervisor_hostname",'
                ' "b.example.org", "c.example.org"]',
                '["!=", "$vcpus", "0"]',
            ),
        )
        assert placed == [
            Allocation(f'new-{n}', 'mine', name, 10, 20, {}, whole=True)
            for n, name in enumerate('bc')
        ]

    @pytest.mark.parametrize(
        'field', ['hypervisor_properties', 'resource_properties']
    )
    def test_either_field_chooses_hosts(self, field):
        wanted = '["==", "$hypervisor_hostname", "c.example.org"]'
        placed = self.place(make_index(HOSTS), Hosts(1, 4, **{field: wanted}))
        assert [a.host for a in placed] == ['c']

    def test_instances(self):
        placed = self.place(
            make_index(HOSTS),
            Slots({'VCPU': 2, 'MEMORY_MB': 4, 'DISK_GB': 10}, 5),
        )
        assert placed == [
            Allocation(
                'new-0', 'mine', 'a', 10, 20,
                {'VCPU': 8, 'MEMORY_MB': 16, 'DISK_GB': 40},
            ),
            Allocation(
                'new-1', 'mine', 'b', 10, 20,
                {'VCPU': 2, 'MEMORY_MB': 4, 'DISK_GB': 10},
            ),
        ]

    def test_own_allocations_are_looked_past_and_keep_their_ids(self):
        index = make_index(HOSTS, ('mine', 'c', 10, 15, None))
        held = Allocation('old', 'mine', 'c', 10, 15, whole=True)
        placed = self.place(index, Hosts(4, 4), [held])
        assert [(a.host, a.id) for a in placed] == [
            ('c', 'old'), ('a', 'new-0'), ('b', 'new-1'), ('d', 'new-2'),
        ]
        assert {(a.start, a.end) for a in placed} == {(10, 20)}

    def test_instances_keep_their_slots(self):
        held = [
            Allocation(
                'on-d', 'mine', 'd', 10, 20, {'VCPU': 2, 'MEMORY_MB': 4}
            ),
            Allocation(
                'on-b', 'mine', 'b', 10, 20, {'VCPU': 4, 'MEMORY_MB': 8}
            ),
        ]
        index = make_index(
            HOSTS, ('mine', 'd', 10, 20, (2, 4, 0)),
            ('mine', 'b', 10, 20, (4, 8, 0)),
        )
        placed = self.place(
            index, Slots({'VCPU': 2, 'MEMORY_MB': 4, 'DISK_GB': 0}, 4), held
        )
        assert {(a.id, a.amounts['VCPU']) for a in placed} == {
            ('on-d', 4), ('on-b', 4),
        }

    def test_a_disabled_host_is_kept_but_takes_nothing_more(self):
        hosts = by_uuid(make_host('a', disabled=True), make_host('b'))
        index = make_index(hosts, ('mine', 'a', 10, 20, (4, 8, 0)))
        held = Allocation(
            'on-a', 'mine', 'a', 10, 20, {'VCPU': 4, 'MEMORY_MB': 8}
        )

        def place(amount, affinity, vcpus=2):
            slot = {'VCPU': vcpus, 'MEMORY_MB': 4, 'DISK_GB': 0}
            placed = self.place(
                index, Slots(slot, amount, affinity), [held], hosts
            )
            return {a.host: a.amounts['VCPU'] // vcpus for a in placed}

        assert place(1, None) == {'a': 1}
        assert place(2, None) == {'a': 2}
        assert place(5, None) == {'a': 2, 'b': 3}
        assert place(2, True) == {'a': 2}
        assert place(3, True) == {'b': 3}
        assert place(2, False) == {'a': 1, 'b': 1}
        # The host has no slot of the new size then.
        assert place(1, False, vcpus=6) == place(1, None, vcpus=6) == {'b': 1}
        with pytest.raises(exception.NotEnoughHostsAvailable):
            place(7, None)

    def test_a_disabled_host_is_kept_whole(self):
        hosts = by_uuid(make_host('a', disabled=True), make_host('b'))
        index = make_index(hosts, ('mine', 'a', 10, 20, None))
        held = Allocation('old', 'mine', 'a', 10, 20, whole=True)
        placed = self.place(index, Hosts(1, 2), [held], hosts)
        assert [(a.host, a.id) for a in placed] == [
            ('a', 'old'), ('b', 'new-0')
        ]

    @pytest.mark.row('F22')
    def test_a_flavor_is_placed_by_all_that_it_asks(self):
        hosts = by_uuid(
            make_host('a'), make_host('b', gpus=2), make_host('c', gpus=8)
        )
        gpus = ext.TimelineIndex(['CUSTOM_GPU'])
        gpus.apply([('capacity', 'b', [2]), ('capacity', 'c', [8])])
        gpus.apply([('add', 'x', 'other', 'c', 19, 30, [5], False)])
        placed = self.place(
            make_index(hosts), Slots({'VCPU': 1, 'CUSTOM_GPU': 2}, 2),
            hosts=hosts, extra={'CUSTOM_GPU': gpus},
        )
        assert {a.host: a.amounts for a in placed} == {
            'b': {'VCPU': 1, 'CUSTOM_GPU': 2},
            'c': {'VCPU': 1, 'CUSTOM_GPU': 2},
        }

    def test_what_no_host_has_has_no_room(self):
        for resources in (
            {'CUSTOM_GPU': 1},
            {'VCPU': 1, 'CUSTOM_GPU': 1},
            {'VCPU': 1 << 40},
        ):
            with pytest.raises(exception.NotEnoughHostsAvailable):
                self.place(make_index(HOSTS), Slots(resources))

    def test_a_bad_requirement_names_its_field(self):
        with pytest.raises(exception.InvalidInput) as caught:
            self.place(make_index(HOSTS), Hosts(1, 1, '["x"]'))
        assert caught.value.field == 'hypervisor_properties'

    def test_an_unknown_resource_type_is_refused(self):
        with pytest.raises(exception.InvalidInput) as caught:
            self.place(make_index(HOSTS), Other('x', {'amount': 1}))
        assert caught.value.field == 'resource_type'


# The reference tries every minute of the window and every distribution.

TIMES = 8
MINUTE = 60
CLASSES = (*inventory.RESOURCE_CLASSES, 'CUSTOM_GPU')
NAMES = 'abc'
ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(['mine', 'other']), st.sampled_from(NAMES),
        st.integers(0, TIMES - 1), st.integers(1, TIMES),
        st.none()
        | st.tuples(
            st.integers(0, 4), st.integers(0, 4), st.integers(0, 1),
            st.integers(0, 2),
        ).filter(any)
        | st.just((0, 0, 0, 1)),
    ),
    max_size=8,
)
WINDOWS = st.tuples(
    st.integers(0, TIMES - 1), st.integers(1, TIMES)
).filter(lambda w: w[0] < w[1])
ROOMS = st.fixed_dictionaries({
    name: st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3))
    for name in NAMES
})
# Cleaning times of hosts, and a default: mostly the same.
CLEANING = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3)),
    st.integers(0, 3),
)
SETTINGS = hypothesis.settings(max_examples=200, deadline=None)


class IndexAndLists:
    """An index of entries that fit, and the same entries as lists.

    The fourth amount is of CUSTOM_GPU, which not every host has. Times are in
    minutes.
    """

    def __init__(self, rooms, entries, cleaning):
        own, otherwise = cleaning
        self.cleaning = {name: own.get(name, otherwise) for name in rooms}
        self.cleaning_time = otherwise * MINUTE
        self.hosts = by_uuid(
            *(
                make_host(name, *room, gpus=gpus, cleaning_time=own.get(name))
                for name, (*room, gpus) in rooms.items()
            )
        )
        self.index = make_index(self.hosts)
        self.gpus = ext.TimelineIndex(['CUSTOM_GPU'])
        self.gpus.apply([
            ('capacity', name, [gpus])
            for name, (*_, gpus) in rooms.items() if gpus
        ])
        self.extra = {'CUSTOM_GPU': self.gpus}
        self.entries = []
        for n, entry in enumerate(entries):
            self.try_to_add(str(n), *entry)

    def try_to_add(self, id, owner, on, start, end, amounts):
        if start >= end:
            return
        start, end = start * MINUTE, end * MINUTE
        beside = [
            e for e in self.entries
            if e[2] == on and e[3] < end and start < e[4]
        ]
        if beside and (amounts is None or any(e[5] is None for e in beside)):
            return
        try:
            self.add(id, owner, on, start, end, amounts)
        except (ext.OverCapacity, ext.UnknownHost):
            return
        self.entries.append((id, owner, on, start, end, amounts))

    def add(self, id, owner, on, start, end, amounts):
        *main, gpus = amounts or (None, 0)
        if gpus:
            self.gpus.apply(
                [('add', id, owner, on, start, end, [gpus], False)]
            )
        if amounts is None or any(main):
            try:
                self.index.apply([
                    add(id, owner, on, start, end, amounts and main)
                ])
            except ext.OverCapacity:
                if gpus:
                    self.gpus.apply([('remove', id)])
                raise

    def others(self, name):
        return [e for e in self.entries if e[1] != 'mine' and e[2] == name]

    def wide(self, name, span):
        """Return a window with the cleaning time of a host."""
        seconds = self.cleaning[name] * MINUTE
        return max(0, span.start - seconds), span.end + seconds

    def over(self, name, span):
        start, end = self.wide(name, span)
        return [e for e in self.others(name) if e[3] < end and start < e[4]]

    def run(self, name, span):
        """Return how long a host is free around a window, without GPUs."""
        start, end = self.wide(name, span)
        others = [
            e for e in self.others(name) if e[5] is None or any(e[5][:3])
        ]
        begin = max((e[4] for e in others if e[4] <= start), default=0)
        until = min(
            (e[3] for e in others if e[3] >= end), default=window.FOREVER
        )
        return until - begin

    def rank(self, name, gpus=0):
        """Return what decides first between hosts, the least is preferred.

        :param gpus: how many GPUs are asked for on each host
        """
        held = self.hosts[name].inventory.get('CUSTOM_GPU')
        unasked = held.capacity if held and not gpus else 0
        return unasked, self.cleaning[name]

    def free(self, name, span):
        return not self.over(name, span)

    def room(self, name, span, slot, amount):
        """Return how many slots fit, by trying one more at each minute."""
        taking = self.over(name, span)
        if any(e[5] is None for e in taking):
            return 0
        held = self.hosts[name].inventory
        capacity = [held[c].capacity if c in held else 0 for c in CLASSES]
        wanted = [slot[c] for c in CLASSES]

        def fits(count, at):
            now = [e[5] for e in taking if e[3] <= at < e[4]]
            return all(
                not w or sum(e[i] for e in now) + count * w <= capacity[i]
                for i, w in enumerate(wanted)
            )

        count = 0
        while count < amount and all(
            fits(count + 1, at) for at in range(*self.wide(name, span), MINUTE)
        ):
            count += 1
        return count

    def commit(self, allocations):
        """Replace the current entries; raise OverCapacity if refused."""
        for index in (self.index, self.gpus):
            index.apply([
                ('remove', e[0])
                for e in self.entries if e[1] == 'mine' and e[0] in index
            ])
        for name, span, amounts in allocations:
            self.add(
                f'new-{name}', 'mine', name, span.start, span.end, amounts
            )


@pytest.mark.row('F25')
@SETTINGS
@hypothesis.given(
    ROOMS, ENTRIES, CLEANING, WINDOWS, st.integers(1, 4), st.integers(0, 2),
    st.lists(st.sampled_from(NAMES), unique=True),
)
def test_hosts_as_brute_force(
    rooms, entries, cleaning, span, minimum, more, kept
):
    world = IndexAndLists(rooms, entries, cleaning)
    span = Window(*(MINUTE * at for at in span))
    maximum = minimum + more
    free = {name for name in world.hosts if world.free(name, span)}

    def place():
        return place_hosts(
            world.index, world.hosts, span, minimum, maximum, kept, 'mine',
            world.cleaning_time, extra=world.extra,
        )

    if len(free) < minimum:
        with pytest.raises(exception.NotEnoughHostsAvailable):
            place()
        return
    placed = place()
    still = [name for name in kept if name in free]
    rest = sorted(
        (name for name in world.hosts if name in free and name not in still),
        key=lambda name: (*world.rank(name), world.run(name, span)),
    )
    assert placed == (still + rest)[:maximum]
    world.commit([(name, span, None) for name in placed])


@pytest.mark.row('F19', 'F25')
@SETTINGS
@hypothesis.given(
    ROOMS, ENTRIES, CLEANING, WINDOWS,
    st.fixed_dictionaries({
        'VCPU': st.integers(0, 3), 'MEMORY_MB': st.integers(0, 3),
        'DISK_GB': st.integers(0, 30), 'CUSTOM_GPU': st.integers(0, 2),
    }).filter(lambda slot: any(slot.values())),
    st.integers(1, 8), st.sampled_from([True, False, None]),
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3))
)
def test_instances_as_brute_force(
    rooms, entries, cleaning, span, slot, amount, affinity, kept
):
    world = IndexAndLists(rooms, entries, cleaning)
    span = Window(*(MINUTE * at for at in span))
    room = {name: world.room(name, span, slot, amount) for name in world.hosts}

    def spread(counts):
        """Tell whether counts per host are a valid distribution of the amount.
        """
        used = [c for c in counts if c]
        return sum(counts) == amount and {
            True: len(used) == 1,
            False: all(c == 1 for c in used),
            None: True,
        }[affinity]

    possible = any(
        spread(counts)
        for counts in itertools.product(*(range(r + 1) for r in room.values()))
    )

    def place():
        return place_instances(
            world.index, world.hosts, span, slot, amount, affinity, kept,
            'mine', world.cleaning_time, extra=world.extra,
        )

    if not possible:
        with pytest.raises(exception.NotEnoughHostsAvailable):
            place()
        return
    placed = place()
    assert spread(list(placed.values()))
    assert all(0 < count <= room[name] for name, count in placed.items())
    still = {name: min(kept.get(name, 0), room[name]) for name in room}
    check_kept(placed, still, room, amount, affinity)
    ranks = {name: world.rank(name, slot['CUSTOM_GPU']) for name in room}
    check_order(placed, still, room, amount, affinity, ranks)
    world.commit([
        (name, span, [count * slot[c] for c in CLASSES])
        for name, count in placed.items()
    ])


def check_kept(placed, still, room, amount, affinity):
    """Check that current hosts are given up only if they do not fit."""
    if affinity:
        if any(still[name] and room[name] >= amount for name in room):
            assert all(still[name] for name in placed)
    elif affinity is False:
        kept = {name for name in still if still[name]}
        assert len(kept & set(placed)) == min(len(kept), amount)
    elif sum(still.values()) <= amount:
        assert all(placed.get(name, 0) >= still[name] for name in still)
    else:
        assert all(placed[name] <= still[name] for name in placed)


def check_order(placed, still, room, amount, affinity, ranks):
    """Check that new hosts are those of the least rank, if possible."""
    for name in placed:
        if still[name]:
            continue
        for other in room:
            if ranks[other] < ranks[name]:
                full = {
                    True: room[other] < amount,
                    False: placed.get(other, 0) == min(room[other], 1),
                    None: placed.get(other, 0) == room[other],
                }[affinity]
                assert full
