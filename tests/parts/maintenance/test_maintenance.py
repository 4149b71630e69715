# SPDX-License-Identifier: Apache-2.0
"""Maintenances: hosts are closed over a window, vacated, and open again."""

import contextlib
import dataclasses
import random
import threading

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.event import Claim
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.maintenance import execution
from blazar_sched.parts.maintenance import manager
from blazar_sched.parts.maintenance import models
from blazar_sched.parts.maintenance.exception import InTheWay
from blazar_sched.parts.maintenance.execution import LEASE_MAINTENANCE
from blazar_sched.service import faults
from blazar_sched.service import slices
from tests.told import notified


@pytest.fixture
def told(world, monkeypatch):
    """The leases whose owners were notified of a maintenance."""
    return notified(
        world.manager, monkeypatch, lambda type_, payload: (
            type_, payload['lease_id'], payload['degraded'],
            payload['maintenance']['reason'],
        ) if type_ == LEASE_MAINTENANCE else None,
    )


@pytest.mark.row('F74')
class TestClosedHost:
    @pytest.fixture
    def world(self, world):
        world.add_host('a', rack='7')
        return world

    def test_no_lease_is_placed_in_the_window(self, world, close):
        close('a')
        for start, end in ((50, 101), (100, 200), (150, 160), (199, 300)):
            with pytest.raises(exception.NotEnoughHostsAvailable):
                world.create(start=start, end=end)

    def test_no_part_of_the_host_either(self, world, close, slots):
        close('a')
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(slots(), start=150, end=160)

    def test_leases_up_to_the_window_and_from_its_end_on(
        self, world, close, on
    ):
        close('a')
        for start, end in ((50, 100), (200, 300)):
            assert on(world.create(start=start, end=end)) == ['a']
        world.check()

    def test_hosts_by_a_requirement_that_is_evaluated_once(self, world, close):
        made = close(requirement='["==", "$rack", "7"]')
        world.add_host('b', rack='7')
        assert made['hosts'] == ['a']
        world.create(start=150, end=160)

    def test_maintenance_without_end_closes_a_host_until_it_has_one(
        self, world, close, maintenances
    ):
        made = close('a', end=FOREVER)
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(start=10**6, end=2 * 10**6)
        maintenances.update(made['id'], {'end': world.now + 200})
        world.create(start=10**6, end=2 * 10**6)
        world.check()

    def test_cancelled_maintenance_leaves_the_host_open(
        self, world, close, maintenances
    ):
        made = close('a')
        maintenances.delete(made['id'])
        world.create(start=150, end=160)
        assert world.ledger.run(models.list_) == []
        assert world.host('a').maintenances == ()
        world.check()

    def test_overlapping_maintenances_close_a_host_each(
        self, world, close, maintenances
    ):
        first = close('a')
        close('a', start=150, end=300)
        maintenances.delete(first['id'])
        world.create(start=100, end=150)
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(start=199, end=250)

    def test_one_that_is_over_is_taken_from_the_host(
        self, world, close, maintenances
    ):
        made = close('a')
        world.clock.now += 200
        assert maintenances.get(made['id'])['status'] == 'OVER'
        maintenances.step()
        assert world.host('a').maintenances == ()
        world.check()

    @pytest.mark.parametrize('settled', [False, True])
    def test_maintenance_that_is_over_can_be_renamed(
        self, world, close, maintenances, settled
    ):
        lease = world.create(start=100, end=500)
        made = close('a', force=True)
        world.clock.now += 200
        if settled:
            maintenances.step()
        shown = maintenances.update(made['id'], {'name': 'rack 8'})
        assert (shown['name'], shown['status']) == ('rack 8', 'OVER')
        assert (shown['moved'], shown['in_the_way']) == ([], [])
        maintenances.step()
        assert world.host('a').maintenances == ()
        assert not world.ledger.lease(lease.id).degraded
        world.check()

    def test_maintenance_that_is_over_can_only_get_a_future_end(
        self, world, close, maintenances
    ):
        made = close('a', start=None)
        world.clock.now += 200
        with pytest.raises(exception.InvalidInput) as error:
            maintenances.update(made['id'], {'end': world.now - 10})
        assert error.value.field == 'end_date'
        maintenances.update(made['id'], {'end': world.now + 9})
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(start='now', end=500)

    def test_another_manager_knows(self, conf, world, close):
        other = world.another(conf)
        other.ledger.warm()
        close('a')
        with pytest.raises(exception.NotEnoughHostsAvailable):
            other.leases.create({
                'name': 'lease', 'project_id': 'project', 'user_id': 'user',
                'start': world.now + 100, 'end': world.now + 200,
                'before_end': None,
                'reservations': [{
                    'resource_type': 'physical:host', 'min': 1, 'max': 1,
                }],
            })
        other.ledger.close()

    @pytest.mark.parametrize(
        ('values', 'field'),
        [
            ({'start': -1}, 'start_date'),
            ({'end': 50}, 'end_date'),
            ({'start': None, 'end': 0}, 'end_date'),
            ({'requirement': '["==", "$rack", "8"]'}, 'resource_properties'),
        ],
    )
    def test_invalid_maintenance_is_refused_by_field(
        self, world, close, values, field
    ):
        hosts = () if 'requirement' in values else ('a',)
        with pytest.raises(exception.InvalidInput) as error:
            close(*hosts, **values)
        assert error.value.field == field
        assert world.ledger.run(models.list_) == []

    def test_a_host_that_is_not_registered(self, close):
        with pytest.raises(exception.HostNotFound) as error:
            close('b')
        assert error.value.field == 'hosts'


class TestRegisteredAgain:
    def test_a_host_that_is_registered_again_is_closed(self, world, close, on):
        for name in 'ab':
            world.add_host(name)
        close('a', start=100, end=200)
        world.manager.hosts.delete(world.host('a').id)
        world.manager.hosts.create('a', {})
        assert on(world.create(start=150, end=160)) == ['b']
        with pytest.raises(exception.NotEnoughHostsAvailable):
            world.create(start=150, end=160)
        world.check()
        # The check detects a host that lacks the copy, or has another copy.
        old = world.host('a')
        for copies in ((), old.closed_windows * 2):
            world.ledger.commit(lambda tx, copies=copies: tx.put_host(
                dataclasses.replace(old, maintenances=tuple(
                    dataclasses.replace(each, end=each.end + n)
                    for n, each in enumerate(copies)
                ))
            ))
            [fault] = world.ledger.check(world.now)
            assert fault.startswith(f'host {old.uuid}: closed over ')


class TestLeasesOnTheHosts:
    @pytest.fixture
    def world(self, world):
        world.add_host('a')
        return world

    def test_a_lease_moves_to_another_host(self, world, close, on, told):
        lease = world.create(start=150, end=300)
        world.add_host('b')
        made = close('a')
        assert on(lease) == ['b']
        assert made['in_the_way'] == []
        assert [(m['lease_id'], m['hosts']) for m in made['moved']] == [
            (lease.id, ['a'])
        ]
        assert told == [(LEASE_MAINTENANCE, lease.id, False, 'power')]
        assert not world.lease(lease).degraded

    def test_a_lease_beside_the_window_stays(self, world, close, on, told):
        leases = [
            world.create(start=50, end=100), world.create(start=200, end=300),
        ]
        world.add_host('b')
        close('a')
        assert [on(each) for each in leases] == [['a'], ['a']]
        assert told == []

    def test_leases_do_not_move_to_one_host_twice(self, world, close, on):
        world.add_host('b')
        leases = [world.create(start=150, end=300) for _ in range(2)]
        world.add_host('c')
        made = close('a', 'b', force=True)
        [blocked] = made['in_the_way']
        held = [on(each) for each in leases]
        assert sorted(held) in ([['a'], ['c']], [['b'], ['c']])
        assert [blocked['hosts']] == [h for h in held if h != ['c']]

    def test_only_what_is_on_the_hosts_moves(self, world, close, on, whole):
        world.add_host('b')
        lease = world.create(whole(2, 2), start=150, end=300)
        world.add_host('c')
        close('a')
        assert on(lease) == ['b', 'c']

    def test_no_room_elsewhere(self, world, close, on, told):
        lease = world.create(start=150, end=300)
        with pytest.raises(InTheWay, match='no_room') as error:
            close('a')
        assert error.value.field == 'hosts'
        assert world.ledger.run(models.list_) == []
        assert told == []
        assert not world.lease(lease).degraded
        world.create(start=100, end=150)

    def test_no_lease_moves_to_a_spare_host(self, world, close):
        world.create(start=150, end=300)
        world.add_host('b', spare=True)
        with pytest.raises(InTheWay):
            close('a')

    @pytest.mark.row('F36')
    def test_a_dry_run_shows_it_and_changes_nothing(
        self, world, close, on, told
    ):
        world.add_host('b')
        leases = [world.create(start=150, end=300) for _ in range(2)]
        world.add_host('c')
        revision = world.ledger.newest()[1]
        made = close('a', 'b', dry_run=True)
        assert [each['why'] for each in made['in_the_way']] == ['no_room']
        assert len(made['moved']) == 1
        assert sorted(map(on, leases)) == [['a'], ['b']]
        assert world.ledger.newest()[1] == revision
        assert told == []

    def test_forced_maintenance_leaves_a_lease_on_its_host(
        self, world, close, on, told
    ):
        lease = world.create(start=150, end=300)
        made = close('a', force=True)
        assert [each['why'] for each in made['in_the_way']] == ['no_room']
        assert on(lease) == ['a']
        assert world.lease(lease).degraded
        assert told == [(LEASE_MAINTENANCE, lease.id, True, 'power')]

    def test_a_lease_in_the_way_moves_once_there_is_room(
        self, world, close, on
    ):
        lease = world.create(start=150, end=300)
        close('a', force=True)
        world.add_host('b')
        world.manager.replanner.replan()
        assert on(lease) == ['b']
        assert not world.lease(lease).degraded
        world.check()

    def test_cancelling_restores_a_lease(self, world, close, maintenances, on):
        lease = world.create(start=150, end=300)
        made = close('a', force=True)
        maintenances.delete(made['id'])
        assert on(lease) == ['a']
        assert not world.lease(lease).degraded

    def test_so_does_another_window(self, world, close, maintenances):
        lease = world.create(start=150, end=300)
        made = close('a', force=True)
        maintenances.update(made['id'], {'end': world.now + 150})
        assert not world.lease(lease).degraded
        world.check()

    def test_a_wider_window_moves_more(self, world, close, maintenances, on):
        made = close('a')
        lease = world.create(start=250, end=300)
        assert on(lease) == ['a']
        world.add_host('b')
        maintenances.update(made['id'], {'end': world.now + 260})
        assert on(lease) == ['b']
        world.check()

    def test_maintenance_can_begin_now(self, world, close, maintenances):
        made = close('a')
        changed = maintenances.update(made['id'], {'start': None})
        assert (changed['start'], changed['status']) == (world.now, 'ACTIVE')
        world.check()

    def test_a_wider_window_can_be_refused(
        self, world, close, maintenances, on
    ):
        made = close('a')
        world.create(start=250, end=300)
        with pytest.raises(InTheWay):
            maintenances.update(made['id'], {'end': world.now + 260})
        assert world.ledger.run(models.get, made['id']).end == world.now + 200

    @pytest.mark.parametrize('values', [
        {'name': 'rack 8'}, {'reason': 'water'}, {'end': 170},
    ], ids=str)
    def test_lease_on_a_closed_host_can_change_to_less(
        self, world, close, maintenances, on, values
    ):
        lease = world.create(start=150, end=300)
        made = close('a', force=True)
        world.add_host('b')
        if 'end' in values:
            values = {'end': world.now + values['end']}
        shown = maintenances.update(made['id'], values)
        assert shown.items() >= values.items()
        assert [each['lease_id'] for each in shown['in_the_way']] == [lease.id]
        assert shown['moved'] == []
        assert on(lease) == ['a']
        assert world.lease(lease).degraded
        world.check()

    def test_an_open_lease_without_servers_moves(self, world, close, on):
        lease = world.create(start='now', end=300)
        world.run()
        world.add_host('b')
        close('a')
        world.run()
        assert on(lease) == ['b']
        assert world.lease(lease).status == 'ACTIVE'
        assert not world.lease(lease).degraded

    def test_an_open_lease_with_servers_stays(self, world, close, on):
        lease = world.create(start='now', end=300)
        world.run()
        [reservation] = lease.reservations
        world.add_server('a', 'project', reservation_id=reservation.id)
        world.manager.instances.sync()
        world.add_host('b')
        with pytest.raises(InTheWay, match='servers'):
            close('a')
        made = close('a', force=True)
        assert [each['why'] for each in made['in_the_way']] == ['servers']
        assert on(lease) == ['a']
        assert world.lease(lease).degraded

    def test_its_lease_is_whole_again_at_the_end(
        self, world, close, maintenances, on
    ):
        lease = world.create(start='now', end=300)
        world.run()
        close('a', force=True)
        world.run(100)
        assert world.lease(lease).degraded
        world.clock.now += 100
        maintenances.step()
        world.run()
        assert on(lease) == ['a']
        assert not world.lease(lease).degraded
        world.check()

    def test_a_start_does_not_forget_the_maintenance(self, world, close):
        lease = world.create(start=50, end=300)
        close('a', force=True)
        world.run(50)
        assert world.lease(lease).status == 'ACTIVE'
        assert world.lease(lease).degraded

    def test_a_lease_with_an_event_in_progress_stays(self, world, close, on):
        lease = world.create(start='now', end=300)
        world.add_host('b')
        [(start, _)] = world.ledger.due_events(world.now)
        claim = Claim('another', 'token', 10**10)
        assert world.ledger.write(
            lambda tx: tx.claim_event(start.id, claim, None)
        )
        with pytest.raises(InTheWay, match='changing'):
            close('a')
        assert on(lease) == ['a']


class TestSlices:
    """All other commits wait for a commit, so that each one does little."""

    NUMBER = 7

    @pytest.fixture
    def leases(self, world):
        """Leases on a host, which another host has room for."""
        world.add_host('a')
        leases = [
            world.create(start=start, end=start + 50)
            for start in range(1000, 1000 + 100 * self.NUMBER, 100)
        ]
        world.add_host('b')
        return leases

    def test_a_commit_moves_few_leases(
        self, world, close, leases, on, monkeypatch
    ):
        moved = []
        real = world.ledger.commit

        def commit(work, dry_run=False):
            before = [on(each) for each in leases]
            answer = real(work, dry_run)
            moved.append(sum(
                on(each) != was
                for each, was in zip(leases, before, strict=True)
            ))
            return answer

        monkeypatch.setattr(world.ledger, 'commit', commit)
        made = close('a', start=1000, end=2000)
        assert len(made['moved']) == self.NUMBER
        assert sum(moved) == self.NUMBER
        assert max(moved) == execution.LEASES_IN_COMMIT

    @pytest.mark.parametrize('after', range(4))
    def test_killed_at_a_slice_another_manager_goes_on(
        self, world, close, maintenances, leases, on, killed, told, after
    ):
        with killed('maintenance:slice', after):
            close('a', start=1000, end=2000)
        left = [each for each in leases if on(each) == ['b']]
        assert len(left) == after * execution.LEASES_IN_COMMIT
        world.check()
        # Nothing new is placed there meanwhile.
        assert world.host('a').maintenances
        world.clock.now += manager.RESUME_AFTER
        maintenances.step()
        assert all(on(each) == ['b'] for each in leases)
        assert sorted(each[1] for each in told) == sorted(
            each.id for each in leases
        )
        world.check()

    @pytest.mark.parametrize('after', range(2))
    def test_killed_while_hosts_are_closed_or_opened(
        self, world, close, maintenances, killed, monkeypatch, after
    ):
        monkeypatch.setattr(slices, 'HOSTS', 1)
        names = 'abc'
        for name in names:
            world.add_host(name)

        def closed():
            return [name for name in names if world.host(name).maintenances]

        with killed('maintenance:slice', after):
            close(*names, start=1000, end=2000)
        assert len(closed()) == 1 + after
        world.clock.now += manager.RESUME_AFTER
        maintenances.step()
        assert closed() == list(names)
        [made] = world.ledger.run(models.list_)
        with killed('maintenance:slice', after):
            maintenances.delete(made.id)
        assert len(closed()) == 3 - after
        maintenances.step()
        assert closed() == []
        world.check()

    def test_room_that_is_taken_between_slices_leaves_a_degraded_lease(
        self, world, close, leases
    ):
        """The host is closed by then: the request is not refused any more."""
        def take(name):
            if name != 'maintenance:slice':
                return
            faults.arm(None)
            world.create(start=1000, end=2000)

        faults.arm(take)
        made = close('a', start=1000, end=2000)
        assert {each['why'] for each in made['in_the_way']} == {'no_room'}
        assert len(made['in_the_way']) == self.NUMBER
        assert all(world.lease(each).degraded for each in leases)


class TestRace:
    """A lease is booked on the host while the maintenance is created."""

    @pytest.mark.parametrize('first', ['lease', 'maintenance'])
    def test_lease_and_maintenance_are_booked_one_after_the_other(
        self, conf, world, close, maintenances, first, on
    ):
        world.add_host('a')
        other = world.another(conf)
        other.ledger.warm()
        at = world.now
        inside, go = threading.Event(), threading.Event()
        results = {}

        def book():
            return other.leases.create({
                'name': 'lease', 'project_id': 'project', 'user_id': 'user',
                'start': at + 100, 'end': at + 200, 'before_end': None,
                'reservations': [{
                    'resource_type': 'physical:host', 'min': 1, 'max': 1,
                }],
            })

        def shut():
            return maintenances.create({
                'name': 'm', 'reason': '', 'start': at + 100,
                'end': at + 200, 'hosts': ['a'], 'resource_properties': None,
            })

        actions = {'lease': book, 'maintenance': shut}
        ledgers = {'lease': other.ledger, 'maintenance': world.ledger}
        ledger = ledgers[first]
        finish = ledger._finish

        def late(*args):
            # The work of this commit is done; the other one begins.
            inside.set()
            go.wait(10)
            finish(*args)

        ledger._finish = late

        def run(name):
            try:
                results[name] = actions[name]()
            except exception.BlazarSchedError as e:
                results[name] = e

        [second] = actions.keys() - {first}
        threads = [threading.Thread(target=run, args=(first,))]
        threads[0].start()
        assert inside.wait(10)
        threads.append(threading.Thread(target=run, args=(second,)))
        threads[1].start()
        threads[1].join(0.2)
        assert threads[1].is_alive()
        go.set()
        for each in threads:
            each.join()
        assert not isinstance(results[first], Exception)
        assert isinstance(
            results[second],
            InTheWay if first == 'lease'
            else exception.NotEnoughHostsAvailable,
        )
        other.ledger.close()

    def test_control_outside_of_a_commit_both_would_have_been_accepted(
        self, conf, world, close
    ):
        """Both requests, decided on the ledger as it was before either."""
        world.add_host('a')
        other = world.another(conf)
        made = close('a', dry_run=True)
        assert made['in_the_way'] == []
        other.leases.create({
            'name': 'lease', 'project_id': 'project', 'user_id': 'user',
            'start': world.now + 100, 'end': world.now + 200,
            'before_end': None,
            'reservations': [{
                'resource_type': 'physical:host', 'min': 1, 'max': 1,
            }],
        })
        with pytest.raises(InTheWay):
            close('a')
        other.ledger.close()


HOSTS = 'abcde'


@pytest.mark.more
def test_small_worlds_by_brute_force(world, close, maintenances):
    """What moves fits, what stays has no room, and nothing else changes."""
    for name in HOSTS:
        world.add_host(name)
    names = {h.uuid: h.hypervisor_hostname for h in world.ledger.hosts()}
    moves = stays = 0
    for seed in range(60):
        draw = random.Random(seed)
        leases = []
        for _ in range(draw.randrange(2, 9)):
            start = draw.randrange(10, 60)
            with contextlib.suppress(exception.NotEnoughHostsAvailable):
                leases.append(world.create(
                    start=start, end=start + draw.randrange(5, 40)
                ))
        windows = {each.id: (each.start, each.end) for each in leases}
        before = {each.id: where(world, names, each) for each in leases}
        start = world.now + draw.randrange(5, 70)
        end = start + draw.randrange(5, 40)
        hosts = draw.sample(HOSTS, draw.randrange(1, 4))
        made = close(
            *hosts, start=start - world.now, end=end - world.now, force=True
        )
        after = {each.id: where(world, names, each) for each in leases}
        in_the_way = {each['lease_id'] for each in made['in_the_way']}
        moved = {each['lease_id'] for each in made['moved']}
        concerned = {
            id_ for id_, host in before.items()
            if host in hosts and overlap(windows[id_], (start, end))
        }
        assert moved | in_the_way == concerned
        assert moved.isdisjoint(in_the_way)
        for id_, host in after.items():
            assert (host != before[id_]) == (id_ in moved)
            # Nobody shares a host, and nobody has moved to a closed one.
            assert not any(
                after[other] == host and overlap(windows[id_], windows[other])
                for other in after if other != id_
            )
            assert id_ not in moved or host not in hosts
        for id_ in in_the_way:
            assert all(
                other in hosts or any(
                    after[rival] == other
                    and overlap(windows[id_], windows[rival])
                    for rival in after
                )
                for other in HOSTS
            )
            assert world.ledger.lease(id_).degraded
        moves += len(moved)
        stays += len(in_the_way)
        maintenances.delete(made['id'])
        assert not any(world.lease(each).degraded for each in leases)
        for each in leases:
            world.leases.delete(each.id, None)
    world.check()
    # The worlds are not all empty or all full.
    assert moves > 20 and stays > 20


def where(world, names, lease):
    [(_, host, _)] = world.held(lease)
    return names[host]


def overlap(one, other):
    return one[0] < other[1] and other[0] < one[1]
