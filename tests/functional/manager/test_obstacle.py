# SPDX-License-Identifier: Apache-2.0
"""A refusal for lack of room says what is in the way."""

import json

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.window import FOREVER
from blazar_sched.service.booking import obstacle
from tests import closed
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances


@pytest.fixture
def refused(world):
    """refused(*reservations, …): the offer in the refusal of a lease."""

    def refused(*reservations, start=100, end=200, names=False, **values):
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            world.leases.create(
                world.values(*reservations, start=start, end=end, **values),
                offering=True, names=names,
            )
        return refusal.value.offer

    return refused


@pytest.fixture
def refuse(refused):
    """refuse(*reservations, …): what is in the way of a lease."""
    return lambda *asked, **values: refused(*asked, **values)['in_the_way']


def entry(kind, mine=False, host=None, hosts=1, **values):
    return {
        'kind': kind, 'mine': mine, 'name': None, 'lease_id': None,
        'server_id': None, 'host': host, 'hosts': hosts, **values,
    }


@pytest.mark.row('F74', 'F98')
def test_member_sees_own_leases_maintenances_and_a_number(world, refuse):
    world.add_hosts('a', 'b', 'c', 'd', 'e')
    mine = world.create(hosts(2, 2), start=50, end=150, name='mine')
    for end in 150, 180:
        world.create(start=90, end=end, project_id='other', name='secret')
    closed.close(
        world.ledger, 'e', world.now + 120, world.now + 300, 'psu', 'secret'
    )
    assert refuse(hosts(2, 2)) == [
        entry('lease', True, hosts=2, name='mine', lease_id=mine.id,
              end=world.now + 150),
        entry('maintenance', name='psu', end=world.now + 300),
        entry('lease', hosts=2, end=world.now + 180),
    ]


@pytest.mark.row('F98')
def test_who_sees_names_sees_every_host(world, refuse):
    world.add_hosts('a', 'b')
    other = world.create(
        hosts(2, 2), start=50, end=150, project_id='other', name='secret'
    )
    assert refuse(hosts(), names=True) == [
        entry('lease', host=name, name='secret', lease_id=other.id,
              end=world.now + 150)
        for name in 'ab'
    ]


def test_only_what_takes_suitable_hosts_in_the_window_is_named(
    world, refuse, refused
):
    world.add_host('a', rack='1')
    world.add_host('b', rack='2')
    first = json.dumps(['==', '$rack', '1'])
    world.create(hosts(resource_properties=first), start=0, end=100)
    mine = world.create(
        hosts(resource_properties=first), start=100, end=150, name='mine'
    )
    world.create(hosts(resource_properties=json.dumps(['==', '$rack', '2'])))
    found = refuse(hosts(resource_properties=first))
    assert [each['lease_id'] for each in found] == [mine.id]
    # Another window would not help.
    assert 'in_the_way' not in refused(hosts(3, 3))


def test_servers_are_named(world, refuse):
    world.add_hosts('a', 'b')
    mine = world.add_server('a', 'project', vcpus=8)
    world.add_server('b', 'other', vcpus=7)
    world.manager.instances.sync()
    assert refuse(instances(2)) == [
        entry('server', True, server_id=mine.uuid, end=FOREVER),
        entry('server', end=FOREVER),
    ]
    others = refuse(instances(2), project_id='third')
    assert [(each['kind'], each['hosts']) for each in others] == [
        ('server', 2),
    ]


def test_cleaning_time_belongs_to_its_lease(world, refuse):
    world.add_host('a', cleaning_time=1)
    mine = world.create(start=200, end=300, name='mine')
    assert refuse(hosts(), start=100, end=190) == [
        entry('lease', True, name='mine', lease_id=mine.id,
              end=world.now + 200),
    ]


def test_few_obstacles_are_named_and_the_others_counted(
    world, refused, monkeypatch
):
    world.add_host('a')
    for n in range(obstacle.MAX_SHOWN + 3):
        world.create(start=100 + n, end=101 + n)
    shown = refused(hosts())
    assert len(shown['in_the_way']) == obstacle.MAX_SHOWN
    assert shown['in_the_way_left_out'] == 3
    # A bounded number of rows is read.
    monkeypatch.setattr(obstacle, 'MAX_USES', 2)
    assert len(refused(hosts())['in_the_way']) == 2


class TestChange:
    def change(self, world, lease, **values):
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            world.leases.update(lease.id, 'project', values, offering=True)
        return refusal.value.offer['in_the_way']

    def test_lease_is_not_in_its_own_way(self, world):
        world.add_host('a')
        lease = world.create()
        other = world.create(start=200, end=300, name='next')
        assert self.change(world, lease, end=world.now + 250) == [
            entry('lease', True, name='next', lease_id=other.id,
                  end=world.now + 300),
        ]

    def test_active_lease_keeps_its_hosts(self, world):
        """What takes the other hosts is not in the way."""
        world.add_hosts('a', 'b')
        lease = world.create(start=0, end=100)
        world.run(1)
        both = world.create(hosts(2, 2), start=200, end=300, name='both')
        [found] = self.change(world, lease, end=world.now + 250)
        assert (found['lease_id'], found['hosts']) == (both.id, 1)
        found = self.change(world, lease, end=world.now + 250, reservations=[
            {'id': lease.reservations[0].id, 'min': 2, 'max': 2},
        ])
        assert [each['hosts'] for each in found] == [2]
