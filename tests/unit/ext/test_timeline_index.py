# SPDX-License-Identifier: Apache-2.0
"""The behaviour of the timeline index, for both implementations."""

import array
import importlib
import inspect
import itertools
import os
import pickle
import random
import sys
import threading
import types

import pytest

from blazar_sched.ext import errors
from blazar_sched.ext import timeline_index

FOREVER = errors.FOREVER
LAST = errors.TIME_LIMIT - 1
LIMIT = errors.AMOUNT_LIMIT
VCPU = ('VCPU',)


def add(entry_id, host, start, end, *amounts, owner='alice'):
    return ('add', entry_id, owner, host, start, end, amounts, False)


def whole(entry_id, host, start, end, classes=1, owner='alice'):
    return ('add', entry_id, owner, host, start, end, (0,) * classes, True)


def steps(index, host):
    """Return the timeline of a host as {time: sums}."""
    for name, _, times, sums in index.dump()['hosts']:
        if name == host:
            return dict(zip(times, sums, strict=True))
    raise KeyError(host)


class Refusals:
    """A context in which a call is refused and the index stays the same."""

    def __init__(self, index, error, *args):
        self.index = index
        self.raises = pytest.raises(error)
        self.args = args

    def __enter__(self):
        self.before = self.index.dump()
        self.info = self.raises.__enter__()

    def __exit__(self, *exc):
        caught = self.raises.__exit__(*exc)
        assert self.info.value.args == self.args
        assert self.index.dump() == self.before
        self.index.check()
        return caught


class TimelineIndexTests:
    """The tests of the behaviour; a subclass names the implementation."""

    @pytest.fixture
    def index(self, index_class):
        """Two hosts, of 8 and of 4 VCPU."""
        index = index_class(VCPU)
        index.apply([('capacity', 'big', [8]), ('capacity', 'small', [4])])
        return index

    @pytest.fixture
    def full(self, index):
        """The same hosts with an entry of either kind."""
        index.apply([add('a', 'big', 10, 20, 3), whole('w', 'small', 30, 40)])
        return index

    # Creation

    @pytest.mark.parametrize(
        'names', [(), ('VCPU', 'VCPU'), ('',), (1,), (None,)]
    )
    def test_unusable_resource_classes(self, index_class, names):
        with pytest.raises(errors.InvalidName, match='resource_classes'):
            index_class(names)

    def test_new_index_is_empty(self, index_class):
        index = index_class(['VCPU', 'DISK_GB'])
        assert index.resource_classes == ('VCPU', 'DISK_GB')
        assert (len(index), index.hosts, index.generation) == (0, [], 0)
        assert index.fits(None, 0, 1, [1, 1]) == b''
        assert index.earliest(1, 1, 0, [1, 1]) is None
        assert index.pick(1, 0, 1, [1, 1]) == []
        index.check()

    def test_one_refusal_does_not_stop_the_next_call(self, index):
        with pytest.raises(errors.UnknownHost):
            index.apply([add('a', 'nobody', 0, 1, 1)])
        index.apply([add('a', 'big', 0, 1, 1)])
        assert len(index) == 1

    # Hosts

    def test_capacity_registers_and_resizes(self, index):
        assert index.hosts == ['big', 'small']
        assert index.fits(None, 0, 1, [5]) == b'\1\0'
        index.apply([('capacity', 'small', [5])])
        assert index.fits(None, 0, 1, [5]) == b'\1\1'

    def test_hosts_is_a_copy(self, index):
        index.hosts.clear()
        assert index.hosts == ['big', 'small']

    def test_dropped_host_gives_up_its_row(self, index):
        index.apply([
            ('capacity', 'third', [1]), add('a', 'third', 0, 9, 1),
            ('drop', 'big'),
        ])
        assert index.hosts == ['small', 'third']
        assert list(index.rows(['small', 'third', 'big'])) == [0, 1, -1]
        assert index.fits(None, 0, 9, [1]) == b'\1\0'
        index.apply([('remove', 'a')])
        assert index.fits(None, 0, 9, [1]) == b'\1\1'
        index.check()

    def test_host_with_entries_stays(self, full):
        with Refusals(full, errors.HostInUse, 'big'):
            full.apply([('drop', 'big')])

    def test_host_comes_back_empty_and_last(self, full):
        full.apply([
            ('remove', 'a'), ('drop', 'big'), ('capacity', 'big', [2]),
        ])
        assert full.hosts == ['small', 'big']
        assert full.fits(full.rows(['big']), 10, 20, [2]) == b'\1'

    @pytest.mark.parametrize('host', ['', None, 7, b'big'])
    def test_unusable_host_name(self, full, host):
        with Refusals(full, errors.InvalidName, 'host', host):
            full.apply([('capacity', host, [1])])

    @pytest.mark.parametrize('change', [
        ('drop', 'nobody'),
        ('add', 'b', 'alice', 'nobody', 0, 1, [1], False),
        ('move', 'a', 'nobody', 0, 1),
    ])
    def test_change_of_unknown_host(self, full, change):
        with Refusals(full, errors.UnknownHost, 'nobody'):
            full.apply([change])

    @pytest.mark.parametrize('host', [None, 7, ['big']])
    def test_host_that_is_no_name_is_unknown(self, full, host):
        with Refusals(full, errors.UnknownHost, host):
            full.apply([('drop', host)])

    def test_rows_and_back(self, index):
        rows = index.rows(['small', 'nobody', 'big', None])
        assert rows == array.array('i', [1, -1, 0, -1])
        assert index.row_keys([1, 0]) == ['small', 'big']

    @pytest.mark.parametrize('row', [-1, 2, True, 2**40, 'big'])
    def test_row_without_host(self, index, row):
        with Refusals(index, errors.UnknownHost, row):
            index.row_keys([row])

    # Entries

    def test_windows_are_half_open(self, index):
        index.apply([add('a', 'big', 10, 20, 8), add('b', 'big', 20, 30, 8)])
        assert steps(index, 'big') == {0: (0, 0, 0), 10: (8, 1, 0),
                                       30: (0, 0, 0)}
        rows = index.rows(['big'])
        assert index.fits(rows, 0, 10, [8]) == b'\1'
        assert index.fits(rows, 0, 11, [1]) == b'\0'
        assert index.fits(rows, 29, 31, [1]) == b'\0'
        assert index.fits(rows, 30, FOREVER, [8]) == b'\1'

    def test_lanes_of_each_kind_of_entry(self, index_class):
        index = index_class(['VCPU', 'DISK_GB'])
        index.apply([('capacity', 'h', [9, 9])])
        index.apply([
            add('takes', 'h', 0, 10, 2, 0), add('gives', 'h', 0, 10, -1, 0),
            add('both', 'h', 0, 10, -1, 3), whole('all', 'h', 0, 10, 2),
        ], force=True)
        assert steps(index, 'h')[0] == (0, 3, 2, 1)

    def test_since_ever_and_for_ever(self, index):
        index.apply([add('a', 'big', 0, FOREVER, 8)])
        assert steps(index, 'big') == {0: (8, 1, 0)}
        assert index.fits(None, LAST, FOREVER, [1]) == b'\0\1'

    def test_last_instant(self, index):
        index.apply([add('a', 'big', LAST - 1, LAST, 8)])
        assert index.fits(None, LAST - 1, LAST, [1]) == b'\0\1'
        assert index.fits(None, LAST, FOREVER, [1]) == b'\1\1'

    def test_remove_gives_back_all(self, full):
        full.apply([('remove', 'a'), ('remove', 'w')])
        assert len(full) == 0
        assert steps(full, 'big') == steps(full, 'small') == {0: (0, 0, 0)}
        assert full.dump()['owned'] == {}

    def test_removed_id_is_free_again(self, full):
        full.apply([('remove', 'a'), add('a', 'small', 0, 5, 1)])
        assert full.dump()['entries']['a'][1] == 'small'

    def test_move_to_another_window(self, full):
        full.apply([('move', 'a', 'big', 15, 25)])
        assert steps(full, 'big') == {0: (0, 0, 0), 15: (3, 1, 0),
                                      25: (0, 0, 0)}

    @pytest.mark.parametrize(('start', 'end'), [
        (10, 30), (5, 20), (5, 30), (12, 15), (10, 15), (15, 20), (20, 30),
        (1, 10), (40, FOREVER),
    ])
    def test_move_equals_remove_and_add(self, full, index_class, start, end):
        full.apply([('move', 'a', 'big', start, end)])
        other = index_class(VCPU)
        other.apply([('capacity', 'big', [8]), add('a', 'big', start, end, 3)])
        assert steps(full, 'big') == steps(other, 'big')
        full.check()

    def test_move_to_another_host(self, full):
        full.apply([('move', 'a', 'small', 10, 20)])
        assert full.peak(None, 10, 20) == array.array('q', [0, 0, 0, 3, 1, 0])
        full.apply([('drop', 'big')])
        assert full.hosts == ['small']

    def test_same_entry_again_changes_nothing(self, full):
        before = full.dump()
        full.apply([
            add('a', 'big', 10, 20, 3), ('move', 'a', 'big', 10, 20),
            ('capacity', 'big', [8]), whole('w', 'small', 30, 40),
        ])
        full.apply([])
        assert full.dump() == before

    @pytest.mark.parametrize('other', [
        add('a', 'big', 10, 20, 2), add('a', 'big', 10, 21, 3),
        add('a', 'big', 9, 20, 3), add('a', 'small', 10, 20, 3),
        add('a', 'big', 10, 20, 3, owner='bob'), whole('a', 'big', 10, 20),
    ])
    def test_id_used_for_something_else(self, full, other):
        with Refusals(full, errors.EntryExists, 'a'):
            full.apply([other])

    @pytest.mark.parametrize('entry_id', ['nobody', None, 7, ['a']])
    @pytest.mark.parametrize('rest', [('remove',), ('move', 'big', 0, 1)])
    def test_change_of_unknown_entry(self, full, entry_id, rest):
        kind, *window = rest
        with Refusals(full, errors.UnknownEntry, entry_id):
            full.apply([(kind, entry_id, *window)])

    @pytest.mark.parametrize('name', ['', None, 7, b'a', ['a']])
    def test_unusable_id_and_owner(self, full, name):
        with Refusals(full, errors.InvalidName, 'id', name):
            full.apply([('add', name, 'o', 'big', 0, 1, [1], False)])
        with Refusals(full, errors.InvalidName, 'owner', name):
            full.apply([('add', 'b', name, 'big', 0, 1, [1], False)])

    @pytest.mark.parametrize('change', [
        (), ('add',), ('remove',), ('remove', 'a', 'b'), ('vanish', 'a'),
        'remove', None, 7, ('drop', 'big', 1), ('capacity', 'big'),
        ('move', 'a', 'big', 1), ('add', 'b', 'o', 'big', 0, 1, [1]),
    ])
    def test_unknown_change(self, full, change):
        with Refusals(full, errors.InvalidChange, change):
            full.apply([change])

    def test_a_change_may_be_a_list(self, full):
        full.apply([['remove', 'a'], ['capacity', 'big', (1,)]])
        assert full.fits(None, 10, 20, [1]) == b'\1\1'

    BAD_TIMES = [-1, errors.TIME_LIMIT, 2**70, -2**70, True, 1.0, '1', None]

    @pytest.mark.parametrize('value', [*BAD_TIMES, FOREVER, FOREVER - 1])
    def test_unusable_start(self, full, value):
        with Refusals(full, errors.InvalidWindow, 'start', value):
            full.apply([add('b', 'big', value, FOREVER, 1)])
        with Refusals(full, errors.InvalidWindow, 'start', value):
            full.apply([('move', 'a', 'big', value, FOREVER)])

    @pytest.mark.parametrize('value', [
        *BAD_TIMES, FOREVER - 1, FOREVER + 1, float(FOREVER), 5, 4,
    ])
    def test_unusable_end(self, full, value):
        with Refusals(full, errors.InvalidWindow, 'end', value):
            full.apply([add('b', 'big', 5, value, 1)])
        with Refusals(full, errors.InvalidWindow, 'end', value):
            full.apply([('move', 'a', 'big', 5, value)])

    BAD_AMOUNTS = [True, False, 1.0, 1.5, '1', None, float('nan'), 2**31,
                   2**63, 2**80]

    @pytest.mark.parametrize('value', [*BAD_AMOUNTS, -2**31, -2**80])
    def test_unusable_amount(self, full, value):
        with pytest.raises(errors.InvalidAmount) as info:
            full.apply([add('b', 'big', 0, 1, value)])
        assert info.value.field == 'amounts'
        assert info.value.value is value
        full.check()

    @pytest.mark.parametrize('value', [*BAD_AMOUNTS, -1])
    def test_unusable_capacity(self, full, value):
        before = full.dump()
        with pytest.raises(errors.InvalidAmount, match='capacity'):
            full.apply([('capacity', 'big', [value])])
        with pytest.raises(errors.InvalidAmount, match='capacity'):
            full.apply([('capacity', 'new', [value])])
        assert full.dump() == before

    @pytest.mark.parametrize('values', [(), (1, 1), None, 7, 'VCPU'])
    def test_not_one_amount_per_class(self, full, values):
        change = ('add', 'b', 'o', 'big', 0, 1, values, False)
        with Refusals(full, errors.InvalidAmount, 'amounts', values):
            full.apply([change])
        with Refusals(full, errors.InvalidAmount, 'capacity', values):
            full.apply([('capacity', 'big', values)])
        with Refusals(full, errors.InvalidAmount, 'amounts', values):
            full.fits(None, 0, 1, values)

    def test_whole_host_has_no_amounts_and_others_have(self, full):
        with Refusals(full, errors.InvalidAmount, 'amounts', (1,)):
            full.apply([('add', 'b', 'o', 'big', 50, 51, [1], True)])
        with Refusals(full, errors.InvalidAmount, 'amounts', (0,)):
            full.apply([('add', 'b', 'o', 'big', 50, 51, [0], False)])

    @pytest.mark.parametrize('limit', [LIMIT, -LIMIT])
    def test_sum_at_the_limit_and_past_it(self, index, limit):
        sign = 1 if limit > 0 else -1
        index.apply([add('a', 'big', 10, 20, limit)], force=True)
        assert index.peak(None, 10, 11)[0] == limit
        with Refusals(index, errors.AmountOverflow, 'big', 'VCPU', 15):
            index.apply([add('b', 'big', 15, 30, sign)], force=True)
        index.apply([add('b', 'big', 15, 30, -sign)], force=True)
        index.apply([add('c', 'big', 15, 20, sign)], force=True)
        with Refusals(index, errors.AmountOverflow, 'big', 'VCPU', 15):
            index.apply([('remove', 'b')], force=True)

    def test_move_within_a_host_passes_no_limit_on_the_way(self, index):
        index.apply([
            add('a', 'big', 0, 20, LIMIT), add('b', 'big', 10, 20, -5),
            add('c', 'big', 10, 20, 5),
        ], force=True)
        index.apply([('move', 'b', 'big', 9, 20)], force=True)
        assert steps(index, 'big')[9] == (LIMIT - 5, 1, 0)

    # Batches

    def test_batch_is_undone_as_a_whole(self, full):
        batch = [
            ('capacity', 'new', [1]),
            add('b', 'new', 0, FOREVER, 1),
            ('move', 'b', 'big', 15, 16),
            ('remove', 'a'),
            ('remove', 'w'),
            ('drop', 'small'),
            ('capacity', 'small', [7]),
            ('capacity', 'small', [6]),
            add('w', 'small', 1, 2, 3, owner='bob'),
            ('capacity', 'big', [1]),
        ]
        with Refusals(full, errors.UnknownEntry, 'nobody'):
            full.apply([*batch, ('remove', 'nobody')])
        full.apply(batch)
        assert full.hosts == ['big', 'new', 'small']
        assert full.generation == 3
        full.check()

    def test_batch_that_fails_while_it_is_read(self, full):
        before = full.dump()

        def changes():
            yield ('remove', 'a')
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            full.apply(changes())
        assert full.dump() == before

    def test_generation_counts_calls_that_changed_something(self, index):
        assert index.generation == 1
        index.apply([add('a', 'big', 0, 1, 1), add('b', 'big', 0, 1, 1)])
        assert index.generation == 2
        index.apply([add('a', 'big', 0, 1, 1)])
        index.forget(0)
        assert index.generation == 2
        index.forget(1)
        assert index.generation == 3
        index.load([], [], [], [], [], [], [], [], [])
        assert index.generation == 4

    # Capacity

    def test_over_capacity_names_where_and_how_much(self, full):
        with Refusals(full, errors.OverCapacity, 'big', 'VCPU', 10, 1):
            full.apply([add('b', 'big', 0, 30, 6)])
        full.apply([add('b', 'big', 0, 30, 5)])
        with Refusals(full, errors.OverCapacity, 'big', 'VCPU', 12, 1):
            full.apply([add('c', 'big', 12, 30, 1)])

    def test_forced_over_capacity(self, full):
        full.apply([add('b', 'big', 0, 30, 6)], force=True)
        assert full.peak(None, 0, 30)[0] == 9
        full.check()

    def test_capacity_is_judged_after_the_whole_batch(self, full):
        full.apply([
            add('b', 'big', 10, 20, 8), ('remove', 'a'),
            add('c', 'small', 50, 60, 9), ('capacity', 'small', [9]),
        ])
        assert len(full) == 3

    def test_lowered_capacity_is_judged_over_all_time(self, full):
        with Refusals(full, errors.OverCapacity, 'big', 'VCPU', 10, 1):
            full.apply([('capacity', 'big', [2])])
        full.apply([('capacity', 'big', [2])], force=True)
        full.apply([add('b', 'big', 30, 40, 2)])

    def test_what_the_batch_did_not_make_worse_is_not_judged(
        self, index_class
    ):
        index = index_class(['VCPU', 'DISK_GB'])
        index.apply([('capacity', 'h', [4, 4]), ('capacity', 'i', [4, 4])])
        index.apply([
            add('a', 'h', 0, 20, 9, 0), add('b', 'h', 0, 20, 1, 1),
        ], force=True)
        index.apply([add('c', 'h', 0, 10, 0, 1)])       # another class
        index.apply([add('d', 'h', 20, 30, 4, 0)])      # another window
        index.apply([('capacity', 'h', [5, 4])])        # better than before
        index.apply([('capacity', 'h', [5, 3])])        # no less VCPU
        index.apply([('move', 'a', 'h', 0, 15)])        # shorter
        index.apply([('move', 'b', 'i', 0, 20)])        # away
        index.apply([('remove', 'a')])
        index.check()

    def test_entry_that_gives_back_is_judged_when_it_leaves(self, full):
        full.apply([
            add('gives', 'big', 10, 20, -2), add('b', 'big', 10, 20, 7),
        ])
        with Refusals(full, errors.OverCapacity, 'big', 'VCPU', 10, 2):
            full.apply([('remove', 'gives')])
        with Refusals(full, errors.OverCapacity, 'big', 'VCPU', 18, 2):
            full.apply([('move', 'gives', 'big', 10, 18)])

    @pytest.mark.parametrize(('change', 'at'), [
        (add('b', 'small', 0, 31, 1), 30),
        (whole('b', 'small', 39, 50), 39),
        (whole('b', 'big', 0, 50), 10),
        (('move', 'w', 'big', 15, 16), 15),
        (('move', 'a', 'small', 35, 36), 35),
    ])
    def test_whole_host_stands_alone(self, full, change, at):
        host = change[3] if change[0] == 'add' else change[2]
        with Refusals(full, errors.OverCapacity, host, 'whole', at, 1):
            full.apply([change])

    def test_whole_host_next_to_others(self, full):
        full.apply([
            add('b', 'small', 0, 30, 1), add('c', 'small', 40, 50, 1),
            whole('d', 'big', 20, 30), whole('e', 'big', 0, 10),
            add('f', 'small', 30, 40, -1),      # takes nothing
        ])
        assert len(full) == 7

    def test_what_fits_can_be_added(self, index_class):
        draw = random.Random(7)
        index = index_class(['VCPU', 'DISK_GB'])
        index.apply([('capacity', 'h', [6, 6])])
        added = refused = 0
        for i in range(400):
            start = draw.randrange(300)
            end = start + draw.randrange(1, 20)
            alone = draw.random() < 0.2
            amounts = [0, 0] if alone else [draw.randrange(4),
                                            draw.randrange(1, 4)]
            change = ('add', str(i), 'o', 'h', start, end, amounts, alone)
            if index.fits(None, start, end, amounts, whole=alone) == b'\1':
                index.apply([change])
                added += 1
            else:
                with pytest.raises(errors.OverCapacity):
                    index.apply([change])
                refused += 1
        assert added > 20 and refused > 20
        index.check()

    # Serialization

    def test_any_order_gives_the_same_steps(self, index_class):
        changes = [
            add('a', 'h', 0, 10, 2), add('b', 'h', 10, 20, 2),
            add('c', 'h', 5, 15, -1), whole('d', 'h', 20, FOREVER),
            add('e', 'h', 3, 10, 1), add('f', 'h', 10, 12, 1),
        ]
        forms = []
        for order in itertools.permutations(changes):
            index = index_class(VCPU)
            index.apply([('capacity', 'h', [9])])
            index.apply(order)
            forms.append(index.dump()['hosts'])
        assert forms.count(forms[0]) == len(forms)
        assert forms[0][0][2] == [0, 3, 5, 12, 15, 20]

    def test_add_and_remove_is_nothing(self, full):
        before = full.dump()['hosts']
        for start, end in itertools.combinations((0, 9, 10, 15, 20, 41), 2):
            full.apply([add('b', 'big', start, end, 2)])
            full.apply([('remove', 'b')])
            assert full.dump()['hosts'] == before

    # Bulk

    COLUMNS = {
        'hosts': ['h', 'i'], 'capacity': [4, 9, 5, 9], 'ids': ['a', 'b', 'c'],
        'owners': ['o', 'o', 'p'], 'rows': [0, 1, 0], 'starts': [0, 5, 5],
        'ends': [10, 20, FOREVER], 'amounts': [3, 0, 0, 0, -1, 1],
        'whole': [False, True, False],
    }

    def loaded(self, index_class, **columns):
        index = index_class(['VCPU', 'DISK_GB'])
        index.load(**self.COLUMNS | columns)
        return index

    def test_load_equals_apply(self, index_class):
        index = self.loaded(index_class)
        other = index_class(['VCPU', 'DISK_GB'])
        other.apply([
            ('capacity', 'h', [4, 9]), ('capacity', 'i', [5, 9]),
            add('a', 'h', 0, 10, 3, 0, owner='o'),
            whole('b', 'i', 5, 20, 2, owner='o'),
            add('c', 'h', 5, FOREVER, -1, 1, owner='p'),
        ])
        assert index.dump() == other.dump()
        index.check()

    def test_load_takes_buffers(self, index_class):
        columns = {
            'capacity': array.array('q', [4, 9, 5, 9]),
            'rows': array.array('i', [0, 1, 0]),
            'starts': array.array('I', [0, 5, 5]),
            'ends': memoryview(array.array('q', [10, 20, FOREVER])),
            'amounts': array.array('q', [3, 0, 0, 0, -1, 1]),
            'whole': b'\0\1\0',
        }
        index = self.loaded(index_class, **columns)
        assert index.dump() == self.loaded(index_class).dump()

    def test_load_replaces_everything(self, index_class):
        index = self.loaded(index_class)
        index.load(['j'], [1, 1], [], [], [], [], [], [], [])
        assert (index.hosts, len(index)) == (['j'], 0)
        assert index.dump()['owned'] == {}
        index.check()

    def test_load_does_not_judge(self, index_class):
        index = self.loaded(index_class, amounts=[30, 0, 0, 0, -1, 1])
        assert index.peak(None, 0, 1)[0] == 30

    def test_loaded_index_can_be_changed(self, index_class):
        index = self.loaded(index_class)
        index.apply([('remove', i) for i in 'abc'])
        index.apply([('drop', 'h'), ('drop', 'i')])
        assert index.hosts == []

    @pytest.mark.parametrize(('column', 'value', 'error', 'args'), [
        ('hosts', ['h', 'h'], errors.InvalidName, ('hosts', 'h')),
        ('hosts', ['h', ''], errors.InvalidName, ('hosts', '')),
        ('hosts', ['h'], errors.InvalidColumn, ('capacity', 4, 2)),
        ('capacity', [4, 9, 5, -1], errors.InvalidAmount, ('capacity', -1)),
        ('capacity', [4, 9, 5, 1.0], errors.InvalidAmount, ('capacity', 1.0)),
        ('capacity', [4, 9, 5, 2**70], errors.InvalidAmount,
         ('capacity', 2**70)),
        ('ids', ['a', 'b', 'a'], errors.EntryExists, ('a',)),
        ('ids', ['a', 'b', 7], errors.InvalidName, ('id', 7)),
        ('ids', ['a', 'b'], errors.InvalidColumn, ('amounts', 6, 4)),
        ('owners', ['o', 'o', ''], errors.InvalidName, ('owner', '')),
        ('owners', ['o', 'o'], errors.InvalidColumn, ('owners', 2, 3)),
        ('rows', [0, 1, 2], errors.UnknownHost, (2,)),
        ('rows', [0, 1, -1], errors.UnknownHost, (-1,)),
        ('rows', [0, 1, True], errors.UnknownHost, (True,)),
        ('rows', [0, 1], errors.InvalidColumn, ('rows', 2, 3)),
        ('starts', [0, 5, -1], errors.InvalidWindow, ('start', -1)),
        ('starts', [0, 5, 1.5], errors.InvalidWindow, ('start', 1.5)),
        ('starts', [0], errors.InvalidColumn, ('starts', 1, 3)),
        ('ends', [10, 5, 9], errors.InvalidWindow, ('end', 5)),
        ('ends', [10, 20, 2**33], errors.InvalidWindow, ('end', 2**33)),
        ('ends', [10, 20, '9'], errors.InvalidWindow, ('end', '9')),
        ('ends', [], errors.InvalidColumn, ('ends', 0, 3)),
        ('amounts', [3, 0, 0, 0, 2**31, 0], errors.InvalidAmount,
         ('amounts', 2**31)),
        ('amounts', [3, 0, 0, 0, True, 1], errors.InvalidAmount,
         ('amounts', True)),
        ('amounts', [3, 0, 0, 0, 0, 0], errors.InvalidAmount,
         ('amounts', (0, 0))),
        ('amounts', [LIMIT, 0, 0, 0, LIMIT, 0], errors.AmountOverflow,
         ('h', 'VCPU', 5)),
        ('whole', [False, False, False], errors.InvalidAmount,
         ('amounts', (0, 0))),
        ('whole', b'', errors.InvalidColumn, ('whole', 0, 3)),
    ])
    def test_load_refuses(self, index_class, column, value, error, args):
        index = self.loaded(index_class)
        with Refusals(index, error, *args):
            index.load(**self.COLUMNS | {column: value})

    def test_load_sums_pass_no_limit_on_the_way(self, index_class):
        index = self.loaded(
            index_class, rows=[0, 1, 0], ends=[10, 20, FOREVER],
            amounts=[LIMIT, 0, 0, 0, -LIMIT, 1],
        )
        assert steps(index, 'h')[5] == (0, 1, 2, 0)

    def test_what_an_owner_holds(self, full):
        full.apply([
            add('b', 'small', 5, FOREVER, 1, owner='bob'),
            add('c', 'big', 50, 60, 2),
        ], force=True)
        assert sorted(full.held('alice')) == [
            ('a', 'big', 10, 20, (3,), False),
            ('c', 'big', 50, 60, (2,), False),
            ('w', 'small', 30, 40, (0,), True),
        ]
        assert full.held('bob') == [('b', 'small', 5, FOREVER, (1,), False)]
        full.apply([('remove', 'b')])
        assert full.held('bob') == full.held('nobody') == []

    def test_whether_there_is_an_entry(self, full):
        assert 'a' in full
        full.apply([('remove', 'a')])
        assert 'a' not in full
        assert None not in full

    def test_load_in_parts_with_one_that_fails(self, full):
        def parts():
            yield ['x'], ['bob'], [0], [5], [6], [1], [False]
            assert full.held('bob') == []
            yield ['x'], ['bob'], [0], [7], [8], [1], [False]

        with Refusals(full, errors.EntryExists, 'x'):
            full.load_parts(['big'], [8], parts())

    def test_forget_drops_what_is_over(self, full):
        full.apply([add('b', 'big', 5, 21, 1), add('c', 'big', 0, 5, 1)])
        assert full.forget(20) == 2
        assert sorted(full.dump()['entries']) == ['b', 'w']
        assert steps(full, 'big') == {0: (0, 0, 0), 5: (1, 1, 0),
                                      21: (0, 0, 0)}
        full.check()

    def test_forget_changes_no_answer_from_then_on(self, index_class):
        draw = random.Random(11)
        index = index_class(VCPU)
        index.apply([('capacity', h, [5]) for h in ('h', 'i', 'j')])
        changes = []
        for i in range(60):
            start = draw.randrange(90)
            changes.append(add(
                str(i), draw.choice('hij'), start,
                start + draw.randrange(1, 30), draw.choice((-1, 1, 2, 3)),
            ))
        index.apply(changes, force=True)

        def answers():
            return [
                (
                    index.fits(None, start, end, [2]),
                    index.peak(None, start, end),
                    index.horizon(None, start, [2]),
                    index.earliest(2, end - start, start, [2]),
                    sorted(index.pick(3, start, end, [2])),
                    index.levels('h', start, end, end - start),
                )
                for start, end in itertools.combinations(range(40, 99, 7), 2)
            ]

        before = answers()
        assert index.forget(40) > 5
        assert answers() == before

    @pytest.mark.parametrize('before', [-1, FOREVER, 1.0, True, None])
    def test_forget_before_no_time(self, full, before):
        with Refusals(full, errors.InvalidWindow, 'before', before):
            full.forget(before)

    # Queries

    def test_rows_choose_and_order_the_answers(self, full):
        rows = full.rows(['small', 'big'])
        assert full.fits(rows, 10, 20, [6]) == b'\0\0'
        assert full.fits(rows, 10, 20, [4]) == b'\1\1'
        assert full.fits(rows[:0], 10, 20, [4]) == b''
        assert full.peak(rows[1:], 10, 20) == array.array('q', [3, 1, 0])
        assert full.pick(2, 50, 60, [1], rows=rows) == ['small', 'big']
        assert full.earliest(2, 10, 50, [1], rows=rows) == (
            50, ['small', 'big']
        )

    FOR_ANY_HOST = [
        lambda index, rows: index.fits(rows, 0, 1, [1]),
        lambda index, rows: index.peak(rows, 0, 1),
        lambda index, rows: index.horizon(rows, 0, [1]),
    ]
    QUERIES = [
        *FOR_ANY_HOST,
        lambda index, rows: index.earliest(1, 1, 0, [1], rows),
        lambda index, rows: index.pick(1, 0, 1, [1], rows),
        lambda index, rows: index.runs(1, 0, [1], rows),
        lambda index, rows: index.edges(rows, 0, 1),
    ]

    @pytest.mark.parametrize('query', QUERIES)
    @pytest.mark.parametrize('row', [-1, -2, 2])
    def test_query_of_unknown_row(self, full, query, row):
        if row == -1 and query in self.FOR_ANY_HOST:
            query(full, array.array('i', [0, row]))
            return
        with Refusals(full, errors.UnknownHost, row):
            query(full, array.array('i', [0, row]))

    @pytest.mark.parametrize('whole', [False, True])
    @pytest.mark.parametrize('now', [0, 10])
    def test_host_without_a_row_has_room(self, full, whole, now):
        full.advance(now)
        [big] = full.rows(['big'])
        rows = array.array('i', [-1, big, -1])
        amounts = None if whole else [10**6]
        room = array.array('q', [0, 2 * 10**6, -5])
        for headroom in None, room:
            [fits] = full.fits(rows[1:2], 10, 20, amounts, headroom and (
                headroom[1:2]
            ), whole)
            assert full.fits(
                rows, 10, 20, amounts, headroom, whole, ignore='nobody'
            ) == bytes([1, fits, 1])
            [seconds] = full.horizon(rows[1:2], 10, amounts, headroom and (
                headroom[1:2]
            ), whole)
            assert list(full.horizon(rows, 10, amounts, headroom, whole)) == [
                errors.FOREVER, seconds, errors.FOREVER
            ]
        peak = list(full.peak(rows[1:2], 10, 20))
        assert list(full.peak(rows, 10, 20)) == [0, 0, 0, *peak, 0, 0, 0]
        assert full.fits(rows[:1], 10, 20, amounts, None, whole) == b'\1'

    @pytest.mark.parametrize('query', QUERIES)
    def test_rows_are_c_ints(self, full, query):
        with pytest.raises(TypeError):
            query(full, [0])
        with pytest.raises(ValueError):
            query(full, array.array('q', [0]))

    def test_class_that_is_not_asked_for_never_blocks(self, index_class):
        index = index_class(['VCPU', 'DISK_GB'])
        index.apply([('capacity', 'h', [4, 4])])
        index.apply([add('a', 'h', 0, 10, 9, 1)], force=True)
        assert index.fits(None, 0, 10, [0, 3]) == b'\1'
        assert index.fits(None, 0, 10, [0, 4]) == b'\0'
        assert index.fits(None, 0, 10, [1, 0]) == b'\0'
        assert index.fits(None, 0, 10, [0, 0]) == b'\1'

    def test_whole_host_entry_blocks_every_request(self, full):
        rows = full.rows(['small'])
        assert full.fits(rows, 39, 40, [0]) == b'\0'
        assert full.fits(rows, 0, 30, [4]) == b'\1'
        assert full.fits(rows, 39, 41, None, whole=True) == b'\0'
        assert full.fits(rows, 40, 41, None, whole=True) == b'\1'

    def test_whole_host_request_wants_it_alone(self, full):
        full.apply([add('gives', 'small', 0, 5, -1)])
        assert full.fits(None, 0, 11, None, whole=True) == b'\0\1'
        assert full.fits(None, 0, 10, [99], whole=True) == b'\1\1'

    def test_steps_are_signed(self, full):
        full.apply([add('gives', 'big', 12, 20, -5)])
        assert full.peak(None, 12, 20)[0] == -2
        assert full.fits(full.rows(['big']), 12, 20, [10]) == b'\1'
        assert full.fits(full.rows(['big']), 11, 20, [6]) == b'\0'

    def test_headroom_takes_the_place_of_capacity(self, full):
        rows = full.rows(['small', 'big'])
        room = array.array('q', [100, 2])
        assert full.fits(rows, 10, 20, [99], room) == b'\1\0'
        assert full.fits(None, 0, 10, [2], room) == b'\1\1'
        room = array.array('q', [-1, 2**62])
        assert full.fits(rows, 10, 20, [1], room) == b'\0\1'
        assert full.horizon(rows, 10, [1], room)[1] == FOREVER

    @pytest.mark.parametrize('length', [0, 1, 3])
    def test_headroom_of_another_length(self, full, length):
        room = array.array('q', [1] * length)
        with Refusals(full, errors.InvalidAmount, 'headroom', room):
            full.fits(None, 0, 1, [1], room)
        with Refusals(full, errors.InvalidAmount, 'headroom', room):
            full.horizon(None, 0, [1], room)

    def test_headroom_is_64_bit(self, full):
        with pytest.raises(ValueError):
            full.fits(None, 0, 1, [1], array.array('i', [1, 1]))
        with pytest.raises(TypeError):
            full.fits(None, 0, 1, [1], [1, 1])

    def test_rows_are_contiguous(self, full):
        rows = memoryview(array.array('i', [0, 1, 0, 1]))[::2]
        with pytest.raises(BufferError):
            full.fits(rows, 0, 9, [1])
        room = memoryview(array.array('q', [1, 1, 1, 1]))[::2]
        with pytest.raises(BufferError):
            full.fits(None, 0, 9, [1], room)

    def test_ignored_owner_is_looked_past(self, full):
        full.apply([
            add('b', 'big', 15, 25, 5, owner='bob'), add('c', 'big', 5, 12, 1),
        ])
        rows = full.rows(['big'])
        assert full.fits(rows, 0, 40, [4]) == b'\0'
        assert full.fits(rows, 0, 40, [5], ignore='bob') == b'\0'
        assert full.fits(rows, 0, 40, [4], ignore='bob') == b'\1'
        assert full.fits(None, 0, 40, [3], ignore='alice') == b'\1\1'
        assert full.peak(rows, 0, 40, ignore='alice')[0] == 5
        assert full.horizon(None, 0, [3], ignore='alice')[1] == FOREVER
        assert full.earliest(
            2, 40, 0, None, whole=True, ignore='alice'
        ) == (25, ['big', 'small'])
        assert full.pick(
            2, 0, 15, None, whole=True, ignore='alice', order='first'
        ) == ['big', 'small']
        assert full.fits(rows, 0, 40, [4], ignore='nobody') == b'\0'
        full.check()

    def test_several_ignored_owners_are_looked_past(self, full):
        full.apply([
            add('b', 'big', 15, 25, 5, owner='bob'),
            add('c', 'big', 5, 12, 1, owner='carol'),
        ])
        rows = full.rows(['big'])
        both = 'carol', 'bob', 'nobody'
        assert full.fits(rows, 0, 40, [5], ignore='bob') == b'\0'
        assert full.fits(rows, 0, 40, [5], ignore=both) == b'\1'
        # Each owner is ignored once.
        assert full.peak(rows, 0, 40, ignore=both * 2)[0] == 3
        assert full.peak(rows, 0, 40, ignore=()) == full.peak(rows, 0, 40)
        full.check()

    def test_horizon(self, full):
        assert list(full.horizon(None, 0, [5])) == [FOREVER, 0]
        assert list(full.horizon(None, 0, [6])) == [10, 0]
        assert list(full.horizon(None, 10, [6])) == [0, 0]
        assert list(full.horizon(None, 19, [6])) == [0, 0]
        assert list(full.horizon(None, 20, [4])) == [FOREVER, 10]
        assert list(full.horizon(None, 3, None, whole=True)) == [7, 27]
        assert full.horizon(None, LAST, [1])[0] == FOREVER

    def test_earliest(self, full):
        # big is taken over [10, 20), small over [30, 40).
        def earliest(*args, **kwargs):
            return full.earliest(*args, None, whole=True, **kwargs)

        assert earliest(1, 5, 3) == (3, ['big'])
        assert earliest(1, 8, 3) == (3, ['small'])
        assert earliest(2, 7, 3) == (3, ['big', 'small'])
        assert earliest(2, 8, 3) == (20, ['big', 'small'])
        assert earliest(2, 11, 3) == (40, ['big', 'small'])
        assert earliest(2, FOREVER, 3) == (40, ['big', 'small'])
        assert earliest(1, FOREVER, 3) == (20, ['big'])
        assert earliest(3, 1, 3) is None
        assert earliest(2, 8, 3, not_after=19) is None
        assert earliest(2, 8, 3, not_after=20) == (20, ['big', 'small'])
        assert earliest(1, 1, 3, not_after=2) is None
        assert earliest(0, 1, 3) == (3, [])
        assert earliest(2, LAST, LAST) == (LAST, ['big', 'small'])
        assert full.earliest(1, 1, 0, [9]) is None

    def test_earliest_far_away(self, index):
        year = 365 * 24 * 3600
        index.apply([
            whole('a', 'big', 0, 30 * year), whole('b', 'small', 5, 40 * year)
        ])
        assert index.earliest(1, year, 3, [1]) == (30 * year, ['big'])
        assert index.earliest(2, 1, 3, [1]) == (40 * year, ['big', 'small'])
        assert index.earliest(2, 1, 3, [1], not_after=40 * year - 1) is None

    def test_runs(self, full):
        # big is taken over [10, 20), small over [30, 40).
        def runs(*args, **kwargs):
            found = full.runs(*args, None, whole=True, **kwargs)
            return list(zip(*found, strict=True))

        assert runs(1, 3) == [(3, 10), (3, 30), (20, FOREVER), (40, FOREVER)]
        assert runs(8, 3) == [(3, 30), (20, FOREVER), (40, FOREVER)]
        assert runs(FOREVER, 3) == [(20, FOREVER), (40, FOREVER)]
        assert runs(1, 12, not_after=20) == [(12, 30), (20, FOREVER)]
        assert runs(1, 3, rows=full.rows(['small'])) == [
            (3, 30), (40, FOREVER)
        ]
        assert runs(1, LAST) == [(LAST, FOREVER)] * 2
        assert full.runs(1, 0, [9]) == (array.array('q'), array.array('q'))

    def test_edges(self, full):
        full.apply([
            add('b', 'small', 20, 30, 1), add('c', 'big', 10, FOREVER, 1),
        ])

        def edges(hosts, start, end):
            return [
                list(times)
                for times in full.edges(full.rows(hosts), start, end)
            ]

        assert edges(['big', 'small'], 0, FOREVER) == [
            [10, 20, 30], [20, 30, 40]
        ]
        assert edges(['small'], 20, 40) == [[20, 30], [30]]
        assert edges([], 0, FOREVER) == [[], []]

    def test_pick(self, index):
        index.apply([('capacity', 'third', [8])])
        index.apply([
            whole('a', 'big', 0, 5), whole('b', 'big', 30, 40),     # 25
            whole('c', 'small', 0, 9), whole('d', 'small', 21, 40),  # 12
            whole('e', 'third', 25, 26),                            # 25
        ])
        assert index.pick(9, 10, 20, [1], order='first') == [
            'big', 'small', 'third'
        ]
        assert index.pick(9, 10, 20, [1]) == ['small', 'big', 'third']
        assert index.pick(9, 10, 20, [1], order='freest') == [
            'big', 'third', 'small'
        ]
        for order in timeline_index.ORDERS:
            everyone = index.pick(9, 10, 20, [1], order=order)
            for count in range(4):
                assert index.pick(
                    count, 10, 20, [1], order=order
                ) == everyone[:count]
        assert index.pick(9, 8, 20, [5]) == ['big', 'third']

    def test_pick_of_runs_without_end(self, full):
        full.apply([('capacity', 'idle', [8])])
        assert full.pick(9, 50, 60, [8]) == ['big', 'idle']
        assert full.pick(9, 50, 60, [8], order='freest') == ['idle', 'big']

    def test_pick_of_the_fullest_host(self, index):
        index.apply([
            ('add', 'a', 'a', 'big', 0, 40, [3], False),
            ('add', 'b', 'b', 'big', 12, 13, [4], False),
        ])
        assert index.pick(2, 10, 20, [1], order='fullest') == ['big', 'small']
        # The peak outside the window does not matter, nor does half a request.
        assert index.pick(2, 20, 30, [1], order='fullest') == ['small', 'big']
        assert index.pick(2, 20, 30, [4], order='fullest') == ['big', 'small']

    def test_pick_in_no_known_order(self, full):
        with Refusals(full, errors.InvalidName, 'order', 'best'):
            full.pick(1, 0, 1, [1], order='best')

    @pytest.mark.parametrize('count', [-1, True, 1.0, None, 2**70])
    def test_count_that_is_none(self, full, count):
        with pytest.raises(errors.InvalidAmount, match='count'):
            full.earliest(count, 1, 0, [1])
        with pytest.raises(errors.InvalidAmount, match='count'):
            full.pick(count, 0, 1, [1])

    def test_free_by_group(self, full):
        names = full.hosts
        groups = array.array('i', (0,) * len(names))
        [free, hosts] = full.free(None, groups, 1, 0, 10)
        assert hosts == len(names)
        assert free == sum(
            capacity for _, (capacity,), *_ in full.dump()['hosts']
        )
        rows = full.rows(['big'])
        one = array.array('i', [1])
        assert list(full.free(rows, one, 3, 9, 10))[:2] == [0, 0]
        before = list(full.free(rows, one, 3, 9, 10))
        during = list(full.free(rows, one, 3, 9, 11))
        assert before[2] - during[2] == 3
        assert (before[3], during[3]) == (1, 0)
        assert before[4:] == during[4:] == [0, 0]

    def test_free_needs_a_group_of_each_row(self, full):
        rows = full.rows(['big'])
        for groups in ([], [0, 0], [-1], [2]):
            with pytest.raises(errors.InvalidAmount, match='groups'):
                full.free(rows, array.array('i', groups), 2, 0, 1)
        with pytest.raises(errors.InvalidAmount, match='count'):
            full.free(rows, array.array('i', [0]), -1, 0, 1)
        with pytest.raises(errors.InvalidWindow, match='end'):
            full.free(rows, array.array('i', [0]), 1, 1, 1)
        with pytest.raises(errors.UnknownHost):
            full.free(array.array('i', [-1]), array.array('i', [0]), 1, 0, 1)

    def test_levels(self, full):
        assert full.levels('big', 0, 40, 4) == [
            (0, 0, 0), (3, 1, 0), (0, 0, 0), (0, 0, 0)
        ]
        assert full.levels('big', 8, 22, 3) == [(3, 1, 0)] * 3
        assert full.levels('big', 9, 11, 2) == [(0, 0, 0), (3, 1, 0)]
        # The parts are [0, 3), [3, 6), [6, 10): the seconds do not divide
        # evenly.
        full.apply([add('b', 'big', 6, 7, 2)])
        assert [v for v, _, _ in full.levels('big', 0, 10, 3)] == [0, 0, 2]

    @pytest.mark.parametrize('buckets', [0, -1, 11, True, 2.0, None, 2**70])
    def test_levels_in_no_such_parts(self, full, buckets):
        with Refusals(full, errors.InvalidWindow, 'buckets', buckets):
            full.levels('big', 10, 20, buckets)

    def test_levels_needs_a_host_and_an_end(self, full):
        with Refusals(full, errors.UnknownHost, 'nobody'):
            full.levels('nobody', 0, 1, 1)
        with Refusals(full, errors.InvalidWindow, 'end', FOREVER):
            full.levels('big', 0, FOREVER, 1)

    @pytest.mark.parametrize('query', [
        lambda index, start, end: index.fits(None, start, end, [1]),
        lambda index, start, end: index.peak(None, start, end),
        lambda index, start, end: index.pick(1, start, end, [1]),
        lambda index, start, end: index.levels('big', start, end, 1),
        lambda index, start, end: index.edges(None, start, end),
        lambda index, start, end: index.select([], start, end, [1]),
    ])
    def test_query_of_no_window(self, full, query):
        for value in (*self.BAD_TIMES, FOREVER):
            with Refusals(full, errors.InvalidWindow, 'start', value):
                query(full, value, FOREVER)
        for value in (*self.BAD_TIMES, 5, 4, FOREVER + 1):
            with Refusals(full, errors.InvalidWindow, 'end', value):
                query(full, 5, value)

    def test_query_at_no_time(self, full):
        for value in (*self.BAD_TIMES, FOREVER):
            with Refusals(full, errors.InvalidWindow, 'at', value):
                full.horizon(None, value, [1])
            with Refusals(full, errors.InvalidWindow, 'after', value):
                full.earliest(1, 1, value, [1])
            with Refusals(full, errors.InvalidWindow, 'after', value):
                full.runs(1, value, [1])
            if value is not None:
                with Refusals(full, errors.InvalidWindow, 'not_after', value):
                    full.earliest(1, 1, 0, [1], not_after=value)
                with Refusals(full, errors.InvalidWindow, 'not_after', value):
                    full.runs(1, 0, [1], not_after=value)
        for value in (*self.BAD_TIMES, 0):
            with Refusals(full, errors.InvalidWindow, 'duration', value):
                full.earliest(1, value, 0, [1])
            with Refusals(full, errors.InvalidWindow, 'duration', value):
                full.runs(value, 0, [1])

    @pytest.mark.parametrize('query', [
        lambda index, amounts: index.fits(None, 0, 1, amounts),
        lambda index, amounts: index.horizon(None, 0, amounts),
        lambda index, amounts: index.earliest(1, 1, 0, amounts),
        lambda index, amounts: index.pick(1, 0, 1, amounts),
        lambda index, amounts: index.runs(1, 0, amounts),
        lambda index, amounts: index.select([], 0, 1, amounts),
    ])
    def test_query_of_no_amounts(self, full, query):
        for value in (*self.BAD_AMOUNTS, -1):
            before = full.dump()
            with pytest.raises(errors.InvalidAmount, match='amounts'):
                query(full, [value])
            assert full.dump() == before
        with Refusals(full, errors.InvalidAmount, 'amounts', None):
            query(full, None)

    # HostStates

    CLASSES = ('VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_GPU')

    def host_state(self, uuid, **figures):
        state = dict.fromkeys((
            'vcpus_used', 'total_usable_ram_mb', 'free_ram_mb',
            'disk_mb_used', 'free_disk_mb',
        ))
        return types.SimpleNamespace(uuid=uuid, **state | figures)

    @pytest.fixture
    def cloud(self, index_class):
        index = index_class(self.CLASSES)
        index.apply([
            ('capacity', host, [16, 4096, 100, 2]) for host in ('u1', 'u2')
        ])
        return index

    def test_headroom_of_host_states(self, cloud):
        state = self.host_state(
            'u2', vcpus_used=20, total_usable_ram_mb=4096, free_ram_mb=1000,
            disk_mb_used=10 * 1024 + 1, free_disk_mb=90 * 1024,
        )
        rows, room = cloud.headroom([
            state, self.host_state('nobody', vcpus_used=3),
            self.host_state(None), self.host_state('u1'),
        ])
        assert rows == array.array('i', [1, -1, -1, 0])
        assert room == array.array('q', [
            -4, 1000, 89, 2, 0, 0, 0, 0, 0, 0, 0, 0, 16, 4096, 100, 2,
        ])

    @pytest.mark.parametrize('value', [
        -2**63, 2**63 - 1, 2**48 + 1, -2**70, 1.5, '1', True,
    ])
    @pytest.mark.parametrize('name', [
        'vcpus_used', 'total_usable_ram_mb', 'free_ram_mb', 'disk_mb_used',
        'free_disk_mb',
    ])
    def test_figures_that_cannot_be_are_refused(self, cloud, name, value):
        states = [self.host_state('u1', **{name: value})]
        with pytest.raises(errors.InvalidAmount, match=name):
            cloud.select(states, 0, 10, [1, 1, 1, 1])
        with pytest.raises(errors.InvalidAmount, match=name):
            cloud.headroom(states)

    def test_figures_as_large_as_can_be(self, cloud):
        """Their sums do not wrap either."""
        most = 2**48
        least = self.host_state(
            'u1', vcpus_used=most, total_usable_ram_mb=most, free_ram_mb=-most,
            disk_mb_used=most, free_disk_mb=most,
        )
        assert cloud.headroom([least])[1][:3] == array.array('q', [
            16 - most, 4096 - 2 * most, 100 - most // 1024
        ])
        least.free_disk_mb = -most
        assert cloud.headroom([least])[1][2] == 100 - 3 * most // 1024

    def test_headroom_sees_disk_consumed_since_the_first_look(self, cloud):
        state = self.host_state('u1', disk_mb_used=1024, free_disk_mb=50000)
        assert cloud.headroom([state])[1][2] == 99
        state.free_disk_mb -= 20 * 1024
        assert cloud.headroom([state])[1][2] == 79
        state.free_disk_mb += 40 * 1024     # refreshed: stays on the safe side
        assert cloud.headroom([state])[1][2] == 99

    @pytest.mark.row('F45')
    def test_select(self, cloud):
        cloud.apply([
            ('add', 'a', 'alice', 'u1', 10, 20, [10, 0, 0, 0], False),
            whole('b', 'u2', 30, 40, 4, owner='bob'),
        ])
        states = [
            self.host_state('u2', vcpus_used=9), self.host_state('nobody'),
            self.host_state('u1', vcpus_used=2), self.host_state(None),
        ]
        second, unknown, first, unnamed = states
        assert cloud.select(states, 0, 10, [4, 1, 1, 1]) == states
        assert cloud.select(states, 0, 20, [5, 1, 1, 1]) == [
            second, unknown, unnamed
        ]
        assert cloud.select(states, 0, 10, [8, 1, 1, 1]) == [
            unknown, first, unnamed
        ]
        assert cloud.select(states, 0, 40, [5, 0, 0, 0]) == [unknown, unnamed]
        assert cloud.select(states, 0, 40, [5, 0, 0, 0], ignore='alice') == [
            unknown, first, unnamed
        ]
        assert cloud.select(states, 0, 40, [5, 0, 0, 0], ignore='bob') == [
            second, unknown, unnamed
        ]
        assert cloud.select(states, 0, 1, [0, 0, 0, 3]) == [unknown, unnamed]
        assert cloud.select([], 0, 1, [1, 1, 1, 1]) == []
        assert cloud.select(tuple(states), 0, 10, [4, 1, 1, 1])[0] is second

    def test_headroom_of_novas_own_host_state(self, cloud):
        host_manager = pytest.importorskip('nova.scheduler.host_manager')
        objects = importlib.import_module('nova.objects')
        objects.register_all()
        state = host_manager.HostState('host', 'node', 'cell')
        state.uuid = 'u1'
        assert cloud.headroom([state])[1] == array.array(
            'q', [16, 4096, 100, 2]
        )
        state.vcpus_total, state.vcpus_used = 16, 3
        state.total_usable_ram_mb, state.free_ram_mb = 4096, 3000
        state.disk_mb_used, state.free_disk_mb = 10 * 1024, 90 * 1024
        del state.blazar_sched_seen
        assert cloud.headroom([state])[1] == array.array(
            'q', [13, 3000, 90, 2]
        )
        spec = objects.RequestSpec(
            flavor=objects.Flavor(
                vcpus=2, memory_mb=512, root_gb=20, ephemeral_gb=5
            ),
            pci_requests=None, numa_topology=None,
        )
        state.consume_from_request(spec)
        assert cloud.headroom([state])[1] == array.array(
            'q', [11, 2488, 65, 2]
        )
        assert cloud.select([state], 0, 1, [11, 2488, 65, 2]) == [state]
        assert cloud.select([state], 0, 1, [11, 2488, 66, 2]) == []

    # Threads

    def test_reader_never_sees_half_a_batch(self, index_class):
        index = index_class(VCPU)
        hosts = [f'h{i}' for i in range(20)]
        index.apply([('capacity', host, [1]) for host in hosts])
        lease = [add(host, host, 5, 10, 1) for host in hosts]
        seen = set()
        stop = threading.Event()

        def read():
            while not stop.is_set():
                seen.add(bytes(index.fits(None, 0, 20, [1])))

        switch = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(100):
                index.apply(lease)
                index.apply([('remove', host) for host in hosts])
        finally:
            stop.set()
            reader.join()
            sys.setswitchinterval(switch)
        assert seen <= {b'\0' * 20, b'\1' * 20}


class TestPython(TimelineIndexTests):

    @pytest.fixture
    def index_class(self):
        return timeline_index.TimelineIndex


@pytest.mark.skipif(
    os.environ.get('BLAZAR_SCHED_NO_EXTENSION', '') not in ('', '0'),
    reason='the extension is forbidden here',
)
class TestCompiled(TimelineIndexTests):

    @pytest.fixture
    def index_class(self):
        compiled = importlib.import_module('blazar_sched.ext._timeline_index')
        assert compiled._is_compiled()
        return compiled.TimelineIndex

    def test_same_signatures(self, index_class):
        plain = timeline_index.TimelineIndex
        for name, method in inspect.getmembers(plain, inspect.isfunction):
            if not name.startswith('_'):
                assert parameters(getattr(index_class, name)) == parameters(
                    method
                ), name


def parameters(function):
    return [
        (parameter.name, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize('error', [
    errors.InvalidName('host', ''), errors.InvalidWindow('end', 3),
    errors.InvalidAmount('amounts', True), errors.InvalidChange(('x',)),
    errors.InvalidColumn('rows', 1, 2), errors.UnknownHost('h'),
    errors.UnknownEntry('e'), errors.EntryExists('e'), errors.HostInUse('h'),
    errors.AmountOverflow('h', 'VCPU', 7),
    errors.OverCapacity('h', 'VCPU', 7, 2),
])
def test_error_names_its_values_and_travels(error):
    copy = pickle.loads(pickle.dumps(error))
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)
    assert isinstance(error, errors.TimelineError)
    for value in vars(error).values():
        assert (value if isinstance(value, str) else repr(value)) in str(error)
