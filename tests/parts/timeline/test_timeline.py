# SPDX-License-Identifier: Apache-2.0
"""The timeline as the manager returns it, beside the rows of the ledger."""

import dataclasses
import itertools
import json
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.offer.manager import Offers
from blazar_sched.parts.timeline import manager
from blazar_sched.parts.timeline.manager import Query
from blazar_sched.parts.timeline.manager import Timeline
from tests import closed
from tests.functional.manager.conftest import at
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances
from tests.seeds import seeds

VCPUS = 8
# Seconds from now that are looked at, one by one.
SPAN = 120


def page(world, names=True, project='project', start=0, end=SPAN, **wanted):
    return Timeline(world.manager).get(Query(
        project, names, start=world.now + start, end=world.now + end, **wanted
    ))['timeline']


def play(world, chance):
    """Make hosts in racks, leases of two projects, servers and offers."""
    for n in range(4):
        world.add_host(
            f'h{n}', VCPUS, rack=str(n % 2),
            **({'projects': ['project']} if n == 3 else {}),
        )
    for _ in range(8):
        start = chance.randrange(1, SPAN)
        request = chance.choice([
            hosts(), instances(chance.randrange(1, 4), chance.randrange(1, 4))
        ])
        try:
            world.create(
                request, start=start, end=start + chance.randrange(1, SPAN),
                project_id=chance.choice(['project', 'other']),
                name=f'lease {chance.random()}',
            )
        except exception.NotEnoughHostsAvailable:
            continue
    for n in range(3):
        world.add_server(
            f'h{n}', vcpus=chance.randrange(1, 4),
            end=chance.choice([FOREVER, world.now + chance.randrange(1, 99)]),
            preemptible=chance.random() < 0.3,
        )
    world.manager.instances.sync()
    if chance.random() < 0.5:
        host = world.host('h0')
        world.ledger.commit(
            lambda tx: tx.put_host(dataclasses.replace(host, disabled=True))
        )


def taken(world, host, at):
    """Return the VCPUs taken on a host at a time, 'whole' for the host."""
    total = 0
    for allocation, _ in world.ledger.allocations(host=host.uuid):
        if allocation.start <= at < allocation.end:
            if allocation.whole:
                return 'whole'
            total += allocation.amounts['VCPU']
    return total + sum(
        each.amounts['VCPU'] for each in world.ledger.instances()
        if each.host == host.uuid and not each.preemptible
        and each.reservation_id is None
        and at < each.end
    )


def least_free(world, hosts_, part):
    """Return the free share and the free hosts of a part, by brute force."""
    vcpus = untaken = 0
    for host in hosts_:
        seen = [
            taken(world, host, at) for at in range(part['start'], part['end'])
        ]
        if 'whole' not in seen:
            # A server may be in the way of a lease.
            vcpus += max(0, VCPUS - max(seen))
            untaken += max(seen) == 0
    share = vcpus / (VCPUS * len(hosts_)) if hosts_ else 0
    return int(share * 10000 + 1e-6) / 10000, untaken


def by_brute_force(world, host):
    """Return (kind, start, end) of all that takes a host within SPAN."""
    first, last = world.now, world.now + SPAN
    found = [
        ('lease', a.start, a.end)
        for a, _ in world.ledger.allocations(host=host.uuid)
    ] + [
        ('preemptible' if i.preemptible else 'server', first, i.end)
        for i in world.ledger.instances()
        if i.host == host.uuid and i.reservation_id is None
    ]
    return sorted(each for each in found if each[1] < last and first < each[2])


@pytest.mark.parametrize('seed', seeds(6))
def test_every_row_is_that_of_the_ledger(world, seed):
    play(world, random.Random(seed))
    all_hosts = world.ledger.hosts()
    for names in (True, False):
        seen = [h for h in all_hosts if names or h.projects != ('other',)]
        rows = page(world, names, parts=7)['rows']
        parts = page(world, names, parts=7)['parts']
        assert len(rows) == len(seen)
        expected = sorted(
            (
                by_brute_force(world, host),
                [
                    least_free(world, [host] if host.available else [], part)
                    for part in parts
                ],
            )
            for host in seen
        )
        assert sorted(
            (
                sorted((b['kind'], b['start'], b['end']) for b in r['bars']),
                list(zip(r['free'], r['free_hosts'], strict=True)),
            )
            for r in rows
        ) == expected
    racks = page(world, parts=5, group_by='$rack')
    assert [row['name'] for row in racks['rows']] == ['0', '1']
    for row in racks['rows']:
        members = [
            h for h in all_hosts
            if h.capabilities['rack'] == row['name'] and h.available
        ]
        assert list(zip(row['free'], row['free_hosts'], strict=True)) == [
            least_free(world, members, part) for part in racks['parts']
        ]


def test_bars_of_one_track_do_not_overlap(world):
    play(world, random.Random(3))
    for row in page(world)['rows']:
        for one, other in itertools.combinations(row['bars'], 2):
            if one['track'] == other['track']:
                assert one['end'] <= other['start']
        # No row has more tracks than bars that overlap at one time.
        for bar in row['bars']:
            assert bar['track'] < len(row['bars'])


@pytest.mark.parametrize('seed', range(3))
def test_no_foreign_data_leaves_the_manager(world, seed):
    play(world, random.Random(seed))
    secret = {'other'}
    for host in world.ledger.hosts():
        secret |= {host.uuid, host.hypervisor_hostname}
    for lease in world.ledger.leases('other'):
        secret |= {lease.id, lease.name, *(r.id for r in lease.reservations)}
    secret |= {i.uuid for i in world.ledger.instances()}
    for wanted in (
        {}, {'parts': 3}, {'group_by': '$rack'}, {'group_by': 'zone'},
        {'limit': 1},
    ):
        text = json.dumps(page(world, False, **wanted))
        assert not [each for each in secret if f'"{each}"' in text]


def test_the_order_of_rows_and_bars_tells_nothing(world):
    """A member's page stays the same if all that is hidden is renamed."""
    play(world, random.Random(1))
    before = page(world, False)
    keys = [row['key'] for row in before['rows']]
    assert keys == sorted(keys)
    for lease in world.ledger.leases('other'):
        world.ledger.commit(lambda tx, lease=lease: tx.put_lease(
            dataclasses.replace(lease, name=lease.id[::-1])
        ))
    assert page(world, False) == before


def test_a_held_offer_of_others_is_a_lease(world, whole):
    world.add_host('a')
    Offers(world.manager).hold(
        {
            'project_id': 'project', 'user_id': 'user',
            'alternatives': [[whole()]], 'start': world.now + 10,
            'latest_start': None, 'latest_end': None, 'duration': 20,
            'max_duration': None, 'align': None, 'best': 'earliest',
            'limit': 1, 'distance': 1,
        },
        600,
    )
    [row] = page(world)['rows']
    assert [bar['kind'] for bar in row['bars']] == ['offer']
    [row] = page(world, False, 'other')['rows']
    assert [bar['kind'] for bar in row['bars']] == ['lease']


def test_cleaning_time_is_drawn(world, conf, whole):
    conf.set_override('cleaning_time', 1, 'manager')
    world.add_host('a')
    world.create(whole(), start=100, end=200)
    [row] = page(world, end=1000)['rows']
    assert [
        (bar['kind'], bar['start'] - world.now, bar['end'] - world.now)
        for bar in row['bars']
    ] == [('cleaning', 40, 100), ('lease', 100, 200), ('cleaning', 200, 260)]
    # The lease itself is over before the window, its cleaning time is not.
    [row] = page(world, start=200, end=1000)['rows']
    assert [bar['kind'] for bar in row['bars']] == ['cleaning']


def test_closed_hosts_are_drawn(world):
    for name in 'ab':
        world.add_host(name, VCPUS)
    host = world.host('b')
    world.ledger.commit(lambda tx: tx.put_host(dataclasses.replace(
        host, available_from=world.now + 30
    )))
    closed.close(world.ledger, 'a', world.now + 50, world.now + 70)

    def drawn(names):
        return sorted(
            (
                bar['kind'], bar['start'] - world.now, bar['end'] - world.now,
                bar['share'], bar['mine'], bar['name'],
            )
            for row in page(world, names, parts=1)['rows']
            for bar in row['bars']
        )

    assert drawn(names=True) == [
        ('closed', 0, 30, 1, False, None),
        ('maintenance', 50, 70, 1, False, 'rack 7'),
    ]
    assert drawn(names=False) == [
        ('closed', 0, 30, 1, False, None),
        ('maintenance', 50, 70, 1, False, None),
    ]
    assert [
        row['free'] for row in page(world, start=50, end=70, parts=1)['rows']
    ] == [[0], [1]]


def test_pages_while_hosts_come_and_go(world):
    """A host that is there all the time is on exactly one page."""
    for n in range(7):
        world.add_host(f'h{n}')
    for names in (True, False):
        stays = {row['key'] for row in page(world, names)['rows']}
        seen, marker, turn = [], None, 0
        while True:
            found = page(world, names, limit=2, marker=marker)
            seen += [row['key'] for row in found['rows']]
            marker = found['marker']
            if marker is None:
                break
            turn += 1
            world.add_host(f'new{names}{turn}')
            # The host of the marker goes.
            if turn == 1:
                gone = next(
                    h for h in world.ledger.hosts()
                    if manager._key(h, Query('project', names)) == marker
                )
                world.ledger.commit(
                    lambda tx, gone=gone: tx.delete_host(gone.uuid)
                )
                stays.discard(marker)
        assert len(seen) == len(set(seen))
        assert stays <= set(seen)


def test_the_longest_row_is_cut(world, monkeypatch, slots):
    monkeypatch.setattr(manager, 'MAX_BARS', 3)
    world.add_host('a')
    for n in range(5):
        world.create(slots(1, 1), start=10 + n, end=100)
    [row] = page(world)['rows']
    assert [bar['start'] - world.now for bar in row['bars']] == [10, 11, 12]
    assert row['bars_left_out'] == 2


def test_a_page_of_very_many_bars_has_fewer_rows(world, monkeypatch, slots):
    monkeypatch.setattr(manager, 'MAX_USES', 4)
    for name in 'abc':
        world.add_host(name)
        for _ in range(2):
            world.create(
                slots(1, 1, resource_properties=at(name)), start=10, end=100
            )
    found = page(world)
    rows = found['rows']
    assert len(rows) < 3
    while found['marker'] is not None:
        found = page(world, marker=found['marker'])
        rows = rows + found['rows']
    assert [len(row['bars']) for row in rows] == [2, 2, 2]
    assert [row['name'] for row in rows] == ['a', 'b', 'c']
