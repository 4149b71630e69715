# SPDX-License-Identifier: Apache-2.0
"""The capacity of hosts in a window, compared with brute force."""

from collections import Counter
import dataclasses
import itertools

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Instances
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.inventory import RESOURCE_CLASSES
from blazar_sched.domain.window import Window
from blazar_sched.placing import host_selection
from blazar_sched.placing.room import Room
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service.manager import capacity

NOW = 1000
LAST = 1024
GPU = 'CUSTOM_GPU'
CLASSES = ('VCPU', 'MEMORY_MB', 'DISK_GB', GPU)
SLOT = {'VCPU': 2, 'MEMORY_MB': 1, GPU: 1}
TIMES = st.integers(NOW - 3, LAST + 3)
ENDS = TIMES | st.just(window.FOREVER)
PARTS = st.tuples(
    st.just(NOW) | st.integers(NOW, LAST), st.integers(NOW, LAST)
).filter(lambda ends: ends[0] < ends[1])


class Ledger:
    """A ledger with a replica, and commits between the queries."""

    def __init__(self, nouns, overcommit=True):
        self.replica = state.Replica(
            accounting.LedgerAccounting, overcommit=overcommit
        )
        self.commit(*map(record.encode, nouns))
        self.later = []

    def commit(self, *records):
        self.replica.apply(self.replica.revision + 1, records)

    def read_replica(self, query):
        found = query(self.replica)
        if self.later:
            self.commit(*self.later.pop(0))
        return found


class Driver:
    """A driver for which each flavor requests SLOT."""

    def validate(self, parameters, project_id):
        return Slots(
            SLOT, resource_properties=parameters['resource_properties']
        )


def ask(ledger, now=NOW, **wanted):
    drivers = {'flavor:instance': Driver()}
    return capacity.Capacity(ledger, drivers, lambda: now).get('p', **wanted)


def amounts(most):
    """Generate amounts of some resource classes."""
    return st.dictionaries(
        st.sampled_from(CLASSES), st.integers(1, most), min_size=1
    )


@st.composite
def sites(draw):
    """Generate hosts, allocations and instances of a small site."""
    hosts = [
        Host(
            uuid=f'h{n}', id=str(n), hypervisor_hostname=f'h{n}',
            inventory={
                name: Inventory(
                    total, reserved=draw(st.integers(0, min(total, 2))),
                    allocation_ratio=draw(st.sampled_from((0.5, 1.0, 2.0))),
                )
                for name, total in draw(amounts(8)).items()
            },
            disabled=draw(st.sampled_from((False, False, False, True))),
            projects=draw(st.sampled_from(((), (), ('p',), ('other',)))),
        )
        for n in range(draw(st.integers(0, 3)))
    ]
    if not hosts:
        return [], [], []
    on = st.sampled_from([h.uuid for h in hosts])
    allocations = []
    for n in range(draw(st.integers(0, 4))):
        start = draw(st.just(NOW) | TIMES)
        whole = draw(st.booleans())
        allocations.append(Allocation(
            id=f'a{n}', reservation_id=f'r{n}', host=draw(on), start=start,
            end=draw(ENDS.filter(lambda end, start=start: end > start)),
            amounts={} if whole else draw(amounts(4)), whole=whole
        ))
    instances = [
        Instance(
            uuid=f'i{n}', host=draw(on), project_id='any',
            amounts=draw(amounts(4)), end=draw(ENDS),
            reservation_id=draw(st.sampled_from((None, None, 'r0'))),
            preemptible=draw(st.sampled_from((False, False, True))),
        )
        for n in range(draw(st.integers(0, 4)))
    ]
    return hosts, allocations, instances


def _overdrawn(allocations, instances):
    """Yield what bound instances use beyond their reservation.

    An allocation of none of these classes takes part in none of their sums.
    """
    for each in allocations:
        if each.whole or not each.amounts.keys() & set(RESOURCE_CLASSES):
            continue
        used = Counter()
        for i in instances:
            if (
                (i.reservation_id, i.host) == (each.reservation_id, each.host)
                and not i.preemptible and i.end > NOW
            ):
                used.update(i.amounts)
        beyond = {
            name: used[name] - each.amounts.get(name, 0)
            for name in RESOURCE_CLASSES
            if used[name] > each.amounts.get(name, 0)
        }
        if beyond:
            yield dataclasses.replace(each, amounts=beyond)


class Brute:
    """A reference that checks each second by itself."""

    def __init__(self, hosts, allocations, instances, overcommit=True):
        self.overcommit = overcommit
        self.hosts = [
            h for h in hosts if not h.disabled and h.projects in ((), ('p',))
        ]
        self.reserved_alone = allocations
        self.allocations = [*allocations, *_overdrawn(allocations, instances)]
        self.instances = [
            (i, window.FOREVER if i.end <= NOW else i.end)
            for i in instances
            # A bound instance counts once its reservation is over.
            if not i.preemptible and (i.reservation_id is None or i.end <= NOW)
        ]

    def held(self, host, at):
        return self._on(host, at, self.allocations)

    def _on(self, host, at, allocations):
        return [
            a for a in allocations
            if a.host == host.uuid and a.start <= at < a.end
        ]

    def servers(self, host, at):
        return [
            i.amounts for i, end in self.instances
            if i.host == host.uuid and at < end
        ]

    def is_free(self, host, at):
        return not self.held(host, at) and not any(
            name in host.inventory or name != GPU
            for amounts in self.servers(host, at)
            for name in amounts
        )

    def used(self, host, name, at):
        if name not in host.inventory:
            return 0
        return sum(each.get(name, 0) for each in self.servers(host, at))

    def reserved(self, host, name, at):
        held = self.held(host, at)
        rest = max(0, host.capacity(name) - self.used(host, name, at))
        if any(a.whole for a in held):
            return rest
        return min(rest, sum(a.amounts.get(name, 0) for a in held))

    def free(self, host, name, at):
        if any(a.whole for a in self.held(host, at)):
            return 0
        gone = self.used(host, name, at) + self.reserved(host, name, at)
        return max(0, host.capacity(name) - gone)

    def reservable(self, host, name, at):
        free = self.free(host, name, at)
        if self.overcommit or name == GPU or name not in host.inventory:
            return free
        has = host.inventory[name]
        # What servers use beyond their reservation is not reserved.
        reserved = sum(
            a.amounts.get(name, 0)
            for a in self._on(host, at, self.reserved_alone)
        )
        return max(0, min(free, has.total - has.reserved - reserved))

    def available(self, host, name, part):
        return min(self.reservable(host, name, at) for at in range(*part))

    def part(self, part):
        has = {name for h in self.hosts for name in h.inventory}
        return {
            'hosts': sum(
                all(self.is_free(h, at) for at in range(*part))
                for h in self.hosts
            ),
            'instances': sum(
                min(
                    self.available(h, name, part) // amount
                    for name, amount in SLOT.items()
                )
                for h in self.hosts
            ),
            'resources': [
                {
                    'resource_class': name,
                    'total': sum(h.capacity(name) for h in self.hosts),
                    'reserved': sum(
                        self.reserved(h, name, part[0]) for h in self.hosts
                    ),
                    'used': sum(
                        self.used(h, name, part[0]) for h in self.hosts
                    ),
                    'available': sum(
                        self.available(h, name, part) for h in self.hosts
                    ),
                }
                for name in sorted(has)
            ],
        }


@pytest.mark.row('F28')
@hypothesis.settings(deadline=None, max_examples=80)
@hypothesis.given(sites(), PARTS, st.integers(1, 5), st.booleans())
def test_each_part_is_what_each_second_of_it_says(
    site, ends, count, overcommit
):
    start, end = ends
    count = min(count, end - start)
    answer = ask(
        Ledger(itertools.chain(*site), overcommit), start=start, end=end,
        parts=count, flavor_id='any',
    )
    brute = Brute(*site, overcommit)
    assert (answer['start'], answer['end']) == ends
    assert answer['hosts'] == len(brute.hosts)
    borders = [start, *(part['end'] for part in answer['parts'])]
    assert borders[-1] == end
    assert len(answer['parts']) == count
    lengths = [b - a for a, b in itertools.pairwise(borders)]
    assert max(lengths) - min(lengths) <= 1
    for part in answer['parts']:
        each = part.pop('start'), part.pop('end')
        assert part == brute.part(each)


@pytest.mark.row('F28')
@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(sites(), PARTS, st.booleans())
def test_a_lease_gets_what_is_there_and_no_more(site, ends, overcommit):
    start, end = ends
    ledger = Ledger(itertools.chain(*site), overcommit)
    [part] = ask(ledger, start=start, end=end, flavor_id='any')['parts']
    replica = ledger.replica
    known = replica.catalog.meeting(requirements.ANY, 'p')
    asked = Room(replica.indexes, Window(start, end)), known
    assert part['hosts'] == len(host_selection.place_hosts(*asked, 0, 9))

    def place(count):
        host_selection.place_instances(*asked, Instances(SLOT, count))

    if part['instances']:
        place(part['instances'])
    with pytest.raises(exception.NotEnoughHostsAvailable):
        place(part['instances'] + 1)


def on_one_host(**values):
    return Host(**{
        'uuid': 'h', 'id': '1', 'hypervisor_hostname': 'h',
        'inventory': {'VCPU': Inventory(8)}, **values,
    })


def server(uuid, vcpus=1, **values):
    return Instance(**{
        'uuid': uuid, 'host': 'h', 'project_id': 'any',
        'amounts': {'VCPU': vcpus}, **values,
    })


def test_each_part_is_of_what_is_known_by_then():
    ledger = Ledger([on_one_host(), server('a', 2), server('b', 1)])
    more = on_one_host(uuid='new', inventory={'PCPU': Inventory(4)})
    ledger.later = [
        [record.encode(server('a', 3))],
        [('instance', 'b', None)],
        [],
        [record.encode(more)],
        [('host', 'new', None)],
    ]
    parts = ask(ledger, parts=6)['parts']
    assert [
        {r['resource_class']: r['used'] for r in part['resources']}
        for part in parts
    ] == [
        {'VCPU': 3}, {'VCPU': 4}, {'VCPU': 3}, {'VCPU': 3},
        {'PCPU': 0, 'VCPU': 3}, {'VCPU': 3},
    ]
    assert ledger.later == []


@pytest.mark.parametrize('bound_to', [None, 'r'])
@pytest.mark.parametrize('end, used', [(-1, 2), (0, 2), (1, 0)])
def test_server_past_its_end_counts_for_ever(end, used, bound_to):
    late = server('a', 2, end=NOW + end, reservation_id=bound_to)
    [part] = ask(Ledger([on_one_host(), late]), start=NOW + 5)['parts']
    [vcpus] = part['resources']
    assert (vcpus['used'], vcpus['reserved']) == (used, 0)


def test_capacity_leaves_the_index_as_it_was():
    ledger = Ledger([on_one_host(), server('a', end=NOW + 5)])
    before = ledger.replica.indexes.main.dump()
    ask(ledger, start=NOW + 1, parts=5)
    assert ledger.replica.indexes.main.dump() == before


def test_later_stays_of_instances_are_in_use_when_they_begin():
    hosts = [
        Host(name, name, name, inventory={'VCPU': Inventory(8)})
        for name in 'ab'
    ]
    path = (Stay('a', 0, LAST), Stay('b', LAST - 10, window.FOREVER))
    ledger = Ledger([*hosts, Instance('i', 'a', 'p', {'VCPU': 3}, path=path)])

    def used(start):
        [part] = ask(ledger, start=start, end=start + 1, parts=1)['parts']
        [figures] = [
            each for each in part['resources']
            if each['resource_class'] == 'VCPU'
        ]
        return figures['used'], figures['reserved'], figures['available']

    assert used(LAST - 11) == (3, 0, 13)
    assert used(LAST - 10) == (6, 0, 10)
    assert used(LAST) == (3, 0, 13)
