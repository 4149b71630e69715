# SPDX-License-Identifier: Apache-2.0
"""The hosts that a reservation may use, regardless of room."""

import dataclasses

import pytest

from blazar_sched.domain import requirements
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.reservation import Reservation
from blazar_sched.replica.catalog import Catalog
from blazar_sched.replica.catalog import MAX_REQUIREMENTS
from tests.unit.hosts import by_uuid
from tests.unit.hosts import HOSTS
from tests.unit.hosts import make_host
from tests.unit.hosts import make_index
from tests.unit.hosts import these


class TestCandidates:
    def test_only_reservable_hosts_that_match(self):
        hosts = [
            make_host('a', capabilities={'gpu': 'a100'}),
            make_host('b', capabilities={'gpu': 'v100'}),
            make_host('c', capabilities={'gpu': 'a100'}, reservable=False),
            make_host('d', vcpus=4, capabilities={'gpu': 'a100'}),
        ]
        requirement = requirements.parse(
            '["and", ["==", "$gpu", "a100"], [">=", "$vcpus", 8]]', 'x'
        )
        known = by_uuid(*hosts)
        catalog = Catalog(make_index(known), known)
        for _ in range(2):
            found = catalog.meeting(requirement, 'p')
            assert (found.hosts, list(found.rows)) == ({'a': hosts[0]}, [0])

    def test_all_reservable_hosts_when_nothing_is_required(self):
        found = these(make_index(HOSTS), HOSTS)
        assert (found.hosts, list(found.rows)) == (HOSTS, [0, 1, 2, 3])

    def test_hosts_that_changed_are_seen_once_the_catalog_forgot(self):
        known = dict(HOSTS)
        catalog = Catalog(make_index(known), known)
        assert len(catalog.meeting(requirements.all_of(), 'p').hosts) == 4
        del known['b']
        catalog.forget()
        found = catalog.meeting(requirements.all_of(), 'p')
        assert (list(found.hosts), list(found.rows)) == (
            ['a', 'c', 'd'], [0, 2, 3]
        )

    def test_more_requirements_than_are_remembered(self):
        catalog = Catalog(make_index(HOSTS), HOSTS)
        for _ in range(2):
            for vcpus in range(6, 6 + MAX_REQUIREMENTS):
                wanted = requirements.parse(f'["<=", "$vcpus", {vcpus}]', 'x')
                found = catalog.meeting(wanted, 'p')
                assert len(found.hosts) == 4 * (vcpus >= 8)

    @pytest.mark.row('F84')
    def test_a_disabled_host_is_not_used(self):
        hosts = by_uuid(make_host('a', disabled=True), make_host('b'))
        assert list(these(make_index(hosts), hosts).hosts) == ['b']

    @pytest.mark.row('F84')
    def test_a_restricted_host_is_for_its_projects(self):
        hosts = by_uuid(make_host('a', projects=('p', 'q')), make_host('b'))
        catalog = Catalog(make_index(hosts), hosts)
        for project, wanted in [('p', 'ab'), ('x', 'b'), ('q', 'ab')]:
            found = catalog.meeting(requirements.all_of(), project)
            assert list(found.hosts) == list(wanted)
        others = [
            catalog.meeting(requirements.all_of(), project)
            for project in ('x', 'y')
        ]
        assert others[0] is others[1]

    def test_a_host_that_is_held_stays_until_a_monitor_says_no(self):
        hosts = by_uuid(
            make_host('a', disabled=True), make_host('b', projects=('q',)),
            make_host('c', reservable=False),
            make_host('d', capabilities={'gpu': 'no'}, disabled=True),
            make_host('e'),
        )
        catalog = Catalog(make_index(hosts), hosts)
        wanted = requirements.parse('["not", ["==", "$gpu", "no"]]', 'x')
        found = catalog.meeting(wanted, 'p', kept=['a', 'b', 'c', 'd', 'x'])
        assert set(found.hosts) == {'a', 'b', 'e'}
        assert found.closed == {'a', 'b'}
        assert set(catalog.meeting(wanted, 'p').hosts) == {'e'}


class TestParts:
    def parts(self, times, otherwise):
        hosts = by_uuid(
            *(make_host(n, cleaning_time=own) for n, own in times.items())
        )
        index = make_index(hosts)
        found = these(index, hosts)
        parts = found.parts(index, otherwise)
        assert found.parts(index, otherwise) == parts
        return [
            (seconds, ''.join(part.hosts), index.row_keys(part.rows))
            for seconds, part in parts
        ]

    def test_by_the_time_that_holds_the_shortest_first(self):
        times = {'a': 2, 'b': None, 'c': 0, 'd': 1, 'e': None, 'f': 0}
        assert self.parts(times, 90) == [
            (0, 'cf', ['c', 'f']),
            (60, 'd', ['d']),
            (90, 'be', ['b', 'e']),
            (120, 'a', ['a']),
        ]
        assert self.parts(times, 60) == [
            (0, 'cf', ['c', 'f']),
            (60, 'bde', ['b', 'd', 'e']),
            (120, 'a', ['a']),
        ]

    @pytest.mark.parametrize('asked, order', [
        (None, ['abcd']), ((), ['b', 'd', 'a', 'c']),
        (('CUSTOM_GPU',), ['abcd']),
    ])
    def test_hosts_with_what_nobody_asks_for_come_last(self, asked, order):
        hosts = by_uuid(*(
            make_host(uuid, gpus=gpus)
            for uuid, gpus in {'a': 2, 'b': 0, 'c': 8, 'd': 1}.items()
        ))
        index = make_index(hosts)
        found = these(index, hosts).parts(
            index, 60, None if asked is None else frozenset(asked)
        )
        assert [''.join(part.hosts) for _, part in found] == order

    def test_equal_hosts_are_one_part(self):
        index = make_index(HOSTS)
        found = these(index, HOSTS)
        [(seconds, part)] = found.parts(index, 90)
        assert seconds == 90
        assert part is found

    def test_a_host_that_gets_a_time_is_seen_once_the_catalog_forgot(self):
        known = dict(HOSTS)
        index = make_index(known)
        catalog = Catalog(index, known)
        catalog.meeting(requirements.all_of(), 'p')
        known['b'] = make_host('b', cleaning_time=5)
        catalog.forget()
        found = catalog.meeting(requirements.all_of(), 'p')
        assert [s for s, _ in found.parts(index, 0)] == [0, 300]

    def test_disabled_host_that_is_kept_takes_no_more(self):
        known = by_uuid(
            make_host('a', cleaning_time=1, disabled=True), make_host('b')
        )
        index = make_index(known)
        found = Catalog(index, known).meeting(
            requirements.all_of(), 'p', ['a']
        )
        assert [(s, part.closed) for s, part in found.parts(index, 0)] == [
            (0, {'a'}), (60, {'a'})
        ]


DEFAULT = requirements.parse('["==", "$kind", "cheap"]', 'x')
KINDS = by_uuid(
    make_host('a', capabilities={'kind': 'cheap'}),
    make_host('b', capabilities={'kind': 'dear'}), make_host('c'),
)


SLOT = {'VCPU': 1, 'MEMORY_MB': 1, 'DISK_GB': 1}
DEAR = '["==", "$kind", "dear"]'


class TestDefault:
    def candidates(self, demand, default=DEFAULT, kept=()):
        wanted = Reservation('mine', 'lease', 'pending', demand)
        return self.catalog.candidates(wanted, 'p', default, kept)

    @pytest.fixture(autouse=True)
    def make_catalog(self):
        self.catalog = Catalog(make_index(KINDS), KINDS)

    @pytest.mark.parametrize('demand', [
        Hosts(1, 1),
        Hosts(1, 1, resource_properties='[]'),
        Hosts(1, 1, '[">", "$vcpus", "1"]'),
        Slots(SLOT),
        # The flavor's own requirement is not the requested one.
        Slots(SLOT, resource_properties='[">", "$vcpus", "1"]'),
    ])
    def test_default_requirement_is_for_reservations_without_one(self, demand):
        assert set(self.candidates(demand).hosts) == {'a'}
        found = self.candidates(demand, requirements.ANY)
        assert set(found.hosts) == {'a', 'b', 'c'}

    @pytest.mark.parametrize('demand', [
        Hosts(1, 1, resource_properties=DEAR),
        Slots(SLOT, resource_properties=DEAR, asked_properties=DEAR),
    ])
    def test_default_requirement_is_not_for_reservations_with_one(
        self, demand
    ):
        assert set(self.candidates(demand).hosts) == {'b'}

    def test_a_host_that_is_held_need_not_meet_it(self):
        found = self.candidates(Hosts(1, 1), kept=['b'])
        assert set(found.hosts) == {'a', 'b'}
        assert found.closed == {'b'}


class TestLargeInstances:
    """Placement gives one instance at most `max_unit` of a resource class."""

    def test_only_hosts_that_allow_the_amount(self):
        known = by_uuid(*(
            dataclasses.replace(make_host(name), inventory={
                'VCPU': Inventory(cores, 0, 16.0, max_unit=cores),
                'MEMORY_MB': Inventory(65536), 'DISK_GB': Inventory(1000),
            }) for name, cores in {'a': 8, 'b': 16, 'c': 32}.items()
        ))
        catalog = Catalog(make_index(known), known)

        def found(vcpus):
            wanted = Reservation('mine', 'lease', '', Slots(
                {'VCPU': vcpus, 'MEMORY_MB': 1, 'DISK_GB': 1}
            ))
            unsuited = {
                host.uuid
                for host in wanted.demand.unsuited(list(known.values()))
            }
            assert unsuited == {'a', 'b', 'c'} - set(
                catalog.candidates(wanted, 'p').hosts
            )
            assert set(catalog.relocation_targets(
                known['a'], wanted.demand.slot
            ).hosts) == {'a', 'b', 'c'} - unsuited
            return {'a', 'b', 'c'} - unsuited

        for vcpus, names in (
            (8, {'a', 'b', 'c'}), (9, {'b', 'c'}), (16, {'b', 'c'}),
            (32, {'c'}), (33, set()),
        ):
            assert found(vcpus) == names
        known['a'] = dataclasses.replace(
            known['a'], inventory=known['c'].inventory
        )
        catalog.forget()
        assert found(32) == {'a', 'c'}
