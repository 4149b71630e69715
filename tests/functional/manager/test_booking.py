# SPDX-License-Identifier: Apache-2.0
"""The record of a server from nova-scheduler's choice of its host on."""

import dataclasses

import pytest

from blazar_sched.domain.instance import Instance
from blazar_sched.domain.relocation import Features
from blazar_sched.replica import wire
from blazar_sched.service import metrics
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import instances

FEATURES = Features({}, {}, None, 512, local_disk=False, devices=False)
VCPUS = 4


@pytest.fixture
def world(conf, world):
    """Two hosts."""
    for name in 'a', 'b':
        world.add_host(name, VCPUS)
    return world


@pytest.fixture
def relocating(conf, world):
    for name, value in {
        'relocate_instances': True, 'relocation_lead': 60,
        'relocation_shortest_stay': 60, 'relocation_notice': 300,
    }.items():
        conf.set_override(name, value, 'manager')
    return world


def place(world, node, vcpus=1, placed_at=None, claim=None, **values):
    """Have a server placed on a host; return what Nova shows of the server."""
    server = world.add_server(
        None, vcpus=vcpus, features=FEATURES, status='BUILD',
        task='scheduling', reservation_id=claim, **values,
    )
    page = wire.instance_page(Instance(
        server.uuid, world.host(node).uuid, server.project_id, server.amounts,
        movable='live', building=True, reservation_id=claim, claim=claim,
    ))
    world.manager.endpoint.book_instance(
        {}, page=page, placed_at=world.now if placed_at is None else placed_at
    )
    return server


def change(world, server, **values):
    new = dataclasses.replace(server, **values)
    world.nova.stored[server.uuid] = new
    return new


def built(world, server, node):
    change(world, server, node=node, status='ACTIVE', task=None)


def look(world):
    world.manager.instances.poll()


def sync(world):
    world.manager.instances.sync()


def record(world, server):
    return world.ledger.instance(server.uuid)


class TestBook:
    @pytest.mark.row('F96')
    def test_counts_before_nova_names_its_host(self, world):
        place(world, 'a')
        world.refuse(hosts(2, 2))
        world.create(hosts(1))
        world.check()

    def test_without_the_booking_the_lease_has_its_host(
        self, world, monkeypatch
    ):
        """The control."""
        monkeypatch.setattr(
            world.manager.instances, 'book', lambda *args: None
        )
        place(world, 'a')
        world.create(hosts(2, 2))

    @pytest.mark.parametrize('see', [look, sync])
    @pytest.mark.parametrize('shown, found', [
        ({}, ('a', True)),
        ({'node': 'a', 'status': 'ACTIVE', 'task': None}, ('a', False)),
        # The compute service of the first host has refused.
        ({'node': 'b', 'status': 'ACTIVE', 'task': None}, ('b', False)),
        ({'status': 'ERROR', 'task': None}, None),
        (None, None),
    ], ids=['builds', 'as booked', 'elsewhere', 'failed', 'deleted'])
    def test_record_is_what_nova_shows(self, world, see, shown, found):
        server = place(world, 'a')
        if shown is None:
            del world.nova.stored[server.uuid]
        else:
            change(world, server, **shown)
        see(world)
        left = record(world, server)
        assert found == (left and (world.names()[left.host], left.building))
        world.check()

    def test_building_server_is_queried_again(self, world):
        """No notification is needed."""
        server = place(world, 'a')
        look(world)
        built(world, server, 'a')
        look(world)
        assert not record(world, server).building

    def test_a_server_that_moves_keeps_its_record(self, world):
        server = world.add_server('a', features=FEATURES)
        sync(world)
        before = record(world, server)
        world.manager.instances.book(
            dataclasses.replace(
                before, host=world.host('b').uuid, building=True
            ),
            world.now,
        )
        assert record(world, server) == before

    def test_another_host_than_the_reservable_ones(self, world):
        world.manager.instances.book(
            Instance('i', 'elsewhere', 'p', {'VCPU': 1}, building=True),
            world.now,
        )
        assert world.ledger.instances() == []

    @pytest.mark.parametrize(('wanted', 'hinted'), [
        (instances(), True), (hosts(magnetic=True), False),
    ], ids=['by hint', 'magnetic'])
    def test_counts_in_its_reservation(self, world, wanted, hinted):
        """As a look at Nova's server would have it count."""
        lease = world.start_lease(wanted, project_id='mine')
        held = world.ledger.allocations()
        [reservation] = lease.reservations
        hint = reservation.id if hinted else None
        node = world.ledger.host(held[0][0].host).hypervisor_hostname
        server = place(
            world, node, claim=hint, project_id='mine', created=world.now
        )
        booked = record(world, server)
        assert booked.reservation_id == booked.claim == reservation.id
        built(world, server, node)
        look(world)
        assert record(world, server) == dataclasses.replace(
            booked, building=False
        )

    @pytest.mark.parametrize(('late', 'booked', 'told'), [
        (61, False, 1), (60, True, 0), (-60, True, 0), (-61, True, 1),
    ])
    def test_a_wrong_clock_or_an_old_announcement_is_told(
        self, world, caplog, late, booked, told
    ):
        """It waited on the bus until there was a manager, or a clock is off.
        """
        server = place(world, 'a', placed_at=world.now - late)
        assert (record(world, server) is not None) is booked
        assert caplog.text.count('placed') == told
        counted = world.manager.metrics.of(metrics.LATE_PLACEMENTS)
        assert counted._value.get() == told
        # Nova shows where it is.
        built(world, server, 'a')
        look(world)
        assert not record(world, server).building

    @pytest.mark.parametrize('page', [
        None, {}, {**wire.FORMAT, 'oldest': wire.WIRE_VERSION + 1},
        {**wire.FORMAT, 'record': ['instance', 'i', {}]},
    ])
    def test_an_unreadable_announcement_is_ignored(self, world, page):
        world.manager.endpoint.book_instance({}, page=page, placed_at=0)
        assert world.ledger.instances() == []


class TestPath:
    def test_path_is_booked_with_the_record(self, relocating):
        world = relocating
        world.create(hosts(1), start=1000, end=2000)
        [reserved] = world.ledger.allocations()
        node = world.ledger.host(reserved[0].host).hypervisor_hostname
        other = {'a': 'b', 'b': 'a'}[node]
        server = place(world, node)
        booked = record(world, server)
        assert [stay.host for stay in booked.path] == [
            world.host(node).uuid, world.host(other).uuid
        ]
        built(world, server, node)
        look(world)
        assert record(world, server).path == booked.path
        assert not record(world, server).building

    def test_nobody_else_gets_the_later_room(self, relocating):
        """Two schedulers have sent two instances to the same later room."""
        world = relocating
        world.create(hosts(1), start=1000, end=2000)
        [reserved] = world.ledger.allocations()
        node = world.ledger.host(reserved[0].host).hypervisor_hostname

        first = place(world, node, vcpus=2)
        second = place(world, node, vcpus=VCPUS - 1)

        assert record(world, first).path
        # Another host has room for one of them only.
        assert not record(world, second).path
        world.manager.relocations.step()
        built(world, first, node)
        built(world, second, node)
        sync(world)
        del world.nova.stored[first.uuid]
        sync(world)
        world.manager.relocations.step()
        assert record(world, second).path
