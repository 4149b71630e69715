# SPDX-License-Identifier: Apache-2.0
"""Failed hosts: their reservations move, or are reported as missing.

Operators can also move a reservation off a host.
"""

import dataclasses
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import inventory
from tests.seeds import seeds
from tests.told import notified

HOUR = 3600


@pytest.fixture
def on(world):
    """Return the names of the hosts that a lease holds, with its VCPUs."""

    def on(lease):
        names = world.names()
        return sorted((names[h], vcpus) for _, h, vcpus in world.held(lease))

    return on


def flags(world, lease):
    """Return degraded, and the first reservation's two flags."""
    lease = world.lease(lease)
    first = lease.reservations[0]
    return lease.degraded, first.missing_resources, first.resources_changed


class TestPoke:
    """The events that a healed lease needs are run at once."""

    @pytest.fixture
    def wakes(self, world, monkeypatch):
        wakes = []
        monkeypatch.setattr(
            world.healer, '_wake_runner', lambda: wakes.append(world.now)
        )
        return wakes

    def test_runner_is_woken_after_a_host_changed(self, world, wakes):
        world.add_host('a')
        world.start_lease()
        world.add_host('b')
        world.fail('a')
        assert len(wakes) == 1

    def test_runner_is_not_woken_without_a_change(self, world, wakes):
        world.add_hosts('a', 'b')
        world.start_lease()
        world.monitor.step()
        world.healer.heal()
        assert wakes == []


class TestPending:
    @pytest.mark.row('F70')
    def test_pending_reservation_moves_to_another_host(self, world, on):
        world.add_host('a')
        lease = world.create()
        world.add_host('b')
        world.fail('a')
        assert on(lease) == [('b', 'whole')]
        assert flags(world, lease) == (False, False, False)
        world.check()

    @pytest.mark.row('F70')
    def test_reservation_without_another_host_is_missing(self, world, on):
        world.add_host('a')
        lease = world.create()
        world.fail('a')
        assert on(lease) == []
        assert flags(world, lease) == (True, True, False)
        assert world.lease(lease).status == 'PENDING'
        world.check()

    def test_lease_starts_with_the_hosts_that_are_left(self, world, whole, on):
        world.add_hosts('a', 'b')
        lease = world.create(whole(2, 2))
        world.fail('a')
        world.run(100)
        assert world.lease(lease).status == 'ACTIVE'
        assert on(lease) == [('b', 'whole')]
        assert flags(world, lease) == (True, True, False)

    def test_reservation_with_the_least_hosts_is_not_degraded(
        self, world, whole, on
    ):
        world.add_hosts('a', 'b', 'c')
        lease = world.create(whole(1, 3))
        world.fail('a')
        assert on(lease) == [('b', 'whole'), ('c', 'whole')]
        assert flags(world, lease) == (False, False, False)

    def test_hosts_of_later_leases_stay_until_the_start_is_near(
        self, world, on
    ):
        world.add_host('a')
        lease = world.create(start=2 * HOUR, end=3 * HOUR)
        world.add_host('b')
        world.fail('a')
        assert on(lease) == [('a', 'whole')]
        world.clock.now += HOUR
        world.monitor.step()
        assert on(lease) == [('b', 'whole')]

    def test_all_move_if_the_interval_is_0(self, world, on, conf):
        conf.set_override('healing_interval', 0, 'manager')
        world.add_host('a')
        lease = world.create(start=200 * HOUR, end=300 * HOUR)
        world.add_host('b')
        world.fail('a')
        assert on(lease) == [('b', 'whole')]

    def test_reservation_moves_only_to_a_host_that_meets_its_requirement(
        self, world, whole, on
    ):
        world.add_host('a', gpu='yes')
        world.add_host('b')
        world.add_host('c', gpu='yes', projects='another')
        world.add_host('d', gpu='yes', disabled='true')
        lease = world.create(whole(resource_properties='["==","$gpu","yes"]'))
        world.fail('a')
        assert on(lease) == []

    def test_a_disabled_host_keeps_what_it_has(self, world, on):
        world.add_host('a')
        lease = world.create()
        world.add_host('b')
        world.hosts.update(world.host('a').id, {'disabled': 'true'})
        world.monitor.step()
        assert on(lease) == [('a', 'whole')]

    def test_lease_that_cannot_be_healed_delays_no_other(
        self, world, on, monkeypatch
    ):
        world.add_host('a')
        leases = [world.create(start=t, end=t + 10) for t in (100, 110)]
        world.add_host('b')
        heal = world.healer.heal_lease

        def fail(lease_id, *args):
            if lease_id == leases[0].id:
                raise RuntimeError
            heal(lease_id, *args)

        monkeypatch.setattr(world.healer, 'heal_lease', fail)
        world.fail('a')
        assert [on(lease) for lease in leases] == [
            [('a', 'whole')], [('b', 'whole')],
        ]


class TestSlots:
    def test_slots_of_a_failed_host_join_those_elsewhere(
        self, world, slots, on
    ):
        world.add_host('a', vcpus=4)
        lease = world.create(slots(2, vcpus=2))
        world.add_host('b', vcpus=8)
        world.change_reservation(lease, amount=4)
        assert on(lease) == [('a', 4), ('b', 4)]
        world.fail('a')
        assert on(lease) == [('b', 8)]
        world.check()

    def test_as_many_as_there_is_room_for(self, world, slots, on):
        world.add_host('a', vcpus=10)
        lease = world.create(slots(5, vcpus=2))
        world.add_host('b', vcpus=6)
        world.fail('a')
        assert on(lease) == [('b', 6)]
        assert flags(world, lease) == (True, True, False)
        world.add_host('c', vcpus=2)
        world.monitor.step()
        assert on(lease) == [('b', 6), ('c', 2)]
        assert flags(world, lease) == (True, True, False)
        world.add_host('d', vcpus=8)
        world.monitor.step()
        assert on(lease) == [('b', 6), ('c', 2), ('d', 2)]
        assert flags(world, lease) == (False, False, False)


class TestActive:
    @pytest.fixture
    def lease(self, world):
        world.add_host('a', hold='dedicated')
        return world.start_lease(end=500)

    def aggregates(self, world, lease):
        found = world.nova.aggregates
        return [
            found[name].hosts
            for name in (lease.reservations[0].id, 'freepool')
        ]

    @pytest.mark.row('F70')
    def test_active_reservation_moves_with_aggregates_and_vacating(
        self, world, lease, on
    ):
        world.add_host('b', hold='dedicated')
        preemptible = world.add_server('b', preemptible=True)
        assert self.aggregates(world, lease) == [('a',), ('b',)]
        world.fail('a')
        assert on(lease) == [('b', 'whole')]
        assert flags(world, lease) == (False, False, True)
        world.run()
        assert world.lease(lease).status == 'ACTIVE'
        assert self.aggregates(world, lease) == [('b',), ('a',)]
        assert preemptible.uuid not in world.nova.stored
        world.run(500)
        assert world.lease(lease).status == 'TERMINATED'
        assert world.nova.aggregates.keys() == {'freepool'}
        assert world.nova.aggregates['freepool'].hosts == ('a', 'b')

    @pytest.mark.row('F71')
    def test_active_reservation_gets_its_host_back(self, world, lease, on):
        world.fail('a')
        world.run()
        assert on(lease) == []
        assert world.lease(lease).status == 'ACTIVE'
        assert flags(world, lease) == (True, True, True)
        assert self.aggregates(world, lease) == [(), ('a',)]
        world.set_up('a')
        world.run()
        assert on(lease) == [('a', 'whole')]
        assert flags(world, lease) == (False, False, True)
        assert self.aggregates(world, lease) == [('a',), ()]

    def test_whole_again_with_its_servers_there(self, world, lease, on):
        world.add_own_server(lease)
        world.manager.instances.sync()
        world.fail('a')
        world.run()
        world.manager.instances.sync()
        assert on(lease) == []
        world.set_up('a')
        world.run()
        assert on(lease) == [('a', 'whole')]
        assert flags(world, lease) == (False, False, True)

    @pytest.mark.parametrize('fails', [True, False])
    def test_servers_that_stay_on_a_host_it_left_take_room_there(
        self, world, lease, on, fails
    ):
        world.add_own_server(lease)
        world.manager.instances.sync()
        world.add_host('b')
        if fails:
            world.fail('a')
            world.set_up('a')
        else:
            world.healer.reallocate(world.host('a').id, lease_id=lease.id)
        world.run()
        assert on(lease) == [('b', 'whole')]
        assert flags(world, lease) == (False, False, True)
        assert self.aggregates(world, lease)[0] == ('b',)
        world.manager.instances.sync()
        world.refuse()
        # The allocations are deleted with the lease.
        world.create(start=lease.end - world.now, end=10**4)
        world.check()

    def test_degraded_for_another_reason_is_found_again(self, world, lease):
        world.add_host('b')
        world.fail('a', 'b')
        world.run()
        world.add_server('b')
        world.set_up('b')
        world.run()
        assert flags(world, lease) == (True, False, True)

    def test_slots_leave_nothing_behind(self, world, slots):
        world.add_host('a')
        lease = world.start_lease(slots(2), end=500)
        world.add_host('b')
        world.fail('a')
        world.run()
        [id_] = [r.id for r in lease.reservations]
        assert world.nova.aggregates[id_].hosts == ('b',)
        assert {name for name, _ in world.placement.children} == {'b'}
        world.run(500)
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.placement.children
        assert not world.placement.classes

    def test_lease_is_not_healed_during_an_event(self, world, lease, on):
        world.add_host('b')
        [end] = [
            e for e in world.lease(lease).events if e.event_type == 'end_lease'
        ]
        world.ledger.commit(lambda tx: tx.put_lease(dataclasses.replace(
            tx.lease(lease.id),
            events=tuple(
                dataclasses.replace(e, status='IN_PROGRESS')
                if e == end else e
                for e in tx.lease(lease.id).events
            )
        )))
        world.fail('a')
        assert on(lease) == [('a', 'whole')]

    def test_lease_past_its_end_is_not_healed(self, world, lease, on):
        world.clock.now = lease.end
        world.fail('a')
        assert on(lease) == [('a', 'whole')]
        assert not world.lease(lease).degraded


class TestOthers:
    @pytest.mark.row('F90')
    def test_failures_and_degraded_leases_are_notified(
        self, world, monkeypatch
    ):
        told = notified(
            world.manager, monkeypatch, lambda event_type, payload: (
                event_type,
                payload['lease_id' if 'lease_id' in payload else 'host_id'],
            ),
        )
        world.add_host('a')
        host = world.host('a').id
        lease = world.create()
        world.fail('a')
        world.monitor.step()
        world.set_up('a')
        assert told == [
            ('lease.create', lease.id),
            ('host.failure', host),
            ('lease.degraded', lease.id),
            ('host.recovery', host),
            ('lease.healed', lease.id),
        ]

    def test_several_managers_at_once(self, world, conf, slots):
        world.add_hosts('a', 'b', vcpus=8)
        leases = [
            world.create(slots(2, vcpus=2), start=n, end=n + 1)
            for n in range(100, 120)
        ]
        before = world.ledger.changes(0, 10**4)['revision']

        def used():
            return {host for each in leases for _, host, _ in world.held(each)}

        [first] = used()
        name = world.ledger.host(first).hypervisor_hostname
        world.nova.nodes[name] = dataclasses.replace(
            world.nova.nodes[name], up=False
        )
        world.monitor_at_once(conf)
        assert first not in used()
        # One commit for the host, and one for each lease.
        after = world.ledger.changes(0, 10**4)['revision']
        assert after == before + 1 + len(leases)
        world.check()


class TestReallocate:
    @pytest.mark.row('F72')
    def test_off_a_host_by_lease_or_by_reservation(self, world, on):
        world.add_host('a')
        lease = world.create()
        world.add_host('b')
        world.healer.reallocate(world.host('a').id, lease_id=lease.id)
        assert on(lease) == [('b', 'whole')]
        world.healer.reallocate(
            world.host('b').id, reservation_id=lease.reservations[0].id
        )
        assert on(lease) == [('a', 'whole')]
        assert flags(world, lease) == (False, False, False)

    def test_other_leases_stay_on_the_host(self, world, slots, on):
        world.add_host('a')
        lease = world.create(slots(1), slots(1))
        other = world.create(slots(1))
        world.add_host('b')
        first, second = (r.id for r in lease.reservations)
        world.healer.reallocate(world.host('a').id, reservation_id=second)
        held = {id_: host for id_, host, _ in world.held(lease)}
        assert held == {
            first: world.host('a').uuid, second: world.host('b').uuid,
        }
        assert on(other) == [('a', 2)]

    @pytest.mark.parametrize('slots_', [False, True])
    def test_no_room_changes_nothing(self, world, slots, on, slots_):
        world.add_host('a')
        lease = world.create(*([slots(2)] if slots_ else []))
        world.add_host('b', vcpus=2)
        world.fail('b')
        before = world.lease(lease), world.held(lease)
        with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
            world.healer.reallocate(world.host('a').id, lease_id=lease.id)
        assert refusal.value.status == 409
        assert (world.lease(lease), world.held(lease)) == before

    def test_reallocation_without_allocation_is_refused(self, world):
        world.add_host('a')
        world.create()
        world.add_host('b')
        for host, lease_id, refusal in [
            ('a', 'no-such', exception.NotFound),
            ('b', None, exception.NotFound),
        ]:
            with pytest.raises(refusal):
                world.healer.reallocate(world.host(host).id, lease_id)
        with pytest.raises(exception.HostNotFound):
            world.healer.reallocate('77', 'no-such')


@pytest.mark.parametrize('seed', seeds(40, few=4))
def test_healing_moves_no_allocation_without_need_and_leaves_none_missing(
    world, whole, slots, seed, conf
):
    """The reference is a plain scan of every host and every allocation."""
    draw = random.Random(seed)
    conf.set_override('healing_interval', 0, 'manager')
    names = [f'h{n}' for n in range(draw.randint(2, 6))]
    world.add_hosts(*names, vcpus=draw.choice([2, 4, 8]))
    leases = list(filter(None, (
        _lease(world, whole, slots, draw) for _ in range(draw.randint(1, 9))
    )))
    world.run()
    for _ in range(3):
        before = _allocations(world)
        down = set(draw.sample(names, draw.randint(0, len(names))))
        world.set_up(*set(names) - down)
        world.fail(*down)
        # This is repeated for leases that were healed before others moved.
        world.monitor.step()
        world.check()
        after = _allocations(world)
        _check_unmoved(world, before, after, down)
        for lease in leases:
            for reservation in world.lease(lease).reservations:
                _check_filled(world, world.lease(lease), reservation, down)
        world.clock.now += draw.choice([0, 30])
        world.run()


def _lease(world, whole, slots, draw):
    start = draw.choice(['now', 20, 40])
    asked = [
        whole(1, draw.randint(1, 2)) if draw.random() < 0.5 else slots(
            draw.randint(1, 4), vcpus=draw.choice([1, 2]),
            affinity=draw.choice([None, True, False]),
        )
        for _ in range(draw.randint(1, 2))
    ]
    try:
        return world.create(*asked, start=start, end=draw.choice([60, 10**5]))
    except exception.NotEnoughHostsAvailable:
        return None


def _allocations(world):
    return {a.id: a for a, _ in world.ledger.allocations()}


def _check_unmoved(world, before, after, down):
    failed = {world.host(name).uuid for name in down}
    for id_, old in before.items():
        if old.host in failed:
            continue
        new = after[id_]
        assert (new.host, new.end) == (old.host, old.end)
        assert all(new.amounts[c] >= old.amounts[c] for c in old.amounts)
    assert not failed & {a.host for a in after.values() if a.end > world.now}


def _check_filled(world, lease, reservation, down):
    """Missing amounts find no room; complete reservations have everything."""
    if lease.status == 'TERMINATED' or lease.end <= world.now:
        return
    held = [
        a for a, _ in world.ledger.allocations(reservation_id=reservation.id)
    ]
    demand = reservation.demand
    vcpus = sum(a.amounts.get('VCPU', 0) for a in held)
    if demand.whole:
        missing = len(held) < demand.least
    else:
        missing = vcpus < demand.least * demand.slot['VCPU']
    assert reservation.missing_resources is missing
    if not missing:
        return
    mine = {a.host for a in held}
    start = max(lease.start, world.now)
    for host in world.ledger.hosts():
        if host.hypervisor_hostname in down:
            continue
        if demand.affinity is not None and mine and (
            (host.uuid in mine) is not demand.affinity
        ):
            continue
        assert not _has_room(world, host, start, lease.end, demand)


def _has_room(world, host, start, end, demand):
    there = [
        a for a, _ in world.ledger.allocations(host=host.uuid)
        if a.start < end and start < a.end
    ]
    if demand.whole or any(a.whole for a in there):
        return not there
    used = {
        at: {
            c: sum(a.amounts.get(c, 0) for a in there if a.start <= at < a.end)
            for c in inventory.RESOURCE_CLASSES
        }
        for at in {start, *(max(start, a.start) for a in there)}
    }
    return all(
        used[at][c] + demand.slot[c] <= host.inventory[c].capacity
        for at in used
        for c in demand.slot
    )
