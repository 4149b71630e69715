# SPDX-License-Identifier: Apache-2.0
"""Leases that have not started move off overcommitted hosts.

The hosts have shrunk, or have servers that no filter admitted.
"""

import dataclasses
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.inventory import Inventory
from blazar_sched.placing import overload
from blazar_sched.service.bus import notifier
from tests.seeds import seeds
from tests.told import notified

HOUR = 3600
GPU = 'CUSTOM_GPU'


@pytest.fixture
def shrink(world):
    """Make Placement report other totals of a host."""

    def shrink(name, **totals):
        uuid = world.host(name).uuid
        world.placement.change(uuid, {
            c: dataclasses.replace(i, total=totals.get(c, i.total))
            for c, i in world.placement.providers[uuid].items()
        })
        world.hosts.sync()

    return shrink


@pytest.fixture
def force(world):
    """Boot a server on a host, past the filters."""

    def force(name, vcpus=1, **values):
        server = world.add_server(name, vcpus=vcpus, **values)
        world.manager.instances.sync()
        return server

    return force


@pytest.fixture
def revision(world):
    return lambda: world.ledger.changes(0, 10**4)['revision']


@pytest.fixture
def set_events(world):
    """set_events(lease, status) sets the status of all events of a lease."""

    def set_events(lease, status):
        world.ledger.commit(lambda tx: tx.put_lease(dataclasses.replace(
            tx.lease(lease.id),
            events=tuple(
                dataclasses.replace(e, status=status)
                for e in tx.lease(lease.id).events
            )
        )))

    return set_events


@pytest.fixture
def told(world, monkeypatch):
    """The notifications of leases, but for those of their events."""
    return notified(
        world.manager, monkeypatch, lambda event_type, payload: (
            event_type, payload['lease_id'],
        ) if event_type.startswith('lease.')
        and not event_type.startswith(notifier.LEASE_EVENT) else None,
    )


def step(world):
    world.monitor.step()


class TestShrunk:
    @pytest.mark.row('F73')
    def test_fewest_allocations_leave_a_shrunk_host(
        self, world, slots, on, shrink
    ):
        world.add_host('a', vcpus=8)
        small, large, other = (
            world.create(slots(1, vcpus=n)) for n in (2, 4, 2)
        )
        world.add_host('b', vcpus=8)
        shrink('a', VCPU=4)
        step(world)
        assert on(large) == ['b']
        assert on(small) == on(other) == ['a']
        world.check()

    def test_lease_leaves_a_shrunk_host_however_late_it_starts(
        self, world, slots, on, shrink
    ):
        world.add_host('a', vcpus=8)
        late = world.create(
            slots(1, vcpus=8), start=999 * HOUR, end=window.FOREVER
        )
        world.add_host('b', vcpus=8)
        shrink('a', VCPU=4)
        step(world)
        assert on(late) == ['b']

    def test_another_class(self, world, on, shrink):
        world.add_hosts('a', 'b')
        for name in 'ab':
            uuid = world.host(name).uuid
            world.placement.change(uuid, {
                **world.placement.providers[uuid],
                GPU: Inventory(2 if name == 'a' else 1),
            })
        world.hosts.sync()
        gpu = Flavor(
            'gpu', 'gpu', 1, 512, 1, extra_specs={f'resources:{GPU}': '1'}
        )
        world.ledger.commit(lambda tx: tx.put_flavors([gpu]))
        asked = {
            'resource_type': 'flavor:instance', 'flavor_id': 'gpu',
            'amount': 1, 'resource_properties':
            '["==", "$hypervisor_hostname", "a"]',
        }
        stays = world.create(asked)
        moves = world.create({**asked, 'resource_properties': ''})
        if on(moves) == ['b']:
            world.healer.reallocate(world.host('b').id, moves.id)
        shrink('a', **{GPU: 1})
        step(world)
        assert (on(stays), on(moves)) == (['a'], ['b'])
        world.check()

    def test_lease_keeps_a_shrunk_host_that_it_has_as_a_whole(
        self, world, on, shrink, revision
    ):
        world.add_host('a', vcpus=8)
        lease = world.create()
        world.add_host('b', vcpus=8)
        shrink('a', VCPU=4)
        before = revision()
        step(world)
        assert on(lease) == ['a']
        assert revision() == before

    def test_active_lease_stays_on_a_shrunk_host(
        self, world, slots, on, shrink, revision
    ):
        world.add_host('a', vcpus=8)
        active = world.start_lease(slots(1, vcpus=4), end=200)
        pending = world.create(slots(1, vcpus=4))
        world.add_host('b', vcpus=8)
        shrink('a', VCPU=4)
        step(world)
        assert (on(active), on(pending)) == (['a'], ['b'])
        shrink('a', VCPU=2)
        before = revision()
        step(world)
        assert (on(active), on(pending)) == (['a'], ['b'])
        assert revision() == before

    def test_active_lease_is_degraded_while_its_host_is_too_small(
        self, world, slots, shrink, told
    ):
        world.add_host('a', vcpus=8)
        lease = world.start_lease(
            slots(1, vcpus=4), slots(1, vcpus=2), end=200,
        )
        told.clear()
        for vcpus in (6, 5, 4, 8):
            shrink('a', VCPU=vcpus)
            for _ in range(2):
                step(world)
                world.run()
            assert {
                r.missing_resources for r in world.lease(lease).reservations
            } == {vcpus < 6}
            assert world.lease(lease).degraded == (vcpus < 6)
        assert told == [
            ('lease.degraded', lease.id), ('lease.healed', lease.id),
        ]

    def test_a_degraded_lease_that_loses_more_is_not_told_to_be_healed(
        self, world, slots, shrink, told
    ):
        world.add_host('a', vcpus=8)
        lease = world.start_lease(slots(1, vcpus=4), end=200)
        # A server is in the way, say.
        world.ledger.write(lambda tx: tx.put_lease(
            dataclasses.replace(world.lease(lease), degraded=True)
        ))
        told.clear()
        shrink('a', VCPU=2)
        step(world)
        assert told == [('lease.degraded', lease.id)]

    def test_each_reservation_by_itself(self, world, slots, on, shrink):
        world.add_host('a', vcpus=8)
        lease = world.create(slots(1, vcpus=6), slots(1, vcpus=2))
        world.add_host('b', vcpus=8)
        shrink('a', VCPU=6)
        step(world)
        large, small = (r.id for r in lease.reservations)
        assert {id_: host for id_, host, _ in world.held(lease)} == {
            large: world.host('a').uuid, small: world.host('b').uuid,
        }
        moved = world.lease(lease)
        assert not moved.degraded
        assert not any(r.resources_changed for r in moved.reservations)


class TestRaced:
    @pytest.fixture
    def lease(self, world):
        world.add_host('a')
        lease = world.create(start=100, end=200)
        world.add_host('b')
        return lease

    def test_off_the_host(self, world, lease, on, force):
        force('a')
        step(world)
        assert on(lease) == ['b']
        world.check()

    @pytest.mark.parametrize('end, moves', [(100, False), (101, True)])
    def test_lease_moves_only_if_the_server_stays_until_its_start(
        self, world, lease, on, force, end, moves
    ):
        force('a', end=world.now + end)
        step(world)
        assert on(lease) == (['b'] if moves else ['a'])

    def test_lease_stays_on_a_host_that_it_can_share(
        self, world, slots, on, force
    ):
        world.add_host('a', vcpus=8)
        lease = world.create(slots(1, vcpus=6))
        world.add_host('b', vcpus=8)
        force('a', vcpus=2)
        step(world)
        assert on(lease) == ['a']
        force('a', vcpus=1)
        step(world)
        assert on(lease) == ['b']

    def test_yielding_servers_move_no_lease(
        self, world, lease, on, force, revision
    ):
        force('a', preemptible=True)
        force('a', end=world.now + 50)
        later = world.create(start=300, end=window.FOREVER)
        first = on(later)
        before = revision()
        # The second server is past its end by then, and still exists.
        world.clock.now += 60
        step(world)
        assert (on(lease), on(later)) == (['a'], first)
        assert revision() == before

    def test_server_with_a_class_of_a_child_provider_moves_no_lease(
        self, world, slots, on, force, revision
    ):
        """A resource provider below the host's own has the resource."""
        world.add_host('a')
        lease = world.create(slots(1))
        force('a', amounts={'VCPU': 1, 'VGPU': 1})
        before = revision()
        assert overload.overloaded_hosts(world.ledger.replica, world.now) == []
        step(world)
        assert on(lease) == ['a']
        assert revision() == before

    def test_server_with_a_class_of_a_child_provider_hides_no_other(
        self, world, slots, on, force
    ):
        world.add_host('a', vcpus=8)
        lease = world.create(slots(1, vcpus=6))
        world.add_host('b', vcpus=8)
        force('a', vcpus=2, end=world.now + 50)
        world.clock.now += 60
        step(world)
        assert on(lease) == ['a']
        force('a', vcpus=3)
        step(world)
        assert on(lease) == ['b']

    def test_all_who_cannot_share_it(self, world, on, force):
        world.add_host('a')
        leases = [
            world.create(start=n, end=n + 100) for n in range(100, 2000, 100)
        ]
        world.add_host('b')
        force('a')
        step(world)
        assert all(on(lease) == ['b'] for lease in leases)
        world.check()

    def test_server_that_is_leaving_moves_no_lease(
        self, world, on, force, revision
    ):
        world.add_host('a')
        first = world.create(start='now', end=200)
        next_ = world.create(start=210, end=300)
        world.add_host('b')
        world.run()
        server = force(
            'a', project_id='project', reservation_id=first.reservations[0].id
        )
        world.nova.slowness = 5
        world.run(200)
        assert server.uuid in world.nova.stored
        before = revision()
        step(world)
        assert on(next_) == ['a']
        assert revision() == before


class TestNoRoom:
    def test_lease_without_other_hosts_stays_and_is_notified_once(
        self, world, on, force, revision, told, caplog
    ):
        world.add_host('a')
        lease = world.create()
        force('a')
        before = revision()
        told.clear()
        for _ in range(3):
            step(world)
        assert on(lease) == ['a']
        assert revision() == before
        assert not world.lease(lease).degraded
        assert told == [('lease.at_risk', lease.id)]
        assert caplog.text.count(f'Lease {lease.id} is at risk') == 1

    def test_told_of_once_though_an_event_of_it_is_done_meanwhile(
        self, world, force, told, set_events
    ):
        world.add_host('a')
        lease = world.create()
        force('a')
        step(world)
        for status in ('IN_PROGRESS', 'UNDONE'):
            set_events(lease, status)
            step(world)
        assert told.count(('lease.at_risk', lease.id)) == 1

    def test_moves_once_there_is_room(self, world, on, force, told):
        world.add_host('a')
        lease = world.create()
        force('a')
        step(world)
        world.add_host('b')
        told.clear()
        step(world)
        assert on(lease) == ['b']
        assert told == [('lease.healed', lease.id)]

    def test_lease_at_risk_is_notified_again_after_it_was_well(
        self, world, on, force, told
    ):
        world.add_host('a')
        lease = world.create()
        told.clear()
        for _ in range(2):
            server = force('a')
            step(world)
            del world.nova.stored[server.uuid]
            world.manager.instances.sync()
            step(world)
        assert told == [('lease.at_risk', lease.id)] * 2

    def test_another_lease_moves_if_one_cannot(self, world, slots, on, shrink):
        world.add_host('a', vcpus=8, gpu='yes')
        tied = world.create(
            slots(1, vcpus=3, resource_properties='["==", "$gpu", "yes"]')
        )
        free = world.create(slots(1, vcpus=5))
        world.add_host('b', vcpus=8)
        shrink('a', VCPU=5)
        step(world)
        assert (on(tied), on(free)) == (['a'], ['b'])

    def test_a_part_of_it_if_that_cures_the_host(
        self, world, slots, on, shrink
    ):
        world.add_host('a', vcpus=8)
        lease = world.create(slots(4, vcpus=2))
        world.add_host('b', vcpus=2)
        shrink('a', VCPU=4)
        step(world)
        # One slot has room on the other host, and two have to leave.
        assert on(lease) == ['a']
        world.add_host('c', vcpus=2)
        step(world)
        assert on(lease) == ['a', 'b', 'c']
        assert not world.lease(lease).degraded
        world.check()


class TestOthers:
    def test_lease_does_not_move_during_an_event(
        self, world, on, force, told, set_events
    ):
        world.add_host('a')
        lease = world.create()
        world.add_host('b')
        force('a')
        told.clear()
        set_events(lease, 'IN_PROGRESS')
        step(world)
        assert on(lease) == ['a']
        assert told == []
        set_events(lease, 'UNDONE')
        step(world)
        assert on(lease) == ['b']

    def test_lease_that_is_about_to_start_stays(self, world, on, force):
        world.add_host('a')
        lease = world.create()
        world.add_host('b')
        force('a')
        world.clock.now = lease.start
        step(world)
        assert on(lease) == ['a']

    def test_a_failed_host_is_healed_instead(self, world, on, force, revision):
        world.add_host('a')
        lease = world.create(start=2 * HOUR, end=3 * HOUR)
        world.add_host('b')
        force('a')
        world.fail('a')
        assert on(lease) == ['a']
        world.set_up('a')
        assert on(lease) == ['b']

    def test_replanning_writes_no_revision_without_need(
        self, world, slots, shrink, force, revision
    ):
        for name in 'abc':
            world.add_host(name, vcpus=8)
            world.create(slots(4, vcpus=2))
            world.create(start=300, end=400)
        force('a', end=world.now + 100)
        shrink('b', VCPU=8, MEMORY_MB=4 * 512)
        step(world)
        before = revision()
        for _ in range(3):
            step(world)
        assert revision() == before
        world.check()

    def test_host_that_fails_to_be_replanned_delays_no_other(
        self, world, on, force, monkeypatch
    ):
        world.add_hosts('a', 'b')
        leases = [world.create(), world.create()]
        world.add_hosts('c', 'd')
        force('a')
        force('b')
        bad = world.host('a').uuid
        leaving = overload.allocations_to_move

        def fail(tx, host, *args):
            if host == bad:
                raise RuntimeError
            return leaving(tx, host, *args)

        monkeypatch.setattr(overload, 'allocations_to_move', fail)
        step(world)
        [first] = [on(each) for each in leases if on(each) in (['a'], ['b'])]
        assert first == ['a']

    def test_several_managers_at_once(self, world, conf, force, on, revision):
        world.add_host('a')
        leases = [world.create(start=n, end=n + 1) for n in range(100, 115)]
        world.add_host('b')
        force('a')
        before = revision()
        world.monitor_at_once(conf)
        assert all(on(lease) == ['b'] for lease in leases)
        assert revision() == before + len(leases)
        world.check()


@pytest.mark.parametrize('seed', seeds(40, few=4))
def test_allocation_that_stays_on_a_full_host_fits_on_no_other(
    world, whole, slots, shrink, seed
):
    """The reference is a plain scan of every host and all allocations."""
    draw = random.Random(seed)
    names = [f'h{n}' for n in range(draw.randint(2, 5))]
    world.add_hosts(*names, vcpus=draw.choice([4, 8]))
    leases = list(filter(None, (
        _lease(world, whole, slots, draw) for _ in range(draw.randint(2, 9))
    )))
    world.run()
    for _ in range(3):
        for name in draw.sample(names, draw.randint(0, 2)):
            shrink(name, VCPU=draw.choice([2, 4, 8]))
        for name in draw.sample(names, draw.randint(0, 2)):
            end = draw.choice([25, 45, window.FOREVER])
            world.add_server(
                name, vcpus=draw.randint(1, 3),
                end=end if end == window.FOREVER else world.now + end,
            )
        world.manager.instances.sync()
        before = _allocations(world)
        stayed = {id_ for id_, a in before.items() if _fits(world, a)}
        step(world)
        after = _allocations(world)
        moved = {id_ for id_, a in before.items() if after.get(id_) != a}
        assert not moved & stayed
        for lease in leases:
            if world.lease(lease).status != 'PENDING':
                assert all(
                    after.get(id_) == a for id_, a in before.items()
                    if a.reservation_id in {r.id for r in lease.reservations}
                )
        _settle(world)
        for a in _allocations(world).values():
            if a.start > world.now and not _fits(world, a):
                assert not any(
                    _fits(world, dataclasses.replace(a, host=host.uuid))
                    for host in world.ledger.hosts()
                )
        world.clock.now += draw.choice([0, 15])
        world.run()


def _lease(world, whole, slots, draw):
    start = draw.choice(['now', 20, 40])
    asked = whole() if draw.random() < 0.3 else slots(
        1, vcpus=draw.choice([1, 2, 3])
    )
    try:
        return world.create(asked, start=start, end=draw.choice([60, 10**5]))
    except exception.NotEnoughHostsAvailable:
        return None


def _allocations(world):
    return {a.id: a for a, _ in world.ledger.allocations()}


def _settle(world):
    """Replan until nothing moves: freed capacity may serve another lease."""
    revision = None
    for _ in range(10):
        now = world.ledger.changes(0, 10**4)['revision']
        if now == revision:
            return
        revision = now
        step(world)
    raise AssertionError('they never come to rest')


def _fits(world, each):
    """Check capacity at every time at which something begins."""
    [host] = world.ledger.hosts([each.host])
    others = [
        (a.start, a.end, a.whole, a.amounts)
        for a, _ in world.ledger.allocations(host=each.host)
        if a.id != each.id
    ] + [
        (0, i.end, False, i.amounts)
        for i in world.ledger.instances()
        if i.host == each.host and i.end > world.now
    ]
    first = max(each.start, world.now)
    for at in {first, *(o[0] for o in others)}:
        if not first <= at < each.end:
            continue
        there = [o for o in others if o[0] <= at < o[1]]
        if there and (each.whole or any(o[2] for o in there)):
            return False
        for c, amount in each.amounts.items():
            used = amount + sum(o[3].get(c, 0) for o in there)
            if used > host.inventory[c].capacity:
                return False
    return True
