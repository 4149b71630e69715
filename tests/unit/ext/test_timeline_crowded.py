# SPDX-License-Identifier: Apache-2.0
"""Both indexes are compared with many hosts that have many steps.

The state machine in test_timeline_machine has few entries, so that it finds
rare cases soon; the compiled index's work with long rows, and with many of
them, appears only here: chunks that split, join and are lifted as a whole,
tables that grow and shrink, columns of more than one tile.
"""

import array
import itertools
import random
import sys
import threading

import pytest

from blazar_sched.ext import errors
from blazar_sched.ext import timeline_index

compiled = pytest.importorskip('blazar_sched.ext._timeline_index')

CLASSES = ('VCPU', 'DISK_GB')
FOREVER = errors.FOREVER
DAY = 86400
SPAN = 40 * DAY
HUGE = errors.AMOUNT_LIMIT


def uuid(i):
    return f'{i:08x}-0000-4000-8000-{i:012x}'


class Crowd:
    """Random changes and queries for hosts with many entries each."""

    def __init__(self, seed, hosts, layers, huge=False):
        self.random = random.Random(seed)
        self.plain = timeline_index.TimelineIndex(CLASSES)
        self.others = [
            compiled.TimelineIndex(CLASSES, *both) for both in layers
        ]
        self.twins = [self.plain, *self.others]
        self.hosts = [f'host-{i}' for i in range(hosts)]
        self.huge = huge
        self.ids = []
        self.made = 0
        self.apply([
            ('capacity', host, (self.random.randrange(20, 60), 40))
            for host in self.hosts
        ])

    def apply(self, changes, force=True):
        outcomes = []
        for index in self.twins:
            try:
                outcomes.append(index.apply(changes, force))
            except errors.TimelineError as error:
                outcomes.append((type(error), error.args))
        assert all(other == outcomes[0] for other in outcomes)
        return outcomes[0] is None

    def window(self):
        # Few distinct times, so that bounds meet and steps merge again.
        start = self.random.randrange(0, SPAN, 900)
        length = self.random.choice((900, 3600, DAY, 9 * DAY, 30 * DAY))
        end = FOREVER if self.random.random() < .03 else start + length
        return start, end

    def add(self):
        self.made += 1
        # Some ids are not UUIDs.
        entry_id = uuid(self.made) if self.made % 5 else f'no {self.made}'
        whole = self.random.random() < .1
        most = HUGE // 3 if self.huge else 5
        amounts = (0, 0) if whole else (
            self.random.choice((1, 2, -1, most)), self.random.randrange(4)
        )
        return entry_id, (
            'add', entry_id, f'owner {self.made % 7}',
            self.random.choice(self.hosts), *self.window(), amounts, whole,
        )

    def grow(self, n):
        for _ in range(n):
            entry_id, change = self.add()
            if self.apply([change]):
                self.ids.append(entry_id)

    def shrink(self, n):
        for _ in range(min(n, len(self.ids))):
            i = self.random.randrange(len(self.ids))
            if self.apply([('remove', self.ids[i])]):
                self.ids[i] = self.ids[-1]
                self.ids.pop()

    def move(self, n):
        for _ in range(n):
            self.apply([(
                'move', self.random.choice(self.ids),
                self.random.choice(self.hosts), *self.window(),
            )])

    def fail(self, n):
        """Apply batches that fail and are undone."""
        for _ in range(n):
            batch = [self.add()[1] for _ in range(5)]
            gone = self.random.sample(self.ids, 5)
            batch += [('remove', each) for each in gone[:3]]
            batch += [
                ('move', each, self.hosts[0], *self.window())
                for each in gone[3:]
            ]
            self.random.shuffle(batch)
            assert not self.apply([*batch, ('remove', 'nobody')])

    def same(self):
        """Compare the content of both indexes."""
        first, *others = [index.dump() for index in self.twins]
        assert all(other == first for other in others)
        for index in self.others:
            index.check()

    def ask(self, n):
        for _ in range(n):
            start, end = self.window()
            amounts = self.random.choice(
                ((0, 0), (1, 0), (7, 3), (15, 15), (59, 0), (60, 40))
            )
            self.ask_one(start, end, amounts, self.random.random() < .3)

    def ask_one(self, start, end, amounts, whole):
        some = array.array('i', self.random.sample(
            range(len(self.hosts)), len(self.hosts) // 2
        ))
        count = self.random.randrange(len(self.hosts) + 1)
        length = FOREVER if end == FOREVER else end - start
        owner = f'owner {self.random.randrange(8)}'
        # Ignoring an owner may pass the limit on the way.
        ignore = None if self.huge else owner
        for name, args in (
            ('fits', (None, start, end, amounts, None, whole)),
            ('fits', (some, start, end, amounts, None, whole)),
            ('fits', (None, start, end, amounts, None, whole, ignore)),
            ('horizon', (None, start, amounts, None, whole)),
            ('horizon', (some, start, amounts, None, whole, ignore)),
            ('peak', (None, start, end, ignore)),
            ('earliest', (count, length, start, amounts, None, None, whole)),
            ('earliest', (
                1, length, start, amounts, some, start + 3 * DAY, whole,
                ignore,
            )),
            ('pick', (count, start, end, amounts, None, 'tightest', whole)),
            ('pick', (count, start, end, amounts, some, 'freest', whole)),
            ('pick', (count, start, end, amounts, None, 'first', whole)),
        ):
            first, *others = [
                getattr(index, name)(*args) for index in self.twins
            ]
            assert all(other == first for other in others), (name, args)

    def tick(self, now):
        for index in self.twins:
            index.advance(now)
        for amounts in ((1, 0), (7, 3), (15, 15)):
            for length in (3600, DAY, FOREVER):
                end = FOREVER if length == FOREVER else now + length
                self.ask_one(now, end, amounts, False)


LAYERS = ((0, 0), (3, 0), (0, 24), (32, 480))


@pytest.mark.parametrize('seed', range(4))
def test_long_rows(seed):
    crowd = Crowd(seed, hosts=3, layers=LAYERS)
    for n in (40, 200, 100):
        crowd.grow(n)
        crowd.move(20)
        crowd.fail(5)
        crowd.same()
        crowd.ask(10)
        crowd.tick(crowd.random.randrange(SPAN))
    for n in (100, 150, 1000):
        crowd.shrink(n)
        crowd.same()
        crowd.ask(10)
        crowd.tick(crowd.random.randrange(SPAN))
    assert not crowd.ids


@pytest.mark.parametrize('seed', range(2))
def test_sums_at_the_limit(seed):
    crowd = Crowd(seed, hosts=1, layers=LAYERS, huge=True)
    for n in (150, 150):
        crowd.grow(n)
        crowd.move(50)
        crowd.fail(5)
        crowd.same()
        crowd.ask(5)
    crowd.shrink(300)
    crowd.same()


def test_many_rows():
    crowd = Crowd(7, hosts=300, layers=((32, 480), (0, 0)))
    crowd.grow(1500)
    crowd.same()
    crowd.ask(12)
    crowd.tick(DAY)
    # Rows that are added, changed and removed while the layers exist.
    crowd.apply([('capacity', 'host-new', (50, 50))])
    crowd.apply([('capacity', 'host-7', (3, 3))])
    crowd.grow(100)
    crowd.ask(4)
    crowd.tick(2 * DAY)
    crowd.apply([('drop', 'host-new')])
    crowd.apply([('capacity', 'host-newer', (50, 50))])
    crowd.ask(4)
    crowd.tick(DAY)
    crowd.same()


def test_earliest_among_many_runs():
    """So many runs that the sweep's stretches of time do not double."""
    crowd = Crowd(3, hosts=5, layers=((32, 480),))
    chooser, changes = crowd.random, []
    for host in crowd.hosts:
        at = 0
        while at < 30 * DAY:
            start = at + chooser.randrange(1, 9000)
            at = start + chooser.randrange(1, 9000)
            changes.append((
                'add', uuid(len(changes)), 'owner', host, start, at, (0, 0),
                True,
            ))
    crowd.apply(changes)
    plain, index = crowd.twins
    for after in (0, 7 * DAY - 1, 7 * DAY, 8 * DAY + 13):
        for count, length in itertools.product(
            range(1, 6), (1, 3600, 7000, FOREVER)
        ):
            query = count, length, after, (1, 1)
            found = index.earliest(*query)
            assert found == plain.earliest(*query)
            assert index.earliest(*query, not_after=found[0]) == found
            if found[0] > after:
                assert index.earliest(*query, not_after=found[0] - 1) is None


def test_more_rows_than_a_tile_of_the_sketch():
    hosts = [f'host-{i}' for i in range(9001)]
    chooser = random.Random(1)
    columns = (
        hosts, [8, 8] * len(hosts), [uuid(i) for i in range(20000)],
        ['o'] * 20000, [chooser.randrange(len(hosts)) for _ in range(20000)],
        starts := [chooser.randrange(SPAN) for _ in range(20000)],
        [start + chooser.randrange(1, 3 * DAY) for start in starts],
        [4, 1] * 20000, [False] * 20000,
    )
    with_sketch = compiled.TimelineIndex(CLASSES, 0, 64)
    by_rows = compiled.TimelineIndex(CLASSES, 0, 0)
    for index in (with_sketch, by_rows):
        index.load(*columns)
    for _ in range(20):
        start = chooser.randrange(SPAN)
        end = start + chooser.randrange(1, 9 * DAY)
        window = (start, end, (5, 0))
        answer = with_sketch.fits(None, *window)
        assert answer == by_rows.fits(None, *window)
        assert 0 < sum(answer) < len(hosts)


def test_a_batch_of_every_kind_is_undone():
    crowd = Crowd(5, hosts=3, layers=LAYERS)
    crowd.grow(50)
    before = crowd.plain.dump()
    batch = [crowd.add()[1] for _ in range(3)]
    batch += [('remove', each) for each in crowd.ids[:3]]
    batch += [
        ('move', each, 'host-1', *crowd.window()) for each in crowd.ids[3:6]
    ]
    batch += [
        ('capacity', 'host-new', (9, 9)), ('capacity', 'host-0', (1, 1)),
        ('drop', 'host-new'), ('capacity', 'host-new', (8, 8)),
        ('capacity', 'host-new', (7, 7)),
        ('add', 'last', 'owner', 'host-new', 0, 9, (1, 1), False),
        ('remove', 'last'), ('drop', 'host-new'),
    ]
    assert not crowd.apply([*batch, ('remove', 'nobody')])
    assert crowd.plain.dump() == before
    crowd.same()
    assert crowd.apply(batch)
    crowd.same()


def test_tables_fill_and_empty():
    index = compiled.TimelineIndex(CLASSES)
    chooser = random.Random(2)
    index.apply([('capacity', 'host', (9, 9))])
    ids = [uuid(i) if i % 3 else f'no {i}' for i in range(3000)]
    for i in range(0, 3000, 300):
        index.apply([
            ('add', own, own[:-1], 'host', 0, 9, (1, 0), False)
            for own in ids[i:i + 300]
        ], True)
        index.check()
    chooser.shuffle(ids)
    for i in range(0, 3000, 300):
        index.apply([('remove', own) for own in ids[i:i + 300]])
        index.check()
        assert set(index.dump()['entries']) == set(ids[i + 300:])


@pytest.mark.parametrize('odd', '/:`gGA\x00\xe9')
def test_ids_that_are_nearly_uuids(odd):
    canonical = uuid(0xabc)
    ids = [canonical, canonical + odd, canonical[:-1]] + [
        canonical[:i] + odd + canonical[i + 1:] for i in range(36)
    ]
    index = compiled.TimelineIndex(CLASSES)
    index.apply([('capacity', 'host', (9, 9))])
    index.apply([
        ('add', own, own, 'host', 0, 9, (1, 0), False) for own in ids
    ], True)
    assert index.dump()['owned'] == {own: {own} for own in ids}


@pytest.mark.parametrize('changes', (1, 4, 5, 6, 30))
def test_horizons_take_in_what_has_changed(changes):
    crowd = Crowd(changes, hosts=5, layers=((2, 0),))
    for now in range(0, SPAN, 9 * DAY):
        crowd.tick(now)
        crowd.grow(changes)
        crowd.tick(now)
        crowd.shrink(changes)
        crowd.tick(now)


def test_columns_make_the_same_index():
    crowd = Crowd(3, hosts=5, layers=LAYERS)
    crowd.grow(300)
    crowd.shrink(50)
    for index in crowd.twins:
        for kind in (timeline_index, compiled):
            copy = kind.TimelineIndex(CLASSES)
            copy.load(*index.columns())
            assert copy.dump() == index.dump() | {'generation': 1}


class Hammer:
    """Threads that run all queries while another thread applies a lease.

    The lease takes all of each host over one window. ``seen`` has, for each
    query, the number of free hosts: all or none, unless half a batch is
    visible.
    """

    HOSTS = 200

    def __init__(self):
        self.index = compiled.TimelineIndex(('VCPU',))
        self.names = [f'host-{i}' for i in range(self.HOSTS)]
        self.index.apply([('capacity', name, (8,)) for name in self.names])
        self.index.advance(100)
        self.lease = [
            ('add', uuid(i), 'lease', name, 100, 200, (8,), False)
            for i, name in enumerate(self.names)
        ]
        self.seen = {}
        self.rows = self.index.rows(self.names)

    def look(self):
        index, free = self.index, {}
        now, later = (100, 150), (120, 250)
        room = array.array('q', [8] * self.HOSTS)
        free['from now'] = sum(index.fits(None, *now, (1,)))
        free['with room'] = sum(index.fits(None, *now, (1,), room))
        free['any window'] = sum(index.fits(None, *later, (1,)))
        free['by rows'] = sum(index.fits(self.rows, *later, (1,)))
        free['pick'] = len(index.pick(self.HOSTS, *later, (1,)))
        first = index.earliest(1, 10, 100, (1,), not_after=100)
        free['earliest'] = {None: 0, 'host-0': self.HOSTS}.get(
            first and first[1][0], -1
        )
        free['peak'] = self.HOSTS - sum(index.peak(None, *now)[::3]) // 8
        free['horizon'] = sum(h > 0 for h in index.horizon(None, 100, (1,)))
        for way, count in free.items():
            self.seen.setdefault(way, set()).add(count)

    def run(self, apply):
        stop = threading.Event()

        def read():
            while not stop.is_set():
                self.look()

        switch = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        try:
            for _ in range(150):
                apply(self.lease)
                apply([('remove', change[1]) for change in self.lease])
        finally:
            stop.set()
            for reader in readers:
                reader.join()
            sys.setswitchinterval(switch)

    def torn(self):
        """Return the queries with another result than all or none."""
        return {
            way for way, counts in self.seen.items()
            if counts - {0, self.HOSTS}
        }


def test_no_thread_sees_half_a_batch():
    hammer = Hammer()

    def apply(batch):
        with pytest.raises(errors.UnknownEntry):
            hammer.index.apply([*batch, ('remove', 'nobody')])
        hammer.index.apply(batch)

    hammer.run(apply)
    assert not hammer.torn()
    assert any(counts == {0, hammer.HOSTS} for counts in hammer.seen.values())


def test_half_a_batch_would_be_seen():
    hammer = Hammer()

    def apply(batch):
        for change in batch:
            hammer.index.apply([change])

    hammer.run(apply)
    assert hammer.torn() == set(hammer.seen)
