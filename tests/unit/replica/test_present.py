# SPDX-License-Identifier: Apache-2.0
"""Given-back amounts, with HostStates and records of different times."""

import array
import itertools
import threading
import time
import types

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import pytest

from blazar_sched import ext
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.inventory import Inventory
from blazar_sched.ext import host_state as ext_host_state
from blazar_sched.replica import accounting
from blazar_sched.replica import present
from blazar_sched.replica import record
from blazar_sched.replica import state

NOW, TAIL = 1000, 1040
VCPUS = 8
SERVERS = tuple(f's{n}' for n in range(5))


class HostState(types.SimpleNamespace):
    """The fields that are read from Nova's HostState."""


def host_state(instances=(), vcpus_used=0, uuid='h'):
    return HostState(
        uuid=uuid, nodename=uuid, vcpus_used=vcpus_used, total_usable_ram_mb=0,
        free_ram_mb=0, disk_mb_used=0, free_disk_mb=0,
        instances=dict.fromkeys(instances), num_instances=len(instances),
    )


def a_host(uuid='h', vcpus=VCPUS):
    return Host(uuid, uuid, uuid, inventory={'VCPU': Inventory(vcpus)})


def a_server(uuid, vcpus, end=window.FOREVER, on='h', **fields):
    return Instance(uuid, on, 'p', {'VCPU': vcpus}, end, **fields)


def an_allocation(vcpus, start, end, of='r'):
    return Allocation(f'{of} {start}', of, 'h', start, end, {'VCPU': vcpus})


def a_replica(*nouns):
    replica = state.Replica(accounting.SchedulerAccounting)
    replica.advance(NOW)
    replica.apply(1, map(record.encode, (a_host(), *nouns)))
    return replica


def has_room(replica, seen, vcpus, end=window.FOREVER, own_id=None):
    return bool(replica.present.select(
        replica.indexes.main, [seen], NOW, end, (vcpus, 0, 0), own_id
    ))


def horizons(replica, seen, vcpus, own_id=None):
    return replica.present.horizon(
        replica.indexes.main, seen, NOW, (vcpus, 0, 0), own_id
    )


GIVEN_BACK = pytest.mark.parametrize('server', [
    a_server('s', 4, NOW + 10), a_server('s', 4, preemptible=True),
    a_server('s', 4, TAIL, reservation_id='r'),
], ids=['bounded', 'preemptible', 'bound'])


@GIVEN_BACK
class TestServerThatHasLeft:
    """Half of the host is reserved from the server's end on."""

    lease = an_allocation(4, NOW + 10, TAIL)

    def test_server_is_given_back_while_host_state_names_it(self, server):
        replica = a_replica(self.lease, server)
        there = host_state(['s'], vcpus_used=4)
        assert has_room(replica, there, 4)
        assert not has_room(replica, there, 5)

    def test_server_that_has_left_is_not_given_back(self, server):
        replica = a_replica(self.lease, server)
        assert not has_room(replica, host_state(), 5)
        assert has_room(replica, host_state(), 4)

    def test_control_the_index_alone_gives_it_back(self, server):
        replica = a_replica(self.lease, server)
        assert replica.indexes.main.select(
            [host_state()], NOW, TAIL, (8, 0, 0)
        )

    def test_room_is_not_given_back_while_nova_lists_the_server(self, server):
        """Nova changes a host's figures first, and then its instances."""
        replica = a_replica(self.lease, server)
        assert not has_room(replica, host_state(['s']), 5)

    def test_room_is_not_given_back_for_another_server(self, server):
        """A server without a record has its room now."""
        replica = a_replica(self.lease, server)
        assert not has_room(replica, host_state(['x'], vcpus_used=4), 1)

    def test_its_record_is_removed_at_last(self, server):
        replica = a_replica(self.lease, server)
        replica.apply(2, [(record.INSTANCE, 's', None)])
        assert has_room(replica, host_state(), 4)
        assert not has_room(replica, host_state(), 5)


def test_room_of_who_has_left_can_be_used_at_once():
    """The server that left is not counted, even before its record is deleted.
    """
    replica = a_replica(a_server('s', 4), a_server('t', 4, NOW + 10))
    assert has_room(replica, host_state(['t'], vcpus_used=4), 4)


def test_whoever_has_moved_counts_where_nova_has_it():
    replica = a_replica(
        a_host('g'), a_server('s', 4, NOW + 10),
        an_allocation(4, TAIL, TAIL + 9),
    )
    assert not has_room(replica, host_state(), 5)
    # The server counts as unbounded there, as its record names another host.
    assert not has_room(replica, host_state(['s'], 4, uuid='g'), 5)
    replica.apply(2, [
        record.encode(a_server('s', 4, NOW + 10, on='g')),
        record.encode(an_allocation(8, NOW + 10, TAIL)),
    ])
    assert not has_room(replica, host_state(), 1)
    assert has_room(replica, host_state(['s'], 4, uuid='g'), 4)


def moving(uuid, vcpus, leaves=NOW + 10, end=window.FOREVER, **fields):
    """A server on h that has a place on g from 5 s before it leaves."""
    return a_server(uuid, vcpus, end, movable='live', path=(
        Stay('h', 0, leaves), Stay('g', leaves - 5, end)
    ), **fields)


def test_whoever_has_left_keeps_the_place_where_it_was_to_go():
    """The place is free when the record is gone, and not before."""
    replica = a_replica(a_host('g'), moving('s', VCPUS, NOW + 5))
    seen = [host_state(), host_state(uuid='g')]
    assert horizons(replica, seen, 1) == [window.FOREVER, 0]
    assert not replica.present.select(
        replica.indexes.main, seen, NOW, NOW + 9, (VCPUS + 1, 0, 0), None
    )
    assert replica.present.select(
        replica.indexes.main, seen, NOW, NOW + 9, (1, 0, 0), None
    ) == seen[:1]


def test_a_place_of_whoever_has_left_counts_beside_a_preemptible_server():
    """The index gives back for a server that HostState does not count.

    HostState misses both servers, each of which is to be ignored on its own
    host only.
    """
    replica = a_replica(
        a_host('g'), moving('s', VCPUS, NOW + 5),
        a_server('p', VCPUS, preemptible=True, on='g'),
    )
    seen = [host_state(), host_state(uuid='g')]
    assert replica.present.select(
        replica.indexes.main, seen, NOW, NOW + 9, (1, 0, 0), None
    ) == seen[:1]


def test_instances_that_nova_does_not_name_confirm_nothing():
    """The list is None before a HostState has been filled."""
    replica = a_replica(
        a_server('s', 4, NOW + 10), an_allocation(4, NOW + 10, TAIL)
    )
    seen = host_state(vcpus_used=4)
    seen.instances = None
    assert not has_room(replica, seen, 4)


class TestOverdrawnReservation:
    """Six VCPUs are used of a reservation of three, and all in its window."""

    servers = [
        a_server(f's{n}', 2, TAIL, reservation_id='r') for n in range(3)
    ]
    held = an_allocation(3, NOW, TAIL)

    @pytest.mark.parametrize('accounting_', [
        accounting.SchedulerAccounting, accounting.LedgerAccounting
    ])
    def test_overdrawn_amount_counts_until_the_reservation_ends(
        self, accounting_
    ):
        """The rest of the host has no room for three more."""
        replica = state.Replica(accounting_)
        replica.advance(NOW)
        replica.apply(1, map(record.encode, (
            a_host(), self.held, *self.servers
        )))
        seen = host_state([each.uuid for each in self.servers], 6)
        index = replica.indexes.main

        def fits(vcpus, start):
            if accounting_ is accounting.SchedulerAccounting:
                return has_room(replica, seen, vcpus, start + 1)
            return index.fits(index.rows(['h']), start, start + 1, (
                vcpus, 0, 0
            ))[0]

        assert fits(2, NOW) and not fits(3, NOW)
        replica.apply(2, [(record.INSTANCE, 's0', None)])
        seen.instances.pop('s0')
        seen.vcpus_used = 4
        assert fits(4, NOW) and not fits(5, NOW)
        replica.apply(3, [record.encode(an_allocation(4, NOW, TAIL))])
        replica.apply(4, [(record.INSTANCE, 's1', None)])
        assert not index.held('overdrawn')

    @pytest.mark.parametrize('records', [
        [(record.ALLOCATION, 'r 1000', None)],
        [(record.INSTANCE, each.uuid, None) for each in servers[1:]],
        [
            (record.ALLOCATION, 'r 1000', None), (record.HOST, 'h', None),
            *((record.INSTANCE, each.uuid, None) for each in servers),
        ],
    ], ids=['reservation', 'servers', 'host'])
    def test_overdrawn_entry_ends_with_its_cause(self, records):
        replica = a_replica(self.held, *self.servers)
        assert replica.indexes.main.held('overdrawn')
        replica.apply(2, records)
        assert not replica.indexes.main.held('overdrawn')

    def test_ends_when_the_servers_are_overdue(self):
        """They count for themselves then."""
        replica = a_replica(self.held, *self.servers)
        replica.advance(TAIL)
        assert not replica.indexes.main.held('overdrawn')

    def test_use_beyond_a_reservation_is_counted_in_a_full_copy(self):
        replica = state.Replica(accounting.SchedulerAccounting)
        replica.advance(NOW)
        replica.load(
            1, map(record.encode, (a_host(), *self.servers)), [self.held]
        )
        assert replica.indexes.main.held('overdrawn')


class TestUnits:
    """HostState has Nova's figures, an inventory has Placement's."""

    lease = an_allocation(4, NOW + 10, TAIL)

    @pytest.mark.parametrize(('vcpus', 'used'), [(4, 1), (1, 4)])
    def test_what_placement_counts_fits_beside_a_lease(self, vcpus, used):
        """The instance ends when the lease begins, or never."""
        seen = host_state(['s'], vcpus_used=used)
        ends = a_server('s', vcpus, NOW + 10, used={'VCPU': used})
        replica = a_replica(self.lease, ends)
        most = min(4, VCPUS - vcpus)
        assert has_room(replica, seen, most)
        assert not has_room(replica, seen, most + 1)
        stays = a_server('s', vcpus, used={'VCPU': used})
        replica = a_replica(self.lease, stays)
        assert has_room(replica, seen, 4 - vcpus)
        assert not has_room(replica, seen, 5 - vcpus)

    def test_pinned_cpus_take_no_shared_ones(self):
        pinned = a_server('s', 0, used={'VCPU': 8})
        replica = a_replica(self.lease, pinned)
        assert has_room(replica, host_state(['s'], vcpus_used=8), 4)
        assert not has_room(replica, host_state(['s'], vcpus_used=8), 5)

    @pytest.mark.parametrize('fields', [
        {}, {'end': NOW - 1}, {'end': NOW - 1, 'reservation_id': 'r'},
    ], ids=['unbounded', 'overdue', 'overdue and bound'])
    def test_what_is_being_built_takes_what_placement_counts(self, fields):
        """Nova lists neither the server nor another one, which has left."""
        building = a_server('s', 4, used={'VCPU': 1}, **fields)
        replica = a_replica(building, a_server('t', 1, NOW + 10))
        assert has_room(replica, host_state(vcpus_used=1), 4)
        assert not has_room(replica, host_state(vcpus_used=1), 5)

    def test_a_change_of_the_record_leaves_nothing_behind(self):
        replica = a_replica(a_server('s', 4, NOW + 10, used={'VCPU': 1}))
        replica.apply(2, [record.encode(a_server('s', 4, NOW + 10))])
        plain = a_replica(a_server('s', 4, NOW + 10))
        known, others = (
            each.indexes.main.dump()['entries'] for each in (replica, plain)
        )
        assert known == others
        replica.apply(3, [(record.INSTANCE, 's', None)])
        assert len(replica.indexes.main) == 0


def on_disk(uuid, gb, **fields):
    return Instance(uuid, 'h', 'p', {'DISK_GB': gb}, **fields)


class TestReservedDisk:
    """Placement reserves 30 of 100 GB; a lease will have 60."""

    host = Host('h', 'h', 'h', inventory={
        'DISK_GB': Inventory(100, reserved=30),
    })
    lease = Allocation('a', 'r', 'h', NOW + 10, TAIL, {'DISK_GB': 60})

    def has_room(self, gb, used_gb, *servers, named=None):
        replica = a_replica(self.host, self.lease, *servers)
        seen = host_state(
            [s.uuid for s in servers] if named is None else named
        )
        seen.disk_mb_used = used_gb * 1024
        return bool(replica.present.select(
            replica.indexes.main, [seen], NOW, TAIL, (0, 0, gb), None
        ))

    @pytest.mark.parametrize('kept', [0, 10, 30])
    def test_nova_may_count_none_of_it_or_some_or_all(self, kept):
        """Nova leaves out some of the disk, for its cache of images."""
        assert self.has_room(10, kept)
        assert not self.has_room(11, kept)
        server = on_disk('s', 5)
        assert self.has_room(5, kept + 5, server)
        assert not self.has_room(6, kept + 5, server)

    def test_a_server_without_a_record_is_not_taken_for_it(self):
        assert not self.has_room(6, 5, named=['x'])


def test_a_class_without_inventory_keeps_nobody_off():
    """The class has another provider, such as shared storage."""
    replica = a_replica()
    seen = host_state()
    seen.disk_mb_used = 1024
    assert replica.present.select(
        replica.indexes.main, [seen], NOW, TAIL, (1, 512, 10), None
    )


class Racing:
    """An index that is written to in the middle of a query."""

    def __init__(self, index, write):
        self._index = index
        self._write = write

    def select(self, *args, **kwargs):
        found = self._index.select(*args, **kwargs)
        self._written()
        return found

    def headroom(self, *args):
        found = self._index.headroom(*args)
        self._written()
        return found

    def fits(self, *args, **kwargs):
        return self._index.fits(*args, **kwargs)

    def _written(self):
        write, self._write = self._write, lambda: None
        write()


def test_a_record_that_goes_meanwhile_is_not_missed():
    """The index has given back its amounts, and then its record is deleted."""
    replica = a_replica(
        an_allocation(4, NOW + 10, TAIL), a_server('s', 4, NOW + 10)
    )
    racing = Racing(
        replica.indexes.main,
        lambda: replica.apply(2, [(record.INSTANCE, 's', None)]),
    )
    assert not replica.present.select(
        racing, [host_state()], NOW, TAIL, (5, 0, 0), None
    )


def test_control_without_the_version_it_is_missed(monkeypatch):
    monkeypatch.setattr(
        present.Present, 'version', property(lambda _: 0, lambda *_: None),
        raising=False,
    )
    replica = a_replica(
        an_allocation(4, NOW + 10, TAIL), a_server('s', 4, NOW + 10)
    )
    racing = Racing(
        replica.indexes.main,
        lambda: replica.apply(2, [(record.INSTANCE, 's', None)]),
    )
    assert replica.present.select(
        racing, [host_state()], NOW, TAIL, (5, 0, 0), None
    )


class Slow(Racing):
    """An index of which a query takes longer than a change."""

    def _written(self):
        time.sleep(0.01)


def test_a_stream_of_changes_does_not_hold_up_a_reader():
    """As while a replica catches up with the ledger."""
    replica = a_replica(an_allocation(4, NOW + 10, TAIL))
    done = threading.Event()

    def change():
        for revision in itertools.count(2):
            if done.is_set():
                return
            server = a_server('s', 1 + revision % 2, TAIL)
            replica.apply(revision, [record.encode(server)])

    def read():
        replica.present.select(
            Slow(replica.indexes.main, None), [host_state()], NOW, TAIL,
            (1, 0, 0), None,
        )
        done.set()

    threads = [
        threading.Thread(target=each, daemon=True) for each in (change, read)
    ]
    for each in threads:
        each.start()
    in_time = done.wait(10)
    done.set()
    for each in threads:
        each.join()
    assert in_time


def test_a_batch_that_fails_changes_nothing():
    replica = a_replica(a_server('s', 4, NOW + 10))
    before = replica.present.headroom(
        replica.indexes.main, [host_state(['s'])], None
    )
    with pytest.raises(ValueError):
        replica.apply(2, [
            record.encode(a_server('s', 6, NOW + 10)),
            record.encode(a_server('t', 1, NOW + 10, on='nowhere')),
        ])
    assert before == replica.present.headroom(
        replica.indexes.main, [host_state(['s'])], None
    )


def test_of_no_record_nothing_is_left():
    replica = a_replica(a_server('s', 4, NOW + 10), a_server('t', 1))
    replica.apply(2, [
        (record.INSTANCE, 's', None), (record.INSTANCE, 't', None)
    ])
    assert not replica.present._on
    assert not replica.present._doubtful


uuids = st.frozensets(st.sampled_from('abcd'))


@given(st.lists(st.tuples(
    st.none() | st.integers(0, 3), st.none() | uuids, uuids, uuids,
    st.booleans(), st.integers(-1, 2), st.integers(-1, 2),
)))
def test_both_indexes_look_closer_at_the_same_hosts(hosts):
    host_states = [
        HostState(uuid=uuid, instances=named and dict.fromkeys(named))
        for uuid, named, *_ in hosts
    ]
    known = {
        n: types.SimpleNamespace(
            room=[0, most], given_back=set(given_back), reserved=reserved,
            instances=dict.fromkeys(instances),
        )
        for n, (_, _, given_back, instances, reserved, _, most)
        in enumerate(hosts)
    }
    room = array.array('q', [n for *_, left, _ in hosts for n in (0, left)])
    assert ext.unconfirmed(
        host_states, known, room, 2
    ) == ext_host_state.unconfirmed(host_states, known, room, 2)


ends = st.integers(NOW - 3, TAIL - 1) | st.just(window.FOREVER)
servers = st.builds(
    lambda vcpus, end, bound, preemptible, used: {
        'vcpus': vcpus, 'end': end, 'preemptible': preemptible,
        'reservation_id': 'r' if bound else None,
        'used': None if used is None else {'VCPU': used},
    },
    st.integers(0, 4), ends, st.booleans(), st.booleans(),
    st.none() | st.integers(0, 4),
)
allocations = st.lists(st.tuples(
    st.integers(0, 5), st.integers(NOW, TAIL - 1), st.integers(1, 30),
    st.sampled_from('rq'),
), max_size=3, unique_by=lambda t: (t[1], t[3]))


def counted_by_nova(known):
    return known['vcpus'] if known['used'] is None else known['used']['VCPU']


def needed(there, leases, at):
    """Return the need at a time, of the servers that really exist."""
    inside = sum(
        known['vcpus'] for known in there
        if known['reservation_id'] and not known['preemptible']
        and known['end'] > NOW
    )
    need = sum(
        max(vcpus, inside) if of == 'r' else vcpus
        for vcpus, start, length, of in leases
        if vcpus and start <= at < start + length
    )
    for known in there:
        overdue = known['end'] <= NOW
        if known['preemptible'] or (known['reservation_id'] and not overdue):
            continue
        if overdue or at < known['end']:
            need += known['vcpus']
    return need


@given(
    st.dictionaries(st.sampled_from(SERVERS), servers),
    st.sets(st.sampled_from(SERVERS)), st.sets(st.sampled_from(SERVERS)),
    st.integers(0, 4), allocations, st.integers(1, VCPUS),
    st.integers(NOW + 1, TAIL),
)
@settings(deadline=None, max_examples=300)
def test_no_answer_is_looser_than_the_truth(
    known, left, unnamed, strangers, leases, vcpus, end
):
    """Some servers have left, Nova omits some, and some have no record."""
    replica = a_replica(
        *(an_allocation(n, s, s + d, of) for n, s, d, of in leases if n),
        *(a_server(uuid, **fields) for uuid, fields in known.items()),
    )
    there = {u: s for u, s in known.items() if u not in left}
    used = strangers + sum(map(counted_by_nova, there.values()))
    seen = host_state(set(there) - unnamed, used)
    truth = all(
        strangers + needed(there.values(), leases, at) + vcpus <= VCPUS
        for at in range(NOW, end)
    )

    found = has_room(replica, seen, vcpus, end)

    assert truth or not found
    # The difference between Placement and Nova lasts as long as the record,
    # and so does the use of a reservation.
    beyond = any(
        known[uuid]['vcpus'] > counted_by_nova(known[uuid])
        or known[uuid]['reservation_id']
        for uuid in left & known.keys()
    )
    if not beyond and not unnamed & there.keys():
        assert found == truth


two_hosts = st.lists(st.tuples(
    st.sampled_from('gh'), st.booleans(), st.integers(NOW + 1, NOW + 20),
    servers,
), max_size=len(SERVERS))


@given(two_hosts, st.sets(st.sampled_from(SERVERS)), st.integers(1, VCPUS))
@settings(deadline=None)
def test_hosts_are_judged_together_as_each_alone(known, left, vcpus):
    """A server that has left one host is ignored on that host alone."""
    records, there = [], {'g': [], 'h': []}
    for uuid, (on, moves, leaves, fields) in zip(SERVERS, known, strict=False):
        end = fields['end']
        if (
            moves and fields['vcpus'] and not fields['preemptible']
            and leaves < end
        ):
            [other] = {'g', 'h'} - {on}
            fields = {**fields, 'reservation_id': None, 'path': (
                Stay(on, 0, leaves), Stay(other, leaves - 5, end)
            )}
        records.append(a_server(uuid, on=on, **fields))
        if uuid not in left:
            there[on].append((uuid, counted_by_nova(fields)))
    replica = a_replica(a_host('g'), *records)
    seen = [
        host_state([u for u, _ in here], sum(n for _, n in here), uuid)
        for uuid, here in there.items()
    ]

    def select(host_states):
        return replica.present.select(
            replica.indexes.main, host_states, NOW, TAIL, (vcpus, 0, 0), None
        )

    assert select(seen) == [h for h in seen if select([h])]
    assert horizons(replica, seen, vcpus) == [
        *horizons(replica, seen[:1], vcpus),
        *horizons(replica, seen[1:], vcpus),
    ]
    assert select(seen) == [
        h for h, seconds in zip(
            seen, horizons(replica, seen, vcpus), strict=True
        ) if NOW + seconds >= TAIL
    ]
