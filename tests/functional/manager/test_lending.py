# SPDX-License-Identifier: Apache-2.0
"""Lending of what active leases do not use."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.lending import Lending
from blazar_sched.service.manager.timeline import Query
from tests.told import notified

AFTER, NOTICE = 600, 30
LENGTH, DAY = 7200, 86400


@pytest.fixture
def conf(conf):
    for name, value in (
        ('lend_after', AFTER), ('lend_notice', NOTICE),
        ('vacate_preemptible_order', ['delete']),
    ):
        conf.set_override(name, value, 'manager')
    return conf


@pytest.fixture
def world(world):
    for name in 'abcd':
        world.add_host(name)
    return world


@pytest.fixture(autouse=True)
def consistent(world):
    yield
    assert world.ledger.check() == []


def started(world, *reservations, seconds=AFTER, length=LENGTH):
    lease = world.create(*reservations, start='now', end=length)
    world.run()
    look(world, seconds)
    return world.lease(lease)


def look(world, seconds=0):
    world.clock.now += seconds
    world.manager.instances.sync()
    world.manager.lendings.step()
    world.run()


def lending(world, lease):
    [reservation] = world.lease(lease).reservations
    return Lending.decode(reservation.made)


def lent(world, lease):
    """Return the lent units by hypervisor hostname."""
    return by_name(world, lending(world, lease).lent)


def by_name(world, units):
    names = {h.uuid: h.hypervisor_hostname for h in world.ledger.hosts()}
    return {names[host]: count for host, count in units.items()}


def boot(world, lease, node, **values):
    return world.add_server(
        node, lease.project_id, created=world.now,
        reservation_id=lease.reservations[0].id, **values,
    )


def borrow(world, node, **values):
    return world.add_server(
        node, preemptible=True, created=world.now, **values
    )


def alive(world, *servers):
    return [server.uuid in world.nova.stored for server in servers]


def test_nothing_is_lent_unless_asked(world, whole):
    assert lent(world, started(world, whole(3, 3))) == {}


def test_nothing_is_lent_soon_after_the_start(world, whole):
    lease = started(world, whole(3, 3, lend=True), seconds=AFTER - 1)
    assert lent(world, lease) == {}
    look(world, 1)
    assert len(lent(world, lease)) == 2


def test_hosts_in_use_and_the_reserve_are_not_lent(world, whole):
    lease = started(world, whole(4, 4, lend=True), seconds=0)
    boot(world, lease, 'a')
    look(world, AFTER)
    [one, two] = lent(world, lease)
    assert 'a' not in (one, two)


def test_slots_in_use_and_the_reserve_are_not_lent(world, slots):
    lease = started(world, slots(6, 2, lend=True), seconds=0)
    boot(world, lease, 'a', vcpus=2)
    look(world, AFTER)
    # One of six is in use, one is the reserve.
    assert sum(lent(world, lease).values()) == 4


def test_the_reserve_is_what_was_booted_at_once(world, slots):
    lease = started(
        world, slots(8, 1, lend=True), seconds=0, length=2 * DAY
    )
    servers = [boot(world, lease, 'a') for _ in range(3)]
    look(world, AFTER)
    assert sum(lent(world, lease).values()) == 2
    for server in servers:
        del world.nova.stored[server.uuid]
    look(world, 60)
    assert sum(lent(world, lease).values()) == 5
    look(world, DAY - 61)
    assert sum(lent(world, lease).values()) == 5
    look(world, 61)
    assert sum(lent(world, lease).values()) == 7


def test_the_reserve_is_what_was_booted_at_once_during_a_recall(world, slots):
    """An owner recalls all before a burst, and lends again afterwards."""
    lease = started(world, slots(8, 1, lend=True))
    world.leases.recall(lease.id, lease.project_id)
    look(world, 5)
    look(world, 5)
    servers = [boot(world, lease, 'a') for _ in range(5)]
    look(world, 5)
    for server in servers:
        del world.nova.stored[server.uuid]
    look(world, 5)
    world.leases.update(lease.id, None, {'reservations': [
        {'id': lease.reservations[0].id, 'lend': True},
    ]})
    look(world, 5)
    assert sum(lent(world, lease).values()) == 3


@pytest.mark.row('F110')
def test_the_reserve_is_filled_again_without_anybody_leaving(world, whole):
    lease = started(world, whole(4, 4, lend=True))
    [kept] = {'a', 'b', 'c', 'd'} - set(lent(world, lease))
    borrowed, *_ = lent(world, lease)
    guest = borrow(world, borrowed, vcpus=4)
    look(world)
    boot(world, lease, kept)
    look(world, 5)
    left = lent(world, lease)
    assert len(left) == 2
    assert borrowed in left
    assert lending(world, lease).recalled == {}
    assert alive(world, guest) == [True]


def vcpus(world, parts=1, **wanted):
    """Return what is reserved and what is lent of the VCPUs, by part."""
    return [
        (each['reserved'], each['lent'])
        for part in world.manager.capacity.get(
            'project', parts=parts, **wanted
        )['parts']
        for each in part['resources'] if each['resource_class'] == 'VCPU'
    ]


def bars(world, project='project', names=False, **wanted):
    """Return the share of each bar, and the part of it that is lent."""
    rows = world.manager.timeline.get(Query(
        project, names, start=world.now, end=world.now + 60, **wanted
    ))['timeline']['rows']
    return sorted(
        (bar['share'], bar['lent']) for row in rows for bar in row['bars']
        if bar['kind'] != 'preemptible'
    )


def test_the_capacity_shows_what_is_lent(world, whole, slots):
    """Only for the present: what is lent later is decided later."""
    lease = started(world, whole(2, 2, lend=True))
    [borrowed] = lent(world, lease)
    assert vcpus(world, parts=2, end=world.now + 10) == [(16, 8), (16, None)]
    on = f'["==", "$hypervisor_hostname", "{borrowed}"]'
    assert vcpus(world, resource_properties=on) == [(8, 8)]
    # Slots of three VCPUs, two on each of two hosts; one is the reserve.
    started(world, slots(4, 3, lend=True))
    assert vcpus(world) == [(28, 8 + 3 * 3)]
    # What is recalled is the owner's once the guests are gone.
    guest = borrow(world, borrowed)
    look(world)
    world.leases.recall(lease.id, lease.project_id)
    look(world)
    assert vcpus(world) == [(28, 17)]
    look(world, NOTICE)
    look(world, 1)
    assert alive(world, guest) == [False]
    assert vcpus(world) == [(28, 9)]


def test_the_timeline_shows_what_is_lent_to_owner_and_admin(
    world, whole, slots
):
    started(world, whole(2, 2, lend=True))
    started(world, slots(3, 2, lend=True, affinity=True))
    shown = [(0.75, 0.5), (1, 0), (1, 1)]
    assert bars(world) == shown
    assert bars(world, 'admin', names=True) == shown
    others = [(0.75, None), (1, None), (1, None)]
    assert bars(world, 'other') == others
    # The rows of groups have the bars of the project alone.
    assert bars(world, group_by='zone') == [(0.1875, 0.125), (0.5, 0.25)]
    assert bars(world, 'other', group_by='zone') == []


def test_only_the_present_bar_of_a_host_is_lent(world, conf, whole):
    """Neither the cleaning time nor a former window of the host is."""
    conf.set_override('cleaning_time', 1, 'manager')
    lease = started(world, whole(1, 4, lend=True))
    change = [{'id': lease.reservations[0].id, 'min': 1, 'max': 1}]
    world.leases.update(lease.id, None, {'reservations': change})
    world.run()
    look(world)
    change[0].update(min=4, max=4)
    world.leases.update(lease.id, None, {'reservations': change})
    world.run()
    look(world)
    rows = world.manager.timeline.get(Query(
        'project', True, start=lease.start, end=world.now + 2 * LENGTH
    ))['timeline']['rows']
    here = {
        row['name']: [
            (bar['kind'], bar['lent']) for bar in row['bars'] if bar['lent']
        ]
        for row in rows
    }
    assert {name: each for name, each in here.items() if each} == {
        name: [('lease', 1)] for name in lent(world, lease)
    }
    assert len(lent(world, lease)) == 3


def test_a_server_that_has_to_go_is_notified_first(world, whole):
    lease = started(world, whole(2, 2, lend=True))
    [borrowed] = lent(world, lease)
    [kept] = set(world_hosts(world, lease)) - {borrowed}
    guest = borrow(world, borrowed)
    look(world)
    boot(world, lease, kept)
    look(world, 5)
    assert by_name(world, lending(world, lease).recalled) == {borrowed: 1}
    assert 'blazar_vacate_at' in world.nova.stored[guest.uuid].metadata
    look(world, NOTICE - 1)
    assert alive(world, guest) == [True]
    look(world, 1)
    look(world, 1)
    assert alive(world, guest) == [False]
    assert lending(world, lease).away == 0


def world_hosts(world, lease):
    names = {h.uuid: h.hypervisor_hostname for h in world.ledger.hosts()}
    return [names[host] for _, host, _ in world.held(lease)]


def test_only_as_many_servers_go_as_a_slot_needs(world, slots):
    lease = started(world, slots(8, 1, lend=True, affinity=True))
    [node] = lent(world, lease)
    guests = [borrow(world, node) for _ in range(7)]
    look(world)
    boot(world, lease, node)
    look(world, 5)
    assert by_name(world, lending(world, lease).recalled) == {node: 1}
    look(world, NOTICE)
    look(world, 1)
    assert sorted(alive(world, *guests)) == [False] + 6 * [True]


@pytest.mark.row('F110')
@pytest.mark.parametrize('kind', ['whole', 'slots'])
def test_a_recall_frees_all(world, kind, whole, slots):
    lease = started(
        world, whole(3, 3, lend=True) if kind == 'whole'
        else slots(12, 2, lend=True),
    )
    guests = [borrow(world, node) for node in lent(world, lease)]
    others = [world.add_server('d', vcpus=1)]
    look(world)
    world.leases.recall(lease.id, lease.project_id)
    look(world)
    assert lent(world, lease) == {}
    look(world, NOTICE)
    look(world, 1)
    if kind == 'whole':
        assert not any(alive(world, *guests))
    assert all(alive(world, *others))
    assert lending(world, lease).away == 0
    look(world, 600)
    assert lending(world, lease).away == 0


def test_the_operator_is_told_what_is_lent(world, whole, monkeypatch):
    told = notified(
        world.manager, monkeypatch, lambda kind, payload: (
            payload['lease_id'], payload['lent'],
        ) if kind == 'lease.lending' else None,
    )
    lease = started(world, whole(3, 3, lend=True))
    look(world)
    world.leases.recall(lease.id, None)
    look(world)
    assert told == [(lease.id, 2), (lease.id, 0)]


def test_another_project_cannot_recall(world, whole):
    lease = started(world, whole(3, 3, lend=True))
    with pytest.raises(exception.LeaseNotFound):
        world.leases.recall(lease.id, 'other')
    assert len(lent(world, lease)) == 2


def test_an_operator_who_lends_nothing_refuses(world, conf, whole):
    conf.set_override('lend', 'never', 'manager')
    with pytest.raises(exception.InvalidInput, match='lends nothing') as e:
        world.create(whole(1, 1, lend=True))
    assert e.value.field == 'lend'


def test_an_operator_who_lends_no_more_takes_back(world, conf, whole):
    lease = started(world, whole(3, 3, lend=True))
    conf.set_override('lend', 'never', 'manager')
    look(world, 5)
    look(world)
    assert lending(world, lease).away == 0


def test_the_default_of_the_operator(world, conf, whole):
    conf.set_override('lend', 'by-default', 'manager')
    assert len(lent(world, started(world, whole(2, 2)))) == 1
    assert lent(world, started(world, whole(2, 2, lend=False))) == {}


def test_a_lease_that_gives_up_hosts_forgets_what_these_lent(world, whole):
    lease = started(world, whole(1, 4, lend=True))
    world.leases.update(lease.id, None, {'reservations': [
        {'id': lease.reservations[0].id, 'min': 1, 'max': 2},
    ]})
    world.run()
    look(world, 5)
    assert set(lent(world, lease)) < set(world_hosts(world, lease))
    assert len(lent(world, lease)) == 1


def test_the_end_of_a_lease_leaves_the_guests_alone(world, whole):
    lease = started(world, whole(3, 3, lend=True))
    guests = [borrow(world, node) for node in lent(world, lease)]
    look(world, LENGTH)
    assert world.lease(lease).status == 'TERMINATED'
    look(world)
    assert all(alive(world, *guests))


@pytest.mark.parametrize('first', [True, False])
def test_two_managers_lend_once(world, whole, first):
    """A manager that was slow writes nothing that another has changed."""
    lease = started(world, whole(4, 4, lend=True))
    [kept] = {'a', 'b', 'c', 'd'} - set(lent(world, lease))
    slow = world.manager.lendings
    real = slow._ledger.commit
    done = []

    def commit(work):
        if not done:
            done.append(True)
            boot(world, lease, kept)
            world.manager.instances.sync()
            slow._ledger.commit = real
            slow.step()
        return real(work)

    boot(world, lease, kept)
    world.manager.instances.sync()
    slow._ledger.commit = commit
    try:
        slow.step()
    finally:
        slow._ledger.commit = real
    assert len(lent(world, lease)) == 2
    assert done


def test_what_is_lent_survives_another_start(world, whole):
    """A lease that gets one more host leaves the guests where they are."""
    lease = started(world, whole(2, 3, lend=True))
    [*borrowed] = lent(world, lease)
    guests = [borrow(world, node) for node in borrowed]
    look(world)
    world.leases.update(lease.id, None, {'reservations': [
        {'id': lease.reservations[0].id, 'min': 4, 'max': 4},
    ]})
    world.run()
    look(world)
    assert all(alive(world, *guests))
    assert set(borrowed) <= set(lent(world, lease))


def test_a_lease_that_does_not_change_asks_nothing_of_the_database(
    world, whole, monkeypatch
):
    lease = started(world, whole(3, 3, lend=True))
    look(world)
    asked = []
    real = world.ledger.lease
    monkeypatch.setattr(
        world.ledger, 'lease', lambda id_: asked.append(id_) or real(id_)
    )
    world.manager.lendings.step()
    assert asked == []
    boot(world, lease, world_hosts(world, lease)[0])
    world.manager.instances.sync()
    asked.clear()
    world.manager.lendings.step()
    assert asked == [lease.id]


def test_a_recall_that_has_grown_is_not_over(world, slots, monkeypatch):
    """Another manager recalls two more slots while the first is cleared."""
    lease = started(world, slots(8, 1, lend=True, affinity=True))
    [node] = lent(world, lease)
    guests = [borrow(world, node) for _ in range(7)]
    look(world)
    boot(world, lease, node)
    look(world, 5)
    look(world, NOTICE)
    assert by_name(world, lending(world, lease).recalled) == {node: 1}
    real = world.manager.services.vacater.vacate

    def vacate(*args):
        monkeypatch.undo()
        boot(world, lease, node)
        look(world)
        assert by_name(world, lending(world, lease).recalled) == {node: 3}
        return real(*args)

    monkeypatch.setattr(world.manager.services.vacater, 'vacate', vacate)
    look(world, 1)
    assert by_name(world, lending(world, lease).recalled) == {node: 3}
    assert sum(alive(world, *guests)) == 6
