# SPDX-License-Identifier: Apache-2.0
"""Leases: the results and the refusals of requests."""

from concurrent import futures
import dataclasses
import functools

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain import window
from blazar_sched.domain.event import Claim
from blazar_sched.service import faults
from blazar_sched.service.manager.manager import KEYS_KEPT
from tests.functional.manager.conftest import hosts
from tests.functional.manager.conftest import refused


def times(lease):
    return {e.event_type: e.time for e in lease.events}


class TestCreate:
    def test_new_lease_is_pending_with_events_and_allocations(self, world):
        host = world.add_host('a')
        lease = world.create(start=100, end=200)
        assert lease == world.lease(lease)
        assert (lease.start, lease.end) == (world.now + 100, world.now + 200)
        assert lease.status == 'PENDING'
        assert lease.created_at == world.now
        assert [r.status for r in lease.reservations] == ['pending']
        assert {e.status for e in lease.events} == {'UNDONE'}
        assert times(lease) == {
            'start_lease': lease.start, 'end_lease': lease.end,
        }
        assert world.held(lease) == [(lease.reservations[0].id, host, 'whole')]
        world.check()

    @pytest.mark.row('F8')
    def test_now_and_this_minute_are_now(self, world):
        world.add_hosts('a', 'b')
        assert world.create(start='now').start == world.now
        assert world.create(start=-59).start == world.now

    @pytest.mark.parametrize('field, values', [
        ('start_date', {'start': -61}),
        ('end_date', {'end': 100}),
        ('end_date', {'end': 99}),
        ('end_date', {'end': -1}),
        ('start_date', {'start': window.TIME_LIMIT}),
        ('before_end_date', {'before_end': 1}),
        ('before_end_date', {'before_end': window.TIME_LIMIT}),
    ])
    def test_bad_value_is_named(self, world, field, values):
        world.add_host('a')
        with refused(exception.InvalidInput, field):
            world.create(**values)
        assert world.ledger.leases() == []

    @pytest.mark.parametrize('kind, field, value', [
        ('whole', 'resource_type', 'no:such'),
        ('whole', 'resource_type', None),
        ('whole', 'min', 0),
        ('whole', 'min', None),
        ('whole', 'min', True),
        ('whole', 'min', '1'),
        ('whole', 'max', 0),
        ('whole', 'max', 2**31),
        ('whole', 'before_end', 'shutdown'),
        ('whole', 'resource_properties', '["=="]'),
        ('whole', 'hypervisor_properties', 'x'),
        ('whole', 'hypervisor_properties', 7),
        ('whole', 'amount', 1),
        ('slots', 'vcpus', 0),
        ('slots', 'memory_mb', 0),
        ('slots', 'disk_gb', -1),
        ('slots', 'amount', 0),
        ('slots', 'amount', 2**31),
        ('slots', 'amount', 1.0),
        ('slots', 'affinity', 'True'),
        ('slots', 'resource_properties', '{}'),
        ('slots', 'min', 1),
    ])
    def test_bad_parameter_is_named(self, world, request, kind, field, value):
        world.add_host('a')
        asked = {**request.getfixturevalue(kind)(), field: value}
        with refused(exception.InvalidInput, field):
            world.create(asked)
        assert world.ledger.leases() == []

    def test_reservation_without_a_type_is_refused(self, world):
        with refused(exception.InvalidInput, 'resource_type'):
            world.create({'min': 1})

    @pytest.mark.row('F20')
    def test_quads_700_back_to_back(self, world):
        """A window may begin in the second in which another one ends."""
        world.add_host('a')
        world.create(start=100, end=200)
        world.create(start=200, end=300)
        world.create(start=0, end=100)
        world.check()

    def test_lp_1704359_no_event_without_its_reservation(
        self, world, monkeypatch
    ):
        """Lease, reservations and events are written in one transaction."""
        world.add_host('a')

        def fail(point):
            raise RuntimeError(f'the manager dies at {point}')

        monkeypatch.setattr(faults, '_hook', fail)
        with pytest.raises(RuntimeError, match='commit:before'):
            world.create()
        monkeypatch.undo()
        assert world.ledger.leases() == []
        assert world.ledger.due_events(window.TIME_LIMIT) == []
        world.check()

    def test_reservations_of_a_lease_see_each_other(self, world, whole):
        both = {world.add_host('a'), world.add_host('b')}
        lease = world.create(whole(), whole())
        assert {host for _, host, _ in world.held(lease)} == both
        world.refuse(whole(), whole(), whole(), start=300, end=400)
        assert len(world.ledger.leases()) == 1
        world.check()

    @pytest.mark.row('C28', 'F21')
    def test_slots_and_whole_hosts_in_one_lease(self, world, whole, slots):
        world.add_hosts('a', 'b')
        lease = world.create(whole(), slots(4))
        (_, first, _), (_, second, _) = world.held(lease)
        assert first != second
        world.refuse(slots(1), whole(), start=100, end=200)

    @pytest.mark.row('C24', 'F11')
    def test_takes_the_maximum_that_is_free(self, world, whole):
        world.add_hosts('a', 'b', 'c')
        assert len(world.held(world.create(whole(1, 2)))) == 2
        assert len(world.held(world.create(whole(1, 2)))) == 1

    @pytest.mark.row('C26')
    @pytest.mark.parametrize('size, most', [
        ({'vcpus': 3, 'memory_mb': 1, 'disk_gb': 1}, 4),
        ({'vcpus': 1, 'memory_mb': 3000, 'disk_gb': 1}, 4),
        ({'vcpus': 1, 'memory_mb': 1, 'disk_gb': 30}, 4),
        ({'vcpus': 3, 'affinity': True}, 2),
        ({'vcpus': 3, 'affinity': False}, 2),
    ])
    def test_slots_go_by_cores_ram_disk_and_affinity(
        self, world, slots, size, most
    ):
        world.add_hosts('a', 'b')
        world.refuse(slots(most + 1, **size))
        world.create(slots(most, **size))
        world.check()

    @pytest.mark.row('C47')
    def test_slots_that_fit_the_sum_but_no_single_host_are_refused(
        self, world, slots
    ):
        world.add_hosts('a', 'b')
        world.create(slots(2, vcpus=5))
        world.refuse(slots(1, vcpus=4))
        world.create(slots(2, vcpus=3))

    @pytest.mark.row('C28', 'F21')
    def test_a_host_is_for_slots_then_taken_whole(self, world, whole, slots):
        world.add_host('a')
        world.create(slots(1), start=100, end=200)
        world.refuse(whole(), start=199, end=300)
        world.create(whole(), start=200, end=300)
        world.create(slots(1), start=300, end=400)
        world.check()

    @pytest.mark.row('C45', 'F19')
    def test_slots_fill_a_host_exactly(self, world, slots):
        host = world.add_host('a', vcpus=8)
        first = world.create(slots(3, vcpus=2))
        assert world.held(first) == [(first.reservations[0].id, host, 6)]
        world.create(slots(1, vcpus=2))
        world.refuse(slots(1, vcpus=1))

    @pytest.mark.parametrize('ends, start', [
        (window.FOREVER, None), (150, 150),
        # Nobody has ended the server in time.
        (50, None),
    ], ids=['without end', 'ends', 'overdue'])
    def test_a_server_keeps_a_window_away_until_its_end(
        self, world, ends, start
    ):
        """The first start with room is `start`."""
        world.add_host('a', register=False)
        end = ends if ends == window.FOREVER else world.now + ends
        world.add_server('a', end=end)
        world.hosts.create('a', {})
        world.clock.now += 60
        if start is None:
            world.refuse(start=1000, end=2000)
        else:
            world.refuse(start=start - 61, end=200)
            world.create(start=start - 60, end=200)
        world.check()


class TestKey:
    """A repeated request with the same idempotency key."""

    def values(self, world, **values):
        return {**world.values(start='now'), **values}

    def test_makes_one_lease(self, world):
        world.add_host('a')
        values = self.values(world)
        first = world.leases.create(values, 'k')
        assert world.leases.create(values, 'k') == first
        assert world.ledger.leases() == [first]
        # Without a key, or with another key, the request is a new one.
        for key in (None, 'K'):
            with pytest.raises(exception.NotEnoughHostsAvailable):
                world.leases.create(values, key)

    @pytest.mark.parametrize('start', ['now', 'soon'])
    def test_create_repeated_long_afterwards_returns_the_lease(
        self, world, start
    ):
        """A request that was in time is not late when it is repeated."""
        world.add_host('a')
        start = world.now + 10 if start == 'soon' else start
        values = self.values(world, start=start)
        first = world.leases.create(values, 'k')
        world.clock.now += 150
        world.run()
        again = world.leases.create({**values, 'user_id': 'other'}, 'k')
        assert (again.id, again.status) == (first.id, 'ACTIVE')
        world.run(1000)
        assert world.leases.create(values, 'k').status == 'TERMINATED'

    @pytest.mark.parametrize(
        'change', [{'name': 'x'}, {'end': 1_900_000_000}, {'start': 0}]
    )
    def test_another_request_is_refused(self, world, change):
        world.add_host('a')
        first = world.leases.create(self.values(world), 'k')
        with pytest.raises(exception.IdempotencyKeyReused) as refusal:
            world.leases.create(self.values(world, **change), 'k')
        assert refusal.value.status == 409
        assert world.ledger.leases() == [first]

    def test_idempotency_key_is_of_one_project(self, world):
        world.add_hosts('a', 'b')
        values = self.values(world)
        mine = world.leases.create(values, 'k')
        other = world.leases.create({**values, 'project_id': 'other'}, 'k')
        assert (mine.project_id, other.project_id) == ('project', 'other')

    def test_a_refusal_does_not_use_it_up(self, world):
        values = self.values(world)
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.leases.create(values, 'k')
        world.add_host('a')
        assert world.leases.create(values, 'k').status == 'PENDING'

    def test_a_late_copy_of_a_request_makes_no_lease(self, world):
        """The lease is deleted before another manager handles the copy."""
        world.add_host('a')
        values = self.values(world, start=world.now + 100)
        first = world.leases.create(values, 'k')
        world.leases.delete(first.id, None)
        with pytest.raises(exception.IdempotencyKeyReused, match='deleted'):
            world.leases.create(values, 'k')
        assert world.ledger.leases() == []
        world.clock.now += KEYS_KEPT + 1
        world.manager._prune()
        values = self.values(world, start=world.now + 100)
        assert world.leases.create(values, 'k').id != first.id

    def test_concurrent_creates_with_one_key_make_one_lease(self, world):
        world.add_hosts('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')
        values = self.values(world)
        with futures.ThreadPoolExecutor(8) as pool:
            made = list(
                pool.map(lambda _: world.leases.create(values, 'k'), range(8))
            )
        assert {lease.id for lease in made} == {made[0].id}
        assert len(world.ledger.leases()) == 1
        world.check()


class TestBeforeEnd:
    @pytest.mark.parametrize('asked, minutes, length, ahead', [
        (None, 60, 100, None),
        (50, 60, 100, 50),
        ('default', 60, 7100, 3600),
        # The middle of a lease that is shorter.
        ('default', 60, 1, 0),
        ('default', 60, 100, 50),
        ('default', 60, 3600, 1800),
        ('default', 60, 3601, 3600),
        ('default', 0, 7100, None),
    ])
    def test_before_end_date_is_the_asked_or_the_operators(
        self, world, conf, asked, minutes, length, ahead
    ):
        conf.set_override('minutes_before_end_lease', minutes, 'manager')
        world.add_host('a')
        end = world.now + 100 + length
        lease = world.create(
            end=100 + length,
            before_end=end - asked if asked == 50 else asked,
        )
        assert lease.before_end == (None if ahead is None else end - ahead)

    def test_action_without_a_before_end_date_is_refused(
        self, world, conf, whole
    ):
        conf.set_override('minutes_before_end_lease', 0, 'manager')
        world.add_host('a')
        with refused(exception.InvalidInput, 'before_end_date'):
            world.create(whole(before_end='snapshot'), before_end='default')
        assert world.ledger.leases() == []
        lease = world.create(before_end='default')
        with refused(exception.InvalidInput, 'before_end_date'):
            world.change_reservation(lease, before_end='snapshot')
        assert world.lease(lease) == lease

    def test_a_lease_without_end_has_no_end_event(self, world):
        world.add_host('a')
        lease = world.create(end=window.FOREVER, before_end='default')
        assert times(lease) == {'start_lease': lease.start}
        world.check()


class TestUpdate:
    @pytest.fixture
    def lease(self, world):
        world.add_host('a')
        return world.create(start=100, end=200)

    def refuse(self, world, lease, error, field=None, **values):
        """Check that an update is refused and has changed nothing."""
        before, held = world.lease(lease), world.held(lease)
        with pytest.raises(error) as refusal:
            world.update_lease(lease, **values)
        assert type(refusal.value) is error
        assert field is None or refusal.value.field == field
        assert world.lease(lease) == before
        assert world.held(lease) == held
        world.check()

    def test_rename_at_any_time(self, world, lease):
        for name, seconds in (('b', 0), ('c', 100), ('d', 100)):
            world.run(seconds)
            assert world.update_lease(lease, name=name).name == name
            assert world.lease(lease).name == name
        assert world.lease(lease).status == 'TERMINATED'

    def test_a_lease_that_is_over_is_only_renamed(self, world, lease):
        world.run(100)
        world.run(100)
        self.refuse(world, lease, exception.InvalidStatus, end=world.now + 100)

    @pytest.mark.row('F64')
    def test_lease_is_moved_to_a_later_window(self, world, lease):
        start, end = world.now + 300, world.now + 500
        new = world.update_lease(lease, start=start, end=end)
        assert new == world.lease(lease)
        assert new.updated_at == world.now
        assert times(new) == {'start_lease': start, 'end_lease': end}
        assert {e.id for e in new.events} == {e.id for e in lease.events}
        world.create(start=100, end=300)
        world.check()

    def test_move_swaps_the_host_if_need_be(self, world, lease):
        world.create(start=200, end=300)
        other = world.add_host('b')
        world.update_lease(lease, end=world.now + 250)
        assert [host for _, host, _ in world.held(lease)] == [other]
        world.check()

    @pytest.mark.row('F68')
    def test_lp_1786031_bad_update_leaves_the_lease_as_it_was(
        self, world, lease
    ):
        """A refused update once put the lease in ERROR."""
        self.refuse(
            world, lease, exception.InvalidInput, 'before_end_date',
            before_end=world.now,
        )
        assert world.lease(lease).status == 'PENDING'

    @pytest.mark.row('F7', 'F68')
    def test_the_second_reservation_fails_for_both(self, world, whole):
        world.add_hosts('a', 'b')
        lease = world.create(whole(), whole())
        first, second = lease.reservations
        self.refuse(
            world, lease, exception.InvalidInput, 'min', name='new',
            reservations=[
                {'id': first.id, 'resource_properties': '["==","$a","b"]'},
                {'id': second.id, 'min': 0},
            ],
        )
        self.refuse(
            world, lease, exception.NotEnoughHostsAvailable, name='new',
            reservations=[
                {'id': first.id, 'min': 1, 'max': 2},
                {'id': second.id, 'min': 2, 'max': 2},
            ],
        )

    def test_reservations_keep_their_order(self, world, slots):
        world.add_host('a')
        lease = world.create(slots(1), slots(1), slots(1))
        ids = [r.id for r in lease.reservations]
        new = world.change_reservation(lease, amount=2)
        assert [r.id for r in new.reservations] == ids
        assert new == world.lease(lease)

    def test_resource_type_is_fixed(self, world, lease):
        change = {
            'id': lease.reservations[0].id,
            'resource_type': 'virtual:instance',
        }
        self.refuse(
            world, lease, exception.CantUpdateParameter, 'resource_type',
            reservations=[change],
        )

    def test_pending_reservation_grows(self, world, lease):
        world.add_host('b')
        new = world.change_reservation(lease, min=2, max=2)
        assert new.reservations[0].demand.most == 2
        assert len(world.held(lease)) == 2

    def test_slots_change_before_start(self, world, slots):
        host = world.add_host('a')
        lease = world.create(slots(2, vcpus=2))
        change = {'id': lease.reservations[0].id, 'vcpus': 8, 'amount': 1}
        world.update_lease(lease, reservations=[change])
        assert world.held(lease) == [(lease.reservations[0].id, host, 8)]
        change['amount'] = 2
        self.refuse(
            world, lease, exception.NotEnoughHostsAvailable,
            reservations=[change],
        )


class TestUpdateBeforeEnd:
    def test_keeps_its_distance_from_the_end(self, world):
        world.add_host('a')
        lease = world.create(before_end=world.now + 180)
        world.update_lease(lease, end=world.now + 300)
        assert world.lease(lease).before_end == world.now + 280

    @pytest.mark.parametrize('length', [1800, 3600, 7200])
    def test_by_default_it_is_the_operators_time_again(self, world, length):
        world.add_host('a')
        lease = world.create(start='now', end=length, before_end='default')
        for end in (86_400, 4000, 1000):
            new = world.update_lease(lease, end=lease.start + end)
            ahead = 3600 if end > 3600 else end // 2
            assert new.before_end == new.end - ahead

    def test_before_end_date_is_not_before_the_start(self, world):
        world.add_host('a')
        lease = world.create(before_end=world.now + 110)
        world.update_lease(lease, end=world.now + 150)
        assert world.lease(lease).before_end == lease.start

    def test_before_end_date_is_removed_and_set_again(self, world):
        world.add_host('a')
        lease = world.create(before_end=world.now + 180)
        world.update_lease(lease, before_end=None)
        assert world.lease(lease).before_end is None
        world.update_lease(lease, before_end=world.now + 190)
        assert world.lease(lease).before_end == world.now + 190

    def test_before_end_date_follows_an_end_that_is_removed_and_set_again(
        self, world
    ):
        world.add_host('a')
        lease = world.create(before_end=world.now + 180)
        new = world.update_lease(lease, end=window.FOREVER)
        assert times(new) == {'start_lease': lease.start}
        new = world.update_lease(lease, end=lease.start + 7200)
        assert times(new) == {
            'start_lease': lease.start, 'before_end_lease': lease.start + 3600,
            'end_lease': lease.start + 7200,
        }


class TestUpdateActive:
    @pytest.fixture
    def lease(self, world):
        world.add_host('a')
        lease = world.start_lease(end=200)
        return world.lease(lease)

    @pytest.mark.row('F64')
    def test_prolong_keeps_the_host(self, world, lease):
        world.add_host('b')
        held = world.held(lease)
        world.update_lease(lease, end=lease.end + 1000)
        assert world.held(lease) == held
        assert world.lease(lease).status == 'ACTIVE'
        world.check()

    def test_no_prolonging_into_another_lease(self, world, lease):
        world.create(start=300, end=400)
        world.add_host('b')
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.update_lease(lease, end=world.now + 301)
        assert world.lease(lease) == lease
        world.check()

    @pytest.mark.row('F64')
    def test_active_lease_is_shortened_whatever_servers_run_there(
        self, world, lease
    ):
        """A request for less of the same never needs room."""
        world.add_server('a')
        world.manager.instances.sync()
        world.update_lease(lease, end=lease.end - 50)
        assert world.lease(lease).end == lease.end - 50
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.update_lease(lease, end=lease.end)

    def test_end_in_the_second_of_a_servers_creation(self, world, lease):
        world.clock.now += 50
        server = world.add_server('a', lease.project_id, created=world.now)
        world.clock.now += 0.75
        world.update_lease(lease, end='now')
        world.run(0.25)
        assert server.uuid not in world.nova.stored
        world.run(5)
        assert world.lease(lease).status == 'TERMINATED'

    def test_lease_ended_in_the_second_of_its_start_lasts_one_second(
        self, world, lease
    ):
        new = world.update_lease(lease, end='now')
        assert new.end == new.start + 1

    def test_hosts_may_be_added_but_not_exchanged(self, world, lease):
        new = world.add_host('b')
        [(id_, old, _)] = world.held(lease)
        world.change_reservation(lease, min=2, max=2)
        assert world.held(lease) == sorted(
            [(id_, old, 'whole'), (id_, new, 'whole')]
        )
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.change_reservation(
                lease, resource_properties='["==","$x","y"]'
            )
        assert len(world.held(lease)) == 2
        world.check()

    def test_added_host_of_an_active_lease_is_started(self, world, lease):
        world.add_host('b', register=False)
        yielding = world.add_server('b', preemptible=True)
        world.hosts.create('b', {})
        world.change_reservation(lease, min=2, max=2)
        world.run()
        assert yielding.uuid not in world.nova.stored
        assert world.lease(lease).status == 'ACTIVE'


@pytest.mark.row('F101')
class TestGiveBackHosts:
    """Hosts of an active lease are given back, but none with a server."""

    @pytest.fixture
    def lease(self, world):
        world.add_hosts('a', 'b', 'c')
        lease = world.start_lease(hosts(1, 3), end=200)
        return world.lease(lease)

    def give_back(self, world, lease, most, least=1, **how):
        """Change the number of hosts; return the hosts that are left."""
        [reservation] = lease.reservations
        world.leases.update(lease.id, None, {'reservations': [
            {'id': reservation.id, 'min': least, 'max': most}
        ]}, **how)
        world.run()
        names = world.names()
        return [names[host] for _, host, _ in world.held(lease)]

    def use(self, world, lease, *names):
        for name in names:
            world.add_own_server(lease, name)
        world.manager.instances.sync()

    @pytest.mark.parametrize('used', ['a', 'b', 'c'])
    def test_the_hosts_in_use_are_kept(self, world, lease, used):
        self.use(world, lease, used, used)
        assert len(self.give_back(world, lease, 2)) == 2
        assert self.give_back(world, lease, 1) == [used]
        [aggregate] = world.nova.aggregates.values()
        assert aggregate.hosts == (used,)
        assert world.lease(lease).status == 'ACTIVE'
        # Others have the hosts at once.
        assert world.create(hosts(2, 2), start='now', end=100)
        world.check()

    @pytest.mark.parametrize('dry_run', [False, True])
    def test_no_host_in_use_is_given_back(self, world, lease, dry_run):
        self.use(world, lease, 'a', 'c')
        with refused(exception.CantUpdateParameter, 'max'):
            self.give_back(world, lease, 1, dry_run=dry_run)
        assert len(world.held(lease)) == 3
        world.run()
        assert world.lease(lease).status == 'ACTIVE'

    def test_a_dry_run_gives_nothing_back(self, world, lease):
        assert len(self.give_back(world, lease, 1, dry_run=True)) == 3

    def test_a_maximum_that_is_not_reached_gives_nothing_back(
        self, world, lease
    ):
        assert len(self.give_back(world, lease, 5)) == 3
        assert len(self.give_back(world, lease, 4)) == 3

    def test_a_maximum_that_falls_to_a_minimum_that_rises(self, world, lease):
        assert len(self.give_back(world, lease, 5)) == 3
        with pytest.raises(exception.NotEnoughHostsAvailable):
            self.give_back(world, lease, 4, least=4)
        world.add_hosts('d', 'e')
        kept = self.give_back(world, lease, 4, least=4)
        assert len(kept) == 4 and {*'abc'} < {*kept}
        assert len(self.give_back(world, lease, 3, least=2)) == 3

    @pytest.mark.parametrize('used', [[], ['c']])
    @pytest.mark.parametrize('start', ['now', 100])
    def test_the_first_hosts_to_go_are_those_out_of_service(
        self, world, start, used
    ):
        world.add_hosts('a', 'b', 'c')
        lease = world.create(hosts(2, 3), start=start, end=200)
        world.run()
        for name in used if start == 'now' else ():
            self.use(world, lease, name)
        # Before the monitor heals the lease.
        world.ledger.commit(lambda tx: tx.put_host(
            dataclasses.replace(world.host('a'), reservable=False)
        ))
        assert self.give_back(world, lease, 2, least=2) == ['b', 'c']

    def test_hosts_are_given_back_and_the_end_is_moved(self, world, lease):
        self.use(world, lease, 'b')
        [reservation] = lease.reservations
        change = {'id': reservation.id, 'min': 1, 'max': 1}
        world.update_lease(lease, reservations=[change], end=lease.end + 50)
        [(_, _, amount)] = world.held(lease)
        assert amount == 'whole'
        assert world.lease(lease).end == lease.end + 50


class TestDates:
    """Every way to move a lease, and the result of each.

    Times are in seconds from the creation of the lease; there is one host,
    which others have reserved over [20, 60) and [240, 300).
    """

    NEVER = window.FOREVER
    ROOM = exception.NotEnoughHostsAvailable
    FIXED = exception.CantUpdateParameter
    WRONG = exception.InvalidInput

    @pytest.fixture
    def move(self, world):
        """move(old, at, start, end): the new window, or the refusal."""
        zero = world.now
        world.add_host('a')

        def moment(at):
            return at if at in ('now', self.NEVER) else zero + at

        def held(lease):
            [(allocation, _)] = world.ledger.allocations(lease_id=lease.id)
            return allocation.start, allocation.end

        def move(old, at, start, end):
            lease = world.create(start=old[0] or 'now', end=old[1])
            for other in ((20, 60), (240, 300)):
                if other[0] >= old[1] or other[1] <= old[0]:
                    world.create(start=other[0], end=other[1])
            world.run()
            world.clock.now += at
            before, before_held = world.lease(lease), held(lease)
            asked = {'start': start, 'end': end}
            values = {k: moment(v) for k, v in asked.items() if v is not None}
            try:
                new = world.leases.update(lease.id, None, values)
            except exception.BlazarSchedError as refusal:
                assert world.lease(lease) == before
                assert held(lease) == before_held
                return type(refusal), refusal.field
            finally:
                world.check()
            assert new == world.lease(lease)
            # The past part of the window is not needed any more.
            begins = new.start if at == 0 else max(held(lease)[0], new.start)
            assert begins <= max(new.start, world.now)
            assert held(lease) == (begins, new.end)
            planned = {'start_lease': new.start, 'end_lease': new.end}
            if new.end == self.NEVER:
                del planned['end_lease']
            assert times(new) == planned
            return new.start - zero, (
                new.end if new.end == self.NEVER else new.end - zero
            )

        return move

    @pytest.mark.parametrize('start, end, expected', [
        (None, None, (100, 200)),
        (100, 200, (100, 200)),
        # Shorten, extend, and extend up to the next lease.
        (None, 150, (100, 150)),
        (None, 101, (100, 101)),
        (None, 240, (100, 240)),
        (None, 241, (ROOM, 'reservations')),
        # Defer and advance the start, also up to the previous lease.
        (150, None, (150, 200)),
        (60, None, (60, 200)),
        (59, None, (ROOM, 'reservations')),
        # Move both: over itself, beside itself, past the next lease.
        (60, 240, (60, 240)),
        (150, 240, (150, 240)),
        (60, 100, (60, 100)),
        (200, 240, (200, 240)),
        (300, 400, (300, 400)),
        (200, 241, (ROOM, 'reservations')),
        (300, NEVER, (300, NEVER)),
        (None, NEVER, (ROOM, 'reservations')),
        # The current time, and the current minute.
        ('now', 20, (0, 20)),
        (-59, 20, (0, 20)),
        ('now', None, (ROOM, 'reservations')),
        # A past window, and an invalid window.
        (-61, 20, (WRONG, 'start_date')),
        (None, -61, (WRONG, 'end_date')),
        (None, 'now', (WRONG, 'end_date')),
        (None, 100, (WRONG, 'end_date')),
        (200, None, (WRONG, 'end_date')),
        (150, 120, (WRONG, 'end_date')),
    ])
    def test_dates_of_a_pending_lease(self, move, start, end, expected):
        assert move((100, 200), 0, start, end) == expected

    @pytest.mark.parametrize('start, end, expected', [
        (None, None, (0, 200)),
        (0, 200, (0, 200)),
        (None, 81, (0, 81)),
        (None, 240, (0, 240)),
        (None, 241, (ROOM, 'reservations')),
        (None, NEVER, (ROOM, 'reservations')),
        (None, 'now', (0, 80)),
        (None, 80, (0, 80)),
        (None, 21, (0, 80)),
        (None, 19, (WRONG, 'end_date')),
        # Its start, in minutes, and any other start.
        (59, 240, (0, 240)),
        (60, None, (FIXED, 'start_date')),
        (-1, None, (FIXED, 'start_date')),
        ('now', 240, (FIXED, 'start_date')),
    ])
    def test_dates_of_an_active_lease(self, move, start, end, expected):
        assert move((0, 200), 80, start, end) == expected


class TestNothingNew:
    """An update with the existing values."""

    @pytest.mark.parametrize('at', [0, 150])
    def test_update_to_the_present_values_has_no_revision(
        self, world, slots, at
    ):
        world.add_host('a')
        lease = world.create(slots(2), slots(1), before_end=world.now + 140)
        world.run(at)
        world.run()
        before = world.lease(lease)
        revision = world.ledger.changes(0)['newest']
        world.clock.now += 7
        asked = {
            'name': lease.name,
            'start': lease.start,
            'end': lease.end,
            'before_end': lease.before_end,
            'reservations': [{
                'id': lease.reservations[0].id, 'amount': 2, 'projects': [],
                'on_end': 'delete',
            }],
        }
        for values in ({}, asked, *({k: v} for k, v in asked.items())):
            assert world.leases.update(lease.id, None, values) == before
        assert world.lease(lease) == before
        assert world.ledger.changes(0)['newest'] == revision


class TestUse:
    """Sharing of a reservation, and the end of the servers in it."""

    @pytest.mark.parametrize('kind', ['whole', 'slots'])
    def test_projects_and_on_end_of_a_reservation_are_stored(
        self, world, request, kind
    ):
        world.add_host('a')
        ask = request.getfixturevalue(kind)
        lease = world.create(ask(projects=['x', 'y'], on_end='keep'))
        for noun in (lease, world.lease(lease)):
            [reservation] = noun.reservations
            assert reservation.projects == ('x', 'y')
            assert reservation.on_end == 'keep'
            assert 'projects' not in reservation.demand.encode()
        record = world.ledger.replica.reservations[reservation.id]
        assert record.is_open_to('x')
        assert not record.is_open_to('z')

    def test_lease_is_shared_with_fifty_projects_at_most(self, world, slots):
        """The servers of each project have to be listed."""
        world.add_host('a')
        many = [[f'p{n}' for n in range(at, at + 26)] for at in (0, 25)]
        asked = [slots(1, 1, projects=projects) for projects in many]
        with refused(exception.InvalidInput, 'projects'):
            world.create(*asked)
        # A project that is named twice counts once.
        many[1].remove('p50')
        asked[1]['projects'] = many[1]
        lease = world.create(*asked)
        changed = {'id': lease.reservations[0].id, 'projects': ['p99']}
        with refused(exception.InvalidInput, 'projects'):
            world.update_lease(
                lease,
                reservations=[changed, {**slots(1, 1, projects=many[0])}],
            )
        assert world.lease(lease) == lease

    def test_reservation_is_not_shared_and_deletes_by_default(self, world):
        world.add_host('a')
        [reservation] = world.create().reservations
        assert (reservation.projects, reservation.on_end) == ((), 'delete')

    @pytest.mark.parametrize('field, value', [
        ('projects', None),
        ('projects', 'project'),
        ('projects', {'a': 1}),
        ('projects', ['a', 1]),
        ('projects', ['']),
        ('projects', ['x' * 65]),
        ('projects', ['a', 'b', 'a']),
        ('projects', [str(n) for n in range(51)]),
        ('on_end', None),
        ('on_end', ''),
        ('on_end', 'snapshot'),
        ('on_end', ['keep']),
    ])
    def test_bad_value_is_named(self, world, whole, field, value):
        world.add_host('a')
        lease = world.create()
        id_ = lease.reservations[0].id
        for act in (
            lambda: world.create(whole(**{field: value}), start=300, end=400),
            lambda: world.leases.update(
                lease.id, None, {'reservations': [{'id': id_, field: value}]}
            ),
        ):
            with refused(exception.InvalidInput, field):
                act()
        assert world.ledger.leases() == [lease]

    def test_reservation_is_shared_with_fifty_projects(self, world, whole):
        world.add_host('a')
        projects = [f'{n:064}' for n in range(50)]
        [reservation] = world.create(whole(projects=projects)).reservations
        assert list(reservation.projects) == projects

    def test_projects_of_an_active_reservation_come_and_go(self, world, slots):
        world.add_host('a')
        lease = world.start_lease(slots(projects=['x']))
        id_ = lease.reservations[0].id

        def may_boot():
            return {p for flavor, p in world.nova.access if flavor == id_}

        assert may_boot() == {'project', 'x'}
        for projects in (['x', 'y'], ['y'], []):
            change = {'id': id_, 'projects': projects}
            world.update_lease(lease, reservations=[change])
            world.run()
            assert may_boot() == {'project', *projects}
            record = world.ledger.replica.reservations[id_]
            assert list(record.projects) == projects
        assert world.lease(lease).status == 'ACTIVE'

    def test_needs_no_room(self, world, slots):
        """The request is for nothing more, whatever the host has by now."""
        world.add_host('a')
        lease = world.start_lease(slots(4, vcpus=2))
        world.add_server('a')
        world.manager.instances.sync()
        world.change_reservation(lease, on_end='keep')
        assert world.lease(lease).reservations[0].on_end == 'keep'


class TestAddAndRemove:
    """Reservations that are added to a lease, or removed."""

    def update(self, world, lease, *changes, **values):
        return world.update_lease(lease, reservations=list(changes), **values)

    def test_reservation_is_added_to_a_pending_lease(
        self, world, whole, slots
    ):
        world.add_hosts('a', 'b')
        lease = world.create(whole())
        new = self.update(world, lease, slots(2))
        assert new == world.lease(lease)
        assert new.reservations[0] == lease.reservations[0]
        added = new.reservations[1]
        assert (added.lease_id, added.status) == (lease.id, 'pending')
        assert len({host for _, host, _ in world.held(lease)}) == 2
        world.run(100)
        assert {r.status for r in world.lease(lease).reservations} == {
            'active'
        }
        assert added.id in world.nova.made_flavors
        world.check()

    def test_reservation_is_added_to_an_active_lease(
        self, world, whole, slots
    ):
        world.add_hosts('a', 'b')
        lease = world.start_lease(slots(1, affinity=True))
        new = self.update(world, lease, slots(1, affinity=True), whole())
        assert new.status == 'ACTIVE'
        assert [r.status for r in new.reservations] == [
            'active', 'pending', 'pending',
        ]
        world.run()
        assert [r.status for r in world.lease(lease).reservations] == [
            'active', 'active', 'active',
        ]
        assert new.reservations[1].id in world.nova.made_flavors
        world.check()
        world.run(200)
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.nova.made_flavors
        assert not world.placement.children

    @pytest.mark.row('F16')
    def test_no_room_for_one_of_them_is_no_room_for_all(self, world, whole):
        world.add_hosts('a', 'b')
        lease = world.create(whole())
        before, held = world.lease(lease), world.held(lease)
        with pytest.raises(exception.NotEnoughHostsAvailable):
            self.update(world, lease, whole(), whole(), name='new')
        assert (world.lease(lease), world.held(lease)) == (before, held)
        world.check()

    @pytest.mark.parametrize('change, field', [
        ({}, 'reservations'),
        ({'min': 1, 'max': 1}, 'reservations'),
        ({'id': 'x'}, 'reservations'),
        ({'id': 'x', 'remove': True}, 'reservations'),
        ({'resource_type': 'no:such'}, 'resource_type'),
        ({'resource_type': 'physical:host', 'min': 0}, 'min'),
    ])
    def test_invalid_change_is_refused_by_field(self, world, change, field):
        world.add_host('a')
        lease = world.create()
        with refused(exception.InvalidInput, field):
            self.update(world, lease, change)
        assert world.lease(lease) == lease

    def test_number_of_reservations_of_a_lease_is_limited(self, world, whole):
        world.add_host('a')
        lease = world.create()
        update = functools.partial(self.update, world, lease)
        for ask in (world.create, update):
            with refused(exception.InvalidInput, 'reservations'):
                ask(*[whole()] * 101)

    def test_reservation_is_removed_from_a_pending_lease(
        self, world, whole, slots
    ):
        world.add_hosts('a', 'b')
        lease = world.create(whole(), slots())
        first, second = lease.reservations
        new = self.update(world, lease, {'id': first.id, 'remove': True})
        assert new.reservations == (second,)
        assert {id_ for id_, *_ in world.held(lease)} == {second.id}
        assert len(world.ledger.leases()) == 1
        world.create(whole())
        world.check()

    def test_reservation_is_replaced_on_its_own_host(
        self, world, whole, slots
    ):
        host = world.add_host('a')
        lease = world.create(whole())
        old = lease.reservations[0]
        new = self.update(
            world, lease, {'id': old.id, 'remove': True}, slots(1)
        )
        assert world.held(lease) == [(new.reservations[0].id, host, 2)]
        world.check()

    def test_reservation_is_removed_from_an_active_lease(
        self, world, whole, slots
    ):
        """The removed reservation is ended first; the others stay."""
        world.add_hosts('a', 'b')
        lease = world.start_lease(slots(1), slots(2), end=1000)
        kept, gone = lease.reservations
        mine = world.add_server('a', 'project', reservation_id=kept.id)
        theirs = world.add_server('a', 'project', reservation_id=gone.id)
        held = [h for h in world.held(lease) if h[0] == kept.id]
        new = self.update(world, lease, {'id': gone.id, 'remove': True})
        assert [r.id for r in new.reservations] == [kept.id]
        assert new.status == 'ACTIVE'
        [leaving] = [x for x in world.ledger.leases() if x.id != lease.id]
        assert (leaving.status, leaving.name) == ('DELETING', lease.name)
        assert [r.id for r in leaving.reservations] == [gone.id]
        world.check()
        world.run()
        world.run(1)
        assert world.ledger.leases() == [world.lease(lease)]
        assert set(world.nova.stored) == {mine.uuid}
        assert theirs.uuid in world.nova.asked
        assert set(world.nova.made_flavors) == {kept.id}
        assert world.held(lease) == held
        assert world.lease(lease).status == 'ACTIVE'
        world.check()

    def test_hosts_of_a_removed_reservation_are_free_after_its_end(
        self, world, whole
    ):
        world.add_host('a')
        lease = world.start_lease(whole(), end=1000)
        server = world.add_server('a', 'project')
        world.nova.slowness = 2
        [old] = lease.reservations
        self.update(world, lease, {'id': old.id, 'remove': True})
        with pytest.raises(exception.NotEnoughHostsAvailable):
            self.update(world, lease, whole())
        for _ in range(5):
            world.run(2)
        assert server.uuid not in world.nova.stored
        self.update(world, lease, whole())
        world.run()
        assert len(world.held(lease)) == 1
        world.check()

    def test_lease_cannot_change_while_an_added_reservation_starts(
        self, world, whole, slots
    ):
        world.add_hosts('a', 'b')
        lease = world.start_lease(whole(), end=1000)
        added = self.update(world, lease, slots()).reservations[1]
        before = world.lease(lease)
        with pytest.raises(exception.InvalidStatus):
            self.update(world, lease, {'id': added.id, 'remove': True})
        assert world.lease(lease) == before
        world.run()
        self.update(world, lease, {'id': added.id, 'remove': True})
        world.run()
        assert [r.id for r in world.lease(lease).reservations] == [
            lease.reservations[0].id
        ]
        assert not world.nova.made_flavors

    def test_growing_reservation_takes_no_host_of_the_other(
        self, world, whole
    ):
        """No host is reserved twice, in whichever order hosts are counted."""
        world.add_hosts('a', 'b', 'c')
        lease = world.start_lease(whole(), whole(), end=1000)
        first, second = lease.reservations
        held = {h for h in world.held(lease) if h[0] == second.id}
        self.update(world, lease, {'id': first.id, 'min': 2, 'max': 2})
        assert len(world.held(lease)) == 3
        assert held < set(world.held(lease))
        world.check()

    def test_reservation_removed_before_its_start_is_ended(self, world, slots):
        """An open reservation is ended, although a start is still to be done.
        """
        world.add_host('a')
        lease = world.start_lease(slots(), end=1000)
        world.clock.now += 10
        self.update(world, lease, slots(), end='now')
        world.run()
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.nova.made_flavors
        assert not world.placement.children
        world.check()


class TestUpdateActiveSlots:
    def active(self, world, *reservations):
        lease = world.start_lease(*reservations, end=200)
        assert world.lease(lease).status == 'ACTIVE'
        return lease

    def grow(self, world, lease, **change):
        world.change_reservation(lease, **change)
        world.run()

    def test_amount_grows(self, world, slots):
        world.add_host('a', vcpus=4)
        lease = self.active(world, slots(2, vcpus=2))
        [(id_, first, _)] = world.held(lease)
        second = world.add_host('b', vcpus=4)
        self.grow(world, lease, amount=3)
        assert world.held(lease) == sorted([(id_, first, 4), (id_, second, 2)])
        totals = sorted(world.placement.children.values())
        assert totals == [1, 2]
        world.check()

    def test_growing_keeps_affinity(self, world, slots):
        host = world.add_host('a', vcpus=4)
        lease = self.active(world, slots(1, vcpus=2, affinity=True))
        world.add_host('b', vcpus=8)
        self.grow(world, lease, amount=2)
        assert [(h, n) for _, h, n in world.held(lease)] == [(host, 4)]
        with pytest.raises(exception.NotEnoughHostsAvailable):
            self.grow(world, lease, amount=3)
        world.check()

    def test_growing_keeps_anti_affinity(self, world, slots):
        world.add_hosts('a', 'b', vcpus=8)
        lease = self.active(world, slots(1, affinity=False))
        self.grow(world, lease, amount=2)
        assert len({host for _, host, _ in world.held(lease)}) == 2
        with pytest.raises(exception.NotEnoughHostsAvailable):
            self.grow(world, lease, amount=3)

    @pytest.mark.parametrize('change', [
        {'vcpus': 1}, {'memory_mb': 1}, {'disk_gb': 2}, {'affinity': True},
        {'resource_properties': '["==","$x","y"]'},
    ])
    def test_only_the_amount_of_active_slots_can_change(
        self, world, slots, change
    ):
        world.add_host('a')
        lease = self.active(world, slots(2))
        with pytest.raises(exception.CantUpdateParameter):
            self.grow(world, lease, **change)

    def test_prolong_and_grow_at_once(self, world, slots):
        host = world.add_host('a', vcpus=8)
        lease = self.active(world, slots(2, vcpus=2))
        world.create(slots(1, vcpus=2), start=200, end=300)
        change = {'id': lease.reservations[0].id, 'amount': 4}
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.update_lease(
                lease, end=lease.end + 50, reservations=[change],
            )
        change['amount'] = 3
        world.update_lease(lease, end=lease.end + 50, reservations=[change])
        assert [(h, n) for _, h, n in world.held(lease)] == [(host, 6)]
        world.check()


class TestDelete:
    def test_pending_lease_is_deleted_with_its_allocations(self, world):
        world.add_host('a')
        lease = world.create()
        world.leases.delete(lease.id, 'project')
        assert world.ledger.leases() == []
        assert world.ledger.allocations() == []
        world.create()
        world.check()

    def test_active_lease_is_ended_before_it_is_deleted(self, world, slots):
        world.add_host('a')
        lease = world.start_lease(slots())
        mine = world.add_own_server(lease)
        other = world.add_server('a', 'project')
        world.leases.delete(lease.id, None)
        assert world.ledger.leases() == []
        assert list(world.nova.stored) == [other.uuid]
        assert mine.uuid in world.nova.asked
        assert not world.nova.made_flavors
        assert not world.placement.children
        assert not world.placement.classes
        world.check()

    @pytest.mark.parametrize('slowness, left', [(3, []), (200, ['DELETING'])])
    def test_waits_for_the_servers_or_goes_on_after_the_answer(
        self, world, slots, slowness, left
    ):
        world.add_host('a')
        lease = world.start_lease(slots(), end=1000)
        world.add_own_server(lease)
        world.nova.slowness = slowness
        world.leases.delete(lease.id, None)
        assert world.waited > 0
        assert [each.status for each in world.ledger.leases()] == left
        world.nova.slowness = 0
        world.run(10)
        world.run(10)
        assert world.nova.stored == {}
        assert world.ledger.leases() == []

    def test_nova_refuses(self, world, conf, slots):
        """The lease stays in a failed status, and can be deleted later."""
        conf.set_override('event_max_retries', 1, 'manager')
        # The event is given up before the delete stops waiting.
        conf.set_override('event_retry_interval', 1.0, 'manager')
        world.add_host('a')
        lease = world.start_lease(slots(), end=1000)
        world.nova.failures, world.nova.refuses = 100, True
        with pytest.raises(exception.Unavailable):
            world.leases.delete(lease.id, None)
        assert world.lease(lease).status == 'ERROR'
        assert world.held(lease) != []
        # A new name makes no event due that was given up.
        world.update_lease(lease, name='stuck')
        assert world.ledger.due_events(window.TIME_LIMIT) == []
        world.nova.failures = 0
        world.leases.delete(lease.id, None)
        assert world.ledger.leases() == []
        assert not world.nova.made_flavors

    def test_terminated_lease_is_deleted(self, world):
        world.add_host('a')
        lease = world.start_lease()
        world.run(200)
        world.leases.delete(lease.id, None)
        assert world.ledger.leases() == []

    def test_active_lease_without_end_is_deleted(self, world):
        world.add_host('a')
        lease = world.start_lease(end=window.FOREVER)
        assert world.lease(lease).status == 'ACTIVE'
        world.leases.delete(lease.id, None)
        assert world.ledger.leases() == []
        world.create(start=0)

    def test_lp_1791741_not_during_an_event(self, world):
        """A delete in the middle of a start once left half of the lease."""
        world.add_host('a')
        lease = world.create(start='now')
        start = lease.events[0]
        claim = Claim('x', 'token', world.now + 9)
        world.ledger.write(lambda tx: tx.claim_event(start.id, claim, None))
        for change in (
            lambda: world.leases.delete(lease.id, None),
            lambda: world.update_lease(lease, name='b'),
        ):
            with pytest.raises(exception.InvalidStatus):
                change()
        assert world.lease(lease).name == 'lease'
        world.ledger.write(lambda tx: tx.finish_event(
            start.id, claim.token, states.EVENT_UNDONE
        ))
        world.leases.delete(lease.id, None)
        assert world.ledger.leases() == []


class TestProjects:
    def test_lp_2120655_only_the_own_project(self, world):
        """Any user could once update or delete any lease by its id."""
        world.add_host('a')
        lease = world.create()
        for id_ in (lease.id, 'no-such-lease'):
            for change in (
                lambda id_: world.ledger.owned_lease(id_, 'other'),
                lambda id_: world.leases.update(id_, 'other', {'name': 'x'}),
                lambda id_: world.leases.delete(id_, 'other'),
            ):
                with pytest.raises(exception.LeaseNotFound):
                    change(id_)
        assert world.lease(lease) == lease
        assert world.ledger.leases('other') == []
        assert world.ledger.leases('project') == [lease]
