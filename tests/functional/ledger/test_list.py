# SPDX-License-Identifier: Apache-2.0
"""The database filters, sorts and pages lists, equally on each engine."""

import dataclasses
import itertools
import random

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.demand import Hosts
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.statistics import Number
from tests.functional.ledger.conftest import on_every_engine

# The order is that of bytes, not that of a language.
NAMES = [
    '', ' ', 'A', 'A ', 'B', 'a', 'a\t', 'a ', 'a b', 'b', 'ä', '租', '🙂',
]  # fmt: skip


def put(store, leases):
    def work(tx):
        for lease in leases:
            tx.add_lease(lease, [])

    store.commit(work)


@pytest.fixture
def leases(store, nouns):
    """Leases in random order, enough of them that every key has ties."""
    chance = random.Random(1)
    made = [
        nouns.lease(
            start=100 + chance.randrange(3), end=200 + chance.randrange(3),
            name=name, status=chance.choice(['PENDING', 'ACTIVE', 'ERROR']),
            created_at=chance.choice([None, 0, 7, 8]),
            updated_at=chance.choice([None, 9, 10]),
        )
        for name in [*NAMES, *NAMES]
    ]
    chance.shuffle(made)
    put(store, made)
    put(store, [nouns.lease(name='a', project_id='other')])
    return made


def keyed(lease):
    """Return the sort key of a lease."""

    def time(at):
        return -1 if at is None else at

    return {
        'id': lease.id, 'name': lease.name.encode(), 'status': lease.status,
        'start': lease.start, 'end': lease.end,
        'created_at': time(lease.created_at),
        'updated_at': time(lease.updated_at),
    }


def sorted_(leases, sort):
    ordered = sorted(leases, key=lambda lease: lease.id)
    for key, descending in reversed(sort):
        ordered.sort(key=lambda noun: keyed(noun)[key], reverse=descending)
    return ordered


def ids(leases):
    return [lease.id for lease in leases]


SORTS = [
    (),
    *(
        ((key, descending),)
        for key in ('id', 'name', 'status', 'start', 'end', 'created_at')
        for descending in (False, True)
    ),
    (('status', False), ('name', True)),
    (('updated_at', True), ('start', False), ('end', True)),
]


@on_every_engine
@pytest.mark.row('F86')
def test_every_order(store, leases):
    for sort in SORTS:
        expected = sorted_(leases, sort or [('created_at', False)])
        assert ids(store.leases('project', sort=sort)) == ids(expected), sort


@on_every_engine
@pytest.mark.row('F86')
def test_pages_leave_out_nothing_and_have_nothing_twice(store, leases):
    for sort, limit in itertools.product(SORTS, (1, 26)):
        found, marker = [], None
        while True:
            page = store.leases(
                'project', sort=sort, limit=limit, marker=marker
            )
            assert len(page) <= limit
            found += page
            if len(page) < limit:
                break
            marker = page[-1].id
        assert found == store.leases('project', sort=sort)


def test_a_page_has_all_that_its_leases_own(store, nouns):
    leases = [nouns.lease(reservations=2) for _ in range(5)]
    put(store, leases)
    assert store.leases(limit=3) == leases[:3]
    assert store.leases(limit=3, marker=leases[2].id) == leases[3:]


@on_every_engine
@pytest.mark.row('F86')
def test_filters(store, leases):
    for name in NAMES:
        found = store.leases('project', name=name)
        assert sorted(ids(found)) == sorted(
            lease.id for lease in leases if lease.name == name
        )
    active = [lease for lease in leases if lease.status == 'ACTIVE']
    assert 0 < len(active) < len(leases)
    assert ids(store.leases('project', status='ACTIVE')) == ids(
        sorted_(active, [('created_at', False)])
    )
    both = store.leases(name='a', status='ACTIVE', project_id='project')
    assert set(ids(both)) == {
        lease.id for lease in active if lease.name == 'a'
    }
    assert len(store.leases(name='a')) == 3
    assert len(store.leases('other')) == 1


HOSTS = st.sampled_from([None, None, 'a', 'b', "'"])
KEYS = ['a', 'A', 'a.b']
# Texts that could be taken for others in JSON, in SQL, and in a pattern.
VALUES = [
    'b', 'B', '%', "'", '\\', 'x", "a": "b', '"a": "b"', '\\", "a": "b',
    '租🙂', '🙂' * 255,
]
TIMES = st.none() | st.integers(0, 9)
FILTERS = st.fixed_dictionaries({
    'project_id': st.sampled_from([None, 'p1', 'p2']),
    'degraded': st.none() | st.booleans(),
    'at': TIMES,
    'after': TIMES,
    'before': TIMES,
    'resource_type': st.sampled_from(
        [None, 'physical:host', 'virtual:instance', 'virtual:instance ', '%']
    ),
    'labels': st.none() | st.lists(
        st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)), max_size=3
    ),
    'host': HOSTS,
    'whole_host': HOSTS,
})


@pytest.fixture
def world(store, nouns):
    """Leases on hosts, with what each of them is found by."""
    chance = random.Random(2)
    hosts = {name: nouns.host(hypervisor_hostname=name) for name in ('a', 'b')}
    found = []

    def work(tx):
        for each in hosts.values():
            tx.put_host(each)
        for _ in range(40):
            start = chance.randrange(8)
            made = nouns.lease(
                start, chance.randrange(start + 1, 10),
                project_id=chance.choice(['p1', 'p2']),
                degraded=chance.random() < .3, labels=labels(chance),
            )
            [slots] = made.reservations
            made = dataclasses.replace(made, reservations=(
                dataclasses.replace(slots, labels=labels(chance)),
            ))
            whole = chance.random() < .5
            if whole:
                [slots] = made.reservations
                made = dataclasses.replace(made, reservations=(
                    dataclasses.replace(slots, demand=Hosts(1, 2)),
                ))
            held = chance.sample(sorted(hosts), chance.randrange(3))
            tx.add_lease(made, [
                nouns.allocation(
                    made, hosts[name], whole=whole,
                    amounts={} if whole else {'VCPU': 1},
                )
                for name in held
            ])
            found.append((made, whole, held))

    store.commit(work)
    return found


def labels(chance):
    return {
        chance.choice(KEYS): chance.choice(VALUES)
        for _ in range(chance.randrange(4))
    }


def matches(lease, whole, held, wanted):
    """Whether a lease is found, one filter after the other."""
    kind = 'physical:host' if whole else 'virtual:instance'
    return (
        wanted['project_id'] in (None, lease.project_id)
        and wanted['degraded'] in (None, lease.degraded)
        and (wanted['at'] is None or lease.start <= wanted['at'] < lease.end)
        and (wanted['after'] is None or wanted['after'] < lease.end)
        and (wanted['before'] is None or lease.start < wanted['before'])
        and wanted['resource_type'] in (None, kind)
        and all(
            lease.labels.get(key) == value
            or lease.reservations[0].labels.get(key) == value
            for key, value in wanted['labels'] or ()
        )
        and wanted['host'] in (None, *held)
        and wanted['whole_host'] in (None, *(held if whole else ()))
    )


@pytest.mark.row('F112')
@on_every_engine
def test_any_filters(store, world):
    @hypothesis.given(FILTERS, st.none() | st.integers(1, 5))
    @hypothesis.settings(max_examples=60, deadline=None)
    def check(wanted, limit):
        expected = [
            lease.id for lease, whole, held in world
            if matches(lease, whole, held, wanted)
        ]
        assert ids(store.leases(**wanted, limit=limit)) == expected[:limit]

    check()


@on_every_engine
def test_a_past_host_finds_its_lease(store, world):
    lease, [name] = next(
        (lease, held) for lease, _, held in world if len(held) == 1
    )
    store.commit(lambda tx: tx.put_allocations(
        lease.reservations[0].id, [], lease.end
    ))
    assert lease.id in ids(store.leases(host=name))
    assert ids(store.leases(host='gone')) == []


@on_every_engine
def test_a_page_of_what_is_filtered(store, leases):
    first, second = store.leases('project', name='b')
    assert store.leases('project', name='b', limit=1) == [first]
    assert store.leases('project', name='b', marker=first.id) == [second]
    # The marker itself need not match the filter.
    other = store.leases('project', name='ä')[0]
    after = store.leases('project', name='b', sort=[('name', True)])
    assert (
        store.leases(
            'project', name='b', sort=[('name', True)], marker=other.id
        )
        == after
    )


@on_every_engine
def test_no_other_text_finds_any(store, leases):
    for text in ('%', "'", 'a\0', '\ud800', 'x' * 100_000):
        assert store.leases(name=text) == []
        assert store.leases(status=text) == []
        assert store.leases(text) == []


def test_invalid_sort_key_limit_or_marker_is_refused(store, leases):
    theirs = store.leases('other')[0]
    for field, asked in [
        ('sort', {'sort': [('name', False), ('user_id', False)]}),
        ('limit', {'limit': 0}),
        ('limit', {'limit': -1}),
        ('marker', {'marker': theirs.id}),
        ('marker', {'marker': leases[0].id + ' '}),
        ('marker', {'marker': '\0'}),
        ('marker', {'marker': ''}),
    ]:
        with pytest.raises(exception.InvalidInput) as refused:
            store.leases('project', **asked)
        assert refused.value.field == field


def test_a_page_is_found_by_the_database(store, leases, queries):
    """The query reads only the rows of the page."""
    queries.clear()
    store.leases('project', limit=2, sort=[('name', False)])
    selects = [q for q in queries if q.startswith('SELECT')]
    assert len(selects) == 3
    assert 'LIMIT' in selects[0]


@on_every_engine
def test_open_leases_are_a_projects_own_that_are_not_on_their_way_out(
    store, nouns
):
    statuses = [
        'PENDING', 'STARTING', 'ACTIVE', 'TERMINATING', 'ERROR',
        'TERMINATED', 'DELETING',
    ]  # fmt: skip
    made = [nouns.lease(status=status) for status in statuses]
    put(store, [*made, nouns.lease(project_id='other')])
    found = store.open_leases(made[0].project_id)
    assert sorted(found, key=lambda x: x.id) == sorted(
        made[:5], key=lambda x: x.id
    )


def test_a_lease_of_another_project_takes_as_many_queries_as_none(
    store, nouns, queries
):
    lease = nouns.lease(project_id='theirs')
    put(store, [lease])
    counts = []
    for id_ in (lease.id, nouns.lease().id):
        before = len(queries)
        with pytest.raises(exception.LeaseNotFound):
            store.owned_lease(id_, 'mine')
        counts.append(len(queries) - before)
    assert counts[0] == counts[1] > 0


@on_every_engine
def test_what_a_project_has_beside_its_leases_is_counted_in_one_query(
    store, queries
):
    numbers = [
        Number('most', unit, models.Lease, models.Lease.degraded == value)
        for unit, value in (('well', False), ('degraded', True))
    ]
    queries.clear()
    assert store.counts_of('project', numbers) == {'well': 0, 'degraded': 0}
    assert len([q for q in queries if q.startswith('SELECT')]) == 1
