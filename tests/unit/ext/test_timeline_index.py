# SPDX-License-Identifier: Apache-2.0
"""The refusals and the edges of the timeline index, for both implementations.

What an index answers after any changes is in test_timeline_machine.
"""

import array
import importlib
import inspect
import itertools
import os
import pickle
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

    @pytest.mark.parametrize('host', ['', None, 7, b'big'])
    def test_unusable_host_name(self, full, host):
        with Refusals(full, errors.InvalidName, 'host', host):
            full.apply([('capacity', host, [1])])

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

    def test_since_ever_and_for_ever(self, index):
        index.apply([add('a', 'big', 0, FOREVER, 8)])
        assert steps(index, 'big') == {0: (8, 1, 0)}
        assert index.fits(None, LAST, FOREVER, [1]) == b'\0\1'

    def test_last_instant(self, index):
        index.apply([add('a', 'big', LAST - 1, LAST, 8)])
        assert index.fits(None, LAST - 1, LAST, [1]) == b'\0\1'
        assert index.fits(None, LAST, FOREVER, [1]) == b'\1\1'

    def test_same_entry_again_changes_nothing(self, full):
        before = full.dump()
        full.apply([
            add('a', 'big', 10, 20, 3), ('move', 'a', 'big', 10, 20),
            ('capacity', 'big', [8]), whole('w', 'small', 30, 40),
        ])
        full.apply([])
        assert full.dump() == before

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

    def test_batch_that_fails_while_it_is_read(self, full):
        before = full.dump()

        def changes():
            yield ('remove', 'a')
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            full.apply(changes())
        assert full.dump() == before

    # Capacity

    def test_over_capacity_names_where_and_how_much(self, full):
        with Refusals(full, errors.OverCapacity, 'big', 'VCPU', 10, 1):
            full.apply([add('b', 'big', 0, 30, 6)])
        full.apply([add('b', 'big', 0, 30, 5)])
        with Refusals(full, errors.OverCapacity, 'big', 'VCPU', 12, 1):
            full.apply([add('c', 'big', 12, 30, 1)])

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

    @pytest.mark.parametrize('before', [-1, FOREVER, 1.0, True, None])
    def test_forget_before_no_time(self, full, before):
        with Refusals(full, errors.InvalidWindow, 'before', before):
            full.forget(before)

    # Queries

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

    @pytest.mark.parametrize('query', QUERIES)
    def test_rows_are_c_ints(self, full, query):
        with pytest.raises(TypeError):
            query(full, [0])
        with pytest.raises(ValueError):
            query(full, array.array('q', [0]))

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

    def test_pick_in_no_known_order(self, full):
        with Refusals(full, errors.InvalidName, 'order', 'best'):
            full.pick(1, 0, 1, [1], order='best')

    @pytest.mark.parametrize('count', [-1, True, 1.0, None, 2**70])
    def test_count_that_is_none(self, full, count):
        with pytest.raises(errors.InvalidAmount, match='count'):
            full.earliest(count, 1, 0, [1])
        with pytest.raises(errors.InvalidAmount, match='count'):
            full.pick(count, 0, 1, [1])

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

    @pytest.mark.parametrize('query', [
        lambda index, start, end: index.fits(None, start, end, [1]),
        lambda index, start, end: index.peak(None, start, end),
        lambda index, start, end: index.pick(1, start, end, [1]),
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
