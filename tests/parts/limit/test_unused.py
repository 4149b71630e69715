# SPDX-License-Identifier: Apache-2.0
"""Leases that are not used after their start, and what is given back."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.limit.unused import Unused
from tests import looped
from tests import told

AFTER, NOTICE = 600, 300
LENGTH = 7200


@pytest.fixture
def conf(conf):
    for name, value in (
        ('unused_after', AFTER), ('unused_notice', NOTICE),
        ('on_unused', 'shrink'),
    ):
        conf.set_override(name, value, 'manager')
    return conf


@pytest.fixture
def world(world):
    for name in 'abc':
        world.add_host(name)
    return world


@pytest.fixture
def notified(world, monkeypatch):
    """The ids of the leases of each notification ``lease.unused``."""
    return told.notified(
        world.manager, monkeypatch, lambda kind, payload: (
            payload['lease_id'] if kind == 'lease.unused' else None
        ),
    )


def started(world, *reservations):
    lease = world.create(*reservations, start='now', end=LENGTH)
    world.run()
    return world.lease(lease)


def boot(world, lease, node, number=0):
    """Create a server that uses a reservation, and let the manager see it."""
    server = world.add_server(
        node, lease.project_id, created=world.now,
        reservation_id=lease.reservations[number].id,
    )
    world.manager.instances.sync()
    return server


def look(world, seconds):
    world.clock.now += seconds
    looped.of(world.manager, Unused).step()
    world.run()
    world.run(5)
    assert world.ledger.check() == []


def nodes(world, lease):
    names = {h.uuid: h.hypervisor_hostname for h in world.ledger.hosts()}
    return {names[host] for _, host, _ in world.held(lease)}


@pytest.mark.row('F79', 'F99')
def test_the_owner_is_notified_before(world, whole, notified):
    lease = started(world, whole(2, 2))
    look(world, AFTER - 10)
    assert notified == []
    look(world, 10)
    assert notified == [lease.id]
    look(world, NOTICE - 10)
    assert notified == [lease.id]
    assert world.lease(lease).status == 'ACTIVE'
    assert len(nodes(world, lease)) == 2


@pytest.mark.row('F79')
def test_a_lease_without_servers_ends(world, whole, slots):
    lease = started(world, whole(2, 2), slots(2, 1))
    look(world, AFTER)
    look(world, NOTICE)
    assert world.lease(lease).status == 'TERMINATED'
    assert world.create(whole(3, 3), start='now', end=900)


def test_unused_hosts_are_given_back(world, whole, notified):
    lease = started(world, whole(2, 3))
    node = sorted(nodes(world, lease))[1]
    server = boot(world, lease, node)
    look(world, AFTER)
    look(world, NOTICE)
    left = world.lease(lease)
    assert (left.status, nodes(world, lease)) == ('ACTIVE', {node})
    [reservation] = left.reservations
    assert (reservation.demand.least, reservation.demand.most) == (1, 1)
    assert server.uuid in world.nova.stored
    # Nothing is left to be given back.
    look(world, NOTICE)
    assert world.lease(lease).status == 'ACTIVE'
    assert notified == [lease.id]


def test_unused_reservations_and_instances_are_given_back(world, whole, slots):
    lease = started(world, slots(3, 1, affinity=None), whole(1, 1))
    [shared] = {
        host for reservation, host, _ in world.held(lease)
        if reservation == lease.reservations[0].id
    }
    [host] = world.ledger.hosts([shared])
    boot(world, lease, host.hypervisor_hostname)
    look(world, AFTER)
    look(world, NOTICE)
    [left] = world.lease(lease).reservations
    assert left.id == lease.reservations[0].id
    assert left.demand.amount == 1
    assert world.create(whole(2, 2), start='now', end=900)


def test_a_lease_that_is_used_in_time_stays(world, whole, notified):
    lease = started(world, whole())
    look(world, AFTER)
    server = boot(world, lease, *nodes(world, lease))
    look(world, NOTICE)
    assert world.lease(lease).status == 'ACTIVE'
    # If the lease becomes unused again, the owner is notified again.
    del world.nova.stored[server.uuid]
    world.manager.instances.sync()
    look(world, 60)
    assert world.lease(lease).status == 'ACTIVE'
    assert notified == [lease.id, lease.id]
    look(world, NOTICE)
    assert world.lease(lease).status == 'TERMINATED'


def test_end_leaves_a_lease_with_a_server_alone(world, conf, whole):
    conf.set_override('on_unused', 'end', 'manager')
    used, unused = started(world, whole(2, 2)), started(world, whole())
    boot(world, used, sorted(nodes(world, used))[0])
    look(world, AFTER)
    look(world, NOTICE)
    assert len(nodes(world, used)) == 2
    assert world.lease(unused).status == 'TERMINATED'


@pytest.mark.parametrize('option, value', [
    ('on_unused', 'notify'), ('unused_after', 0),
])
def test_without_the_options_nothing_is_given_back(
    world, conf, whole, option, value
):
    conf.set_override(option, value, 'manager')
    lease = started(world, whole())
    for _ in range(4):
        look(world, AFTER)
    assert world.lease(lease).status == 'ACTIVE'


@pytest.mark.parametrize('control', [False, True])
def test_a_server_that_comes_at_the_last_moment(
    world, whole, monkeypatch, control
):
    """The lease stays: the commit looks once more. The control does not."""
    lease = started(world, whole())
    [node] = nodes(world, lease)
    look(world, AFTER)
    update = world.manager.leases.update

    def update_later(*args, choose):
        boot(world, lease, node)
        return update(*args, choose=None if control else choose)

    monkeypatch.setattr(world.manager.leases, 'update', update_later)
    look(world, NOTICE)
    status = 'TERMINATED' if control else 'ACTIVE'
    assert world.lease(lease).status == status


def test_a_lease_that_cannot_be_changed_is_tried_again(
    world, whole, monkeypatch
):
    lease = started(world, whole())
    look(world, AFTER)

    def refuse(*args, **options):
        raise exception.Unavailable('not now')

    with monkeypatch.context() as patch:
        patch.setattr(world.manager.leases, 'update', refuse)
        look(world, NOTICE)
    assert world.lease(lease).status == 'ACTIVE'
    look(world, 60)
    assert world.lease(lease).status == 'TERMINATED'
