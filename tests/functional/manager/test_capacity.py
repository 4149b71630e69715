# SPDX-License-Identifier: Apache-2.0
"""What there is of hosts in a window, against plain brute force."""

import itertools

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import catalog
from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
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
PARTS = st.tuples(st.integers(NOW, LAST), st.integers(NOW, LAST)).filter(
    lambda ends: ends[0] < ends[1]
)


class Ledger:
    """A replica to look at, and what is committed between the looks."""

    def __init__(self, nouns, overcommit=True):
        self.replica = state.Replica(
            accounting.LedgerAccounting, overcommit=overcommit
        )
        self.commit(*map(record.encode, nouns))
        self.later = []

    def commit(self, *records):
        self.replica.apply(self.replica.revision + 1, records)

    def look(self, query):
        found = query(self.replica)
        if self.later:
            self.commit(*self.later.pop(0))
        return found


class Driver:
    """Has each flavor ask for SLOT."""

    def validate(self, parameters, project_id):
        return {
            'resource_properties': parameters['resource_properties'],
            'resources': SLOT,
        }


def ask(ledger, now=NOW, **wanted):
    drivers = {'flavor:instance': Driver()}
    return capacity.Capacity(ledger, drivers, lambda: now).get('p', **wanted)


def amounts(most):
    """Amounts of some resource classes."""
    return st.dictionaries(
        st.sampled_from(CLASSES), st.integers(1, most), min_size=1
    )


@st.composite
def sites(draw):
    """Return hosts, allocations and instances of a small site."""
    hosts = [
        Host(
            uuid=f'h{n}',
            id=str(n),
            hypervisor_hostname=f'h{n}',
            inventory={
                name: Inventory(
                    total,
                    reserved=draw(st.integers(0, min(total, 2))),
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
        start = draw(TIMES)
        whole = draw(st.booleans())
        allocations.append(
            Allocation(
                id=f'a{n}',
                reservation_id=f'r{n}',
                host=draw(on),
                start=start,
                end=draw(ENDS.filter(lambda end, start=start: end > start)),
                amounts={} if whole else draw(amounts(4)),
                whole=whole,
            )
        )
    instances = [
        Instance(
            uuid=f'i{n}',
            host=draw(on),
            project_id='any',
            amounts=draw(amounts(4)),
            end=draw(ENDS),
            reservation_id=draw(st.sampled_from((None, None, 'r0'))),
            preemptible=draw(st.sampled_from((False, False, True))),
        )
        for n in range(draw(st.integers(0, 4)))
    ]
    return hosts, allocations, instances


class Brute:
    """Looks at each second for itself."""

    def __init__(self, hosts, allocations, instances, overcommit=True):
        self.overcommit = overcommit
        self.hosts = [
            h for h in hosts
            if not h.disabled and h.projects in ((), ('p',))
        ]
        self.allocations = allocations
        self.instances = [
            (i, window.FOREVER if i.end <= NOW else i.end)
            for i in instances
            # A bound one counts once its reservation is over.
            if not i.preemptible and (
                i.reservation_id is None or i.end <= NOW
            )
        ]

    def held(self, host, at):
        return [
            a for a in self.allocations
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
        reserved = sum(a.amounts.get(name, 0) for a in self.held(host, at))
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
@hypothesis.settings(deadline=None, max_examples=200)
@hypothesis.given(
    sites(),
    PARTS,
    st.integers(1, 5),
    st.booleans(),
)
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


@hypothesis.settings(deadline=None, max_examples=100)
@hypothesis.given(sites(), PARTS, st.booleans())
def test_a_lease_gets_what_is_there_and_no_more(site, ends, overcommit):
    start, end = ends
    ledger = Ledger(itertools.chain(*site), overcommit)
    [part] = ask(ledger, start=start, end=end, flavor_id='any')['parts']
    replica = ledger.replica
    known = replica.catalog.meeting(catalog.ANY, 'p')
    asked = Room(replica.indexes, Window(start, end)), known
    assert part['hosts'] == len(host_selection.place_hosts(*asked, 0, 9))

    def place(count):
        host_selection.place_instances(
            *asked, host_selection.Slots(SLOT, count, None)
        )

    if part['instances']:
        place(part['instances'])
    with pytest.raises(exception.NotEnoughHostsAvailable):
        place(part['instances'] + 1)


def on_one_host(**values):
    return Host(
        **{
            'uuid': 'h',
            'id': '1',
            'hypervisor_hostname': 'h',
            'inventory': {'VCPU': Inventory(8)},
            **values,
        }
    )


def server(uuid, vcpus=1, **values):
    return Instance(
        **{
            'uuid': uuid,
            'host': 'h',
            'project_id': 'any',
            'amounts': {'VCPU': vcpus},
            **values,
        }
    )


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
def test_who_is_past_its_end_is_there_for_ever(end, used, bound_to):
    late = server('a', 2, end=NOW + end, reservation_id=bound_to)
    [part] = ask(Ledger([on_one_host(), late]), start=NOW + 5)['parts']
    [vcpus] = part['resources']
    assert (vcpus['used'], vcpus['reserved']) == (used, 0)


def test_nothing_is_left_changed():
    ledger = Ledger([on_one_host(), server('a', end=NOW + 5)])
    before = ledger.replica.indexes.main.dump()
    ask(ledger, start=NOW + 1, parts=5)
    assert ledger.replica.indexes.main.dump() == before


class TestWorld:
    """Over a ledger that has been asked for leases."""

    @pytest.fixture
    def get(self, world):
        """get(**wanted) -> the capacity, from 100 to 200 s from now."""

        def run(project_id='project', start=100, end=200, **wanted):
            return world.manager.capacity.get(
                project_id, start=world.now + start, end=world.now + end,
                **wanted,
            )

        return run

    @pytest.fixture
    def flavor(self, world):
        """flavor(**values) -> the id of a new one that is known."""

        def make(**values):
            made = Flavor(
                **{
                    'id': 'f',
                    'name': 'small',
                    'vcpus': 3,
                    'memory_mb': 512,
                    'disk_gb': 1,
                    **values,
                }
            )
            world.nova.known_flavors = [made]
            world.manager.flavors.sync()
            return made.id

        return make

    def figures(self, part, name='VCPU'):
        """Return total, reserved, used and available of a class."""
        [found] = [
            r for r in part['resources'] if r['resource_class'] == name
        ]
        return tuple(found.values())[1:]

    @pytest.mark.row('F28')
    def test_leases_are_seen_while_they_last(self, world, get, whole, slots):
        for name in 'abc':
            world.add_host(name)
        world.create(whole(), start=120, end=140)
        world.create(slots(2, 2), start=140, end=180)
        answer = get(parts=5)
        assert (answer['hosts'], len(answer['parts'])) == (3, 5)
        assert [self.figures(part) for part in answer['parts']] == [
            (24, 0, 0, 24),
            (24, 8, 0, 16),
            (24, 4, 0, 20),
            (24, 4, 0, 20),
            (24, 0, 0, 24),
        ]
        assert [part['hosts'] for part in answer['parts']] == [3, 2, 2, 2, 3]
        # What comes and goes meanwhile is not free throughout.
        [part] = get()['parts']
        assert self.figures(part) == (24, 0, 0, 16)
        assert part['hosts'] == 2

    def test_of_a_server_only_its_own_use_is_used(self, world, get, whole):
        world.add_host('a')
        world.add_host('b')
        lease = world.create(whole(), start='now', end=1000)
        [reservation] = lease.reservations
        world.run()
        [(_, uuid, _)] = world.held(lease)
        [on] = [h for h in world.ledger.hosts() if h.uuid == uuid]
        free = {'a': 'b', 'b': 'a'}[on.hypervisor_hostname]
        world.add_server(
            on.hypervisor_hostname, 'project', 2,
            reservation_id=reservation.id,
        )
        world.add_server(free, vcpus=3, end=world.now + 150)
        world.add_server(free, vcpus=4, preemptible=True)
        world.manager.instances.sync()
        first, second = get(parts=2)['parts']
        assert self.figures(first) == (16, 8, 3, 5)
        assert self.figures(second) == (16, 8, 0, 8)

    @pytest.mark.row('C47')
    def test_what_is_free_on_two_hosts_is_no_room_on_one(
        self, world, get, flavor
    ):
        for name in 'ab':
            world.add_host(name, vcpus=4)
            world.add_server(name, vcpus=2)
        world.manager.instances.sync()
        [part] = get(flavor_id=flavor(vcpus=3))['parts']
        assert self.figures(part) == (8, 0, 4, 4)
        assert part['instances'] == 0
        [part] = get(flavor_id=flavor(vcpus=2))['parts']
        assert part['instances'] == 2

    def test_hosts_are_those_that_the_project_could_reserve(
        self, world, get
    ):
        world.add_host('a')
        world.add_host('b', disabled=True)
        world.add_host('c', projects=['project'])
        world.add_host('d', projects=['another'])
        world.add_host('e')
        world.fail('e')
        assert get()['hosts'] == 2
        assert get('another')['hosts'] == 2
        assert get('nobody')['hosts'] == 1

    def test_hosts_are_those_that_are_asked_for(self, world, get):
        world.add_host('a', rack='7')
        world.add_host('b', vcpus=4, rack='8')

        def asking(text):
            answer = get(resource_properties=text)
            [part] = answer['parts']
            return answer['hosts'], part['hosts'], sum(
                r['total'] for r in part['resources']
                if r['resource_class'] == 'VCPU'
            )

        assert asking('["==", "$rack", "8"]') == (1, 1, 4)
        assert asking('["==", "$availability_zone", "nova"]') == (2, 2, 12)
        assert asking('["==", "$availability_zone", "mars"]') == (0, 0, 0)

    def test_what_the_flavor_asks_for_chooses_hosts(
        self, world, get, flavor
    ):
        world.placement.traits_.update(
            {world.add_host(name, register=False): traits
             for name, traits in {'a': ('CUSTOM_X',), 'b': ()}.items()}
        )
        for name in 'ab':
            world.hosts.create(name, {'rack': '7'})
        id_ = flavor(extra_specs={'trait:CUSTOM_X': 'required'})
        answer = get(
            flavor_id=id_, resource_properties='["==", "$rack", "7"]'
        )
        assert answer['hosts'] == 1
        [part] = answer['parts']
        assert (part['instances'], self.figures(part)) == (2, (8, 0, 0, 8))

    def test_without_a_window_it_is_a_day_from_now_on(self, world):
        world.add_host('a')
        answer = world.manager.capacity.get('project')
        [part] = answer['parts']
        for each in (answer, part):
            assert each['start'] == world.now
            assert each['end'] == world.now + 86400
        assert part['instances'] is None

    def test_no_hosts_at_all(self, get):
        answer = get()
        [part] = answer['parts']
        assert (answer['hosts'], part['hosts'], part['resources']) == (
            0, 0, []
        )

    @pytest.mark.parametrize(
        'wanted, field',
        [
            ({'start': -100}, 'start_date'),
            ({'start': 100, 'end': 100}, 'end_date'),
            ({'start': 100, 'end': 99}, 'end_date'),
            ({'end': window.FOREVER - 2_000_000_000}, 'end_date'),
            ({'parts': 101}, 'parts'),
            ({'resource_properties': '['}, 'resource_properties'),
            ({'resource_properties': '[' * 5000}, 'resource_properties'),
            ({'resource_properties': '["=="]'}, 'resource_properties'),
            ({'flavor_id': 'unknown'}, 'flavor_id'),
            (
                {'flavor_id': 'f', 'resource_properties': 'x'},
                'resource_properties',
            ),
        ],
    )
    def test_a_bad_value_is_refused_by_name(
        self, get, flavor, wanted, field
    ):
        flavor()
        with pytest.raises(exception.InvalidInput) as caught:
            get(**wanted)
        assert caught.value.field == field

    def test_another_projects_flavor_is_not_known(self, get, flavor):
        id_ = flavor(projects=('another',))
        with pytest.raises(exception.InvalidInput) as caught:
            get(flavor_id=id_)
        assert caught.value.field == 'flavor_id'
        assert get('another', flavor_id=id_)['hosts'] == 0

    def test_as_many_parts_as_seconds(self, world, get):
        world.add_host('a')
        parts = get(start=100, end=103, parts=3)['parts']
        assert [part['end'] - part['start'] for part in parts] == [1, 1, 1]
