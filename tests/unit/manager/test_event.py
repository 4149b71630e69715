# SPDX-License-Identifier: Apache-2.0
"""The event runner: what is done when, by whom, and how often."""

import threading
import time

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.service.manager import manager as manager_

# Real seconds that anything may take before a test gives up.
PATIENCE = 20


def statuses(lease):
    return {e.event_type: e.status for e in lease.events}


def wait_for(probe):
    deadline = time.monotonic() + PATIENCE
    while not probe():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class TestLife:
    def test_from_start_to_end(self, world, slots):
        world.add_host('a')
        lease = world.create(slots(), before_end=world.now + 150)
        seen = []
        for _ in range(5):
            world.run()
            now = world.lease(lease)
            seen.append(
                (now.status, now.reservations[0].status, statuses(now))
            )
            world.clock.now += 50
        undone, done = 'UNDONE', 'DONE'

        def events(*values):
            names = ('start_lease', 'before_end_lease', 'end_lease')
            return dict(zip(names, values, strict=True))

        assert seen == [
            ('PENDING', 'pending', events(undone, undone, undone)),
            ('PENDING', 'pending', events(undone, undone, undone)),
            ('ACTIVE', 'active', events(done, undone, undone)),
            ('ACTIVE', 'active', events(done, done, undone)),
            ('TERMINATED', 'deleted', events(done, done, done)),
        ]
        assert world.held(lease) == []
        world.check()

    def test_is_starting_and_terminating_meanwhile(self, world, slots):
        world.add_host('a')
        lease = world.create(slots(), start='now')
        world.nova.failures = 1
        world.run()
        assert world.lease(lease).status == 'STARTING'
        world.run(10)
        assert world.lease(lease).status == 'ACTIVE'
        id_ = lease.reservations[0].id
        world.add_server('a', 'project', reservation_id=id_)
        world.run(200)
        assert world.lease(lease).status == 'TERMINATING'
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'

    def test_a_start_that_is_too_late_touches_nothing(self, world):
        """A manager that slept through a window must not clear its hosts."""
        world.add_host('a', register=False)
        innocent = world.add_server('a', preemptible=True)
        mine = world.add_server('a', 'project', preemptible=True)
        world.hosts.create('a', {})
        lease = world.create()
        world.run(1000)
        assert world.lease(lease).status == 'TERMINATED'
        assert set(world.nova.stored) == {innocent.uuid, mine.uuid}


class TestOrder:
    def test_lp_1785841_end_before_start_at_one_instant(self, world):
        """B must not start on a host before A, which ends then, has left."""
        world.add_host('a')
        first = world.create(start='now', end=100)
        second = world.create(start=100, end=200)
        world.run()
        mine = world.add_server('a', 'project')
        world.nova.slowness = 2
        world.run(100)
        assert world.lease(first).status == 'TERMINATING'
        assert world.lease(second).status == 'PENDING'
        world.run(1)
        assert world.lease(second).status == 'PENDING'
        assert world.nova.asked[mine.uuid] == 2
        for _ in range(2):
            world.run(1)
        assert world.lease(first).status == 'TERMINATED'
        assert world.lease(second).status == 'ACTIVE'

    def test_a_start_asked_first_waits_for_the_end(self, world):
        world.add_host('a')
        first = world.create(start='now', end=100)
        second = world.create(start=100, end=200)
        world.run()
        world.clock.now += 100
        start = second.events[0]
        assert not world.runner.run(start.id, second.id)
        assert world.lease(second).status == 'PENDING'
        assert statuses(world.lease(second))['start_lease'] == 'UNDONE'
        world.run()
        assert world.lease(first).status == 'TERMINATED'
        assert world.lease(second).status == 'ACTIVE'

    def test_a_start_elsewhere_does_not_wait(self, world):
        world.add_host('a')
        first = world.create(start='now', end=100)
        world.add_host('b')
        second = world.create(start=50, end=200)
        world.run(50)
        world.nova.slowness = 1000
        world.add_server('a', 'project')
        world.run(50)
        assert world.lease(first).status == 'TERMINATING'
        assert world.lease(second).status == 'ACTIVE'

    def test_an_end_that_is_given_up_lets_the_next_start(self, world, conf):
        world.add_host('a')
        first = world.create(start='now', end=100)
        second = world.create(start=100, end=2000)
        world.run()
        world.add_server('a', 'project')
        world.nova.slowness = 10_000
        timeout = conf.manager.server_delete_timeout
        world.run(100)
        world.run(timeout)
        assert world.lease(first).status == 'TERMINATING'
        world.run(1)
        assert world.lease(first).status == 'ERROR'
        assert world.lease(second).status == 'ACTIVE'
        assert world.lease(second).degraded

    def test_the_events_of_a_lease_come_one_after_another(self, world):
        world.add_host('a')
        lease = world.create(start=10, end=20)
        world.clock.now += 100
        end = next(e for e in lease.events if e.event_type == 'end_lease')
        assert not world.runner.run(end.id, lease.id)
        assert statuses(world.lease(lease))['end_lease'] == 'UNDONE'

    def test_not_before_its_time(self, world):
        """Moved by another manager between the look and the claim."""
        world.add_host('a')
        lease = world.create(start=10, end=20)
        assert not world.runner.run(lease.events[0].id, lease.id)
        assert world.lease(lease) == lease


class TestFailure:
    def test_is_tried_again(self, world, conf, slots):
        conf.set_override('event_max_retries', 2, 'manager')
        world.add_host('a')
        lease = world.create(slots(), start='now')
        world.nova.failures = 2
        world.run()
        world.run(9)
        assert world.nova.failures == 1
        world.run(1)
        assert world.lease(lease).status == 'STARTING'
        world.run(10)
        assert world.lease(lease).status == 'ACTIVE'

    def test_start_is_given_up_and_still_undone_at_the_end(
        self, world, conf, slots
    ):
        conf.set_override('event_max_retries', 0, 'manager')
        world.add_host('a')
        lease = world.create(slots(), start='now')
        # The flavor is there, the access to it is refused.
        world.nova.add_flavor_access = None
        world.run()
        failed = world.lease(lease)
        assert failed.status == 'ERROR'
        assert failed.reservations[0].status == 'error'
        assert statuses(failed)['start_lease'] == 'ERROR'
        assert world.nova.flavors
        with pytest.raises(exception.InvalidStatus):
            world.leases.update(lease.id, None, {'end': world.now + 500})
        world.run(200)
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.nova.flavors
        assert not world.placement.children
        assert not world.placement.classes

    def test_growing_that_fails_leaves_the_lease_active(
        self, world, conf, slots
    ):
        conf.set_override('event_max_retries', 0, 'manager')
        world.add_host('a')
        lease = world.create(slots(1), start='now')
        world.run()
        change = {'id': lease.reservations[0].id, 'amount': 2}
        world.leases.update(lease.id, None, {'reservations': [change]})
        world.nova.failures = 1
        world.run()
        now = world.lease(lease)
        assert (now.status, now.degraded) == ('ACTIVE', True)

    def test_lp_1791721_servers_that_vanish_during_the_end(
        self, world, slots, monkeypatch
    ):
        """A user's own delete once aborted the end of the lease."""
        world.add_host('a')
        lease = world.create(slots(), start='now')
        world.run()
        id_ = lease.reservations[0].id
        world.add_server('a', 'project', reservation_id=id_)
        listed = world.nova.servers

        def servers(**filters):
            found = listed(**filters)
            world.nova.stored.clear()
            return found

        monkeypatch.setattr(world.nova, 'servers', servers)
        world.run(200)
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.nova.flavors

    def test_done_twice_is_done_once(self, world, slots):
        world.add_host('a')
        lease = world.create(slots(2), start='now')
        world.run()
        flavors = dict(world.nova.flavors)
        children = dict(world.placement.children)
        driver_start(world, lease)
        assert world.nova.flavors == flavors
        assert world.placement.children == children
        world.run(200)
        driver_end(world, lease)
        assert not world.nova.flavors

    def test_partial_end_goes_on_where_it_failed(self, world, conf, slots):
        world.add_host('a')
        lease = world.create(slots(2), slots(1), start='now')
        world.run()
        world.placement.failures = 1
        world.run(200)
        assert world.lease(lease).status == 'TERMINATING'
        world.run(10)
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.placement.children
        assert not world.placement.classes


def parts(world, lease):
    return world.runner._parts(world.lease(lease))


def driver_start(world, lease):
    for driver, *args in parts(world, lease):
        driver.start(world.lease(lease), *args, world.now)


def driver_end(world, lease):
    for driver, *args in parts(world, lease):
        assert driver.end(world.lease(lease), *args)


class TestClaims:
    def claim(self, world, event, owner='another'):
        return world.ledger.commit(
            lambda tx: tx.claim_event(
                event.id, owner, world.now, world.now + 50
            ),
            placing=False,
        )

    def test_anothers_event_is_left_alone(self, world):
        world.add_host('a')
        lease = world.create(start='now')
        assert self.claim(world, lease.events[0])
        world.run(49)
        assert world.lease(lease).status == 'PENDING'

    def test_taken_over_once_the_claim_is_out(self, world):
        """What a manager left when it died is done by the next one."""
        world.add_host('a')
        lease = world.create(start='now')
        assert self.claim(world, lease.events[0])
        world.run(50)
        assert world.lease(lease).status == 'ACTIVE'

    def test_a_late_manager_writes_nothing(self, world, slots):
        """It was stopped for longer than its claim, and goes on."""
        world.add_host('a')
        lease = world.create(slots(), start='now')
        [start] = [e for e in lease.events if e.event_type == 'start_lease']
        created = world.nova.create_flavor
        tokens = []

        def create_flavor(*args):
            created(*args)
            world.clock.now += 1000
            tokens.append(self.claim(world, start))

        world.nova.create_flavor = create_flavor
        assert not world.runner.run(start.id, lease.id)
        assert tokens[0] is not None
        assert world.lease(lease).status == 'STARTING'
        assert statuses(world.lease(lease))['start_lease'] == 'IN_PROGRESS'
        assert world.ledger.commit(
            lambda tx: tx.finish_event(
                start.id, tokens[0], states.EVENT_UNDONE
            ),
            placing=False,
        )

    def test_two_managers_do_it_once(self, world, conf, slots):
        """Both look at once; each lease is started by one of them."""
        world.add_host('a')
        leases = [world.create(slots(1, 1), start='now') for _ in range(6)]
        begun = []
        created = world.nova.create_flavor

        def create_flavor(flavor_id, *args):
            begun.append(flavor_id)
            created(flavor_id, *args)

        world.nova.create_flavor = create_flavor
        other = manager_.Manager(
            conf, world.nova, world.placement, world.clock
        )
        runners = (world.runner, other.runner)
        for runner in runners:
            runner.step()
        for runner in runners:
            runner.stop()
        world.run()
        assert {world.lease(lease).status for lease in leases} == {'ACTIVE'}
        assert sorted(begun) == sorted(
            lease.reservations[0].id for lease in leases
        )
        other.ledger.close()


class TestThreads:
    @pytest.fixture
    def running(self, conf, world):
        """The real clock, and the runner's own threads."""
        world.runner._clock = world.leases._clock = time.time
        world.clock.now = int(time.time())
        world.runner.start()
        yield world
        world.runner.stop()

    def status(self, world, lease):
        return world.lease(lease).status

    def test_within_a_second_of_its_time(self, running):
        running.add_host('a')
        lease = running.create(start=2, end=4)
        for status, at in (('ACTIVE', lease.start), ('TERMINATED', lease.end)):
            wait_for(lambda s=status: self.status(running, lease) == s)
            assert 0 <= time.time() - at < 1

    def test_now_is_at_once(self, running, conf):
        conf.set_override('event_poll_interval', 1000.0, 'manager')
        running.runner.poke()
        running.add_host('a')
        begun = time.monotonic()
        lease = running.create(start='now')
        wait_for(lambda: self.status(running, lease) == 'ACTIVE')
        assert time.monotonic() - begun < 1

    def test_a_slow_event_delays_no_other(self, running, slots):
        running.add_host('a')
        hold, held = threading.Event(), threading.Event()
        created = running.nova.create_flavor
        slow = []

        def create_flavor(flavor_id, *args):
            if not slow:
                slow.append(flavor_id)
                held.set()
                assert hold.wait(PATIENCE)
            created(flavor_id, *args)

        running.nova.create_flavor = create_flavor
        first = running.create(slots(1, 1), start='now')
        assert held.wait(PATIENCE)
        others = [
            running.create(slots(1, 1), start='now') for _ in range(5)
        ]
        for lease in others:
            wait_for(lambda x=lease: self.status(running, x) == 'ACTIVE')
        assert self.status(running, first) == 'STARTING'
        hold.set()
        wait_for(lambda: self.status(running, first) == 'ACTIVE')

    def test_many_at_once(self, running, slots):
        """Sixteen events are under way at the same time."""
        running.add_host('a', vcpus=16)
        barrier = threading.Barrier(16)
        created = running.nova.create_flavor

        def create_flavor(*args):
            barrier.wait(PATIENCE)
            created(*args)

        running.nova.create_flavor = create_flavor
        leases = [
            running.create(slots(1, 1), start='now') for _ in range(16)
        ]
        for lease in leases:
            wait_for(lambda x=lease: self.status(running, x) == 'ACTIVE')

    def test_stops_after_the_tries_under_way(self, conf, running, slots):
        """What waits for a thread stays for the next manager."""
        conf.set_override('event_max_workers', 1, 'manager')
        one = manager_.Manager(conf, running.nova, running.placement)
        running.runner.stop()
        running.add_host('a')
        leases = [running.create(slots(1, 1), start='now') for _ in range(2)]
        created = running.nova.create_flavor
        hold, held = threading.Event(), threading.Event()

        def create_flavor(*args):
            held.set()
            assert hold.wait(PATIENCE)
            created(*args)

        running.nova.create_flavor = create_flavor
        one.runner.step()
        assert held.wait(PATIENCE)
        stopping = threading.Thread(target=one.runner.stop)
        stopping.start()
        wait_for(lambda: one.runner._stopping)
        hold.set()
        stopping.join(PATIENCE)
        assert sorted(self.status(running, x) for x in leases) == [
            'ACTIVE', 'PENDING',
        ]
        one.ledger.close()

    def test_survives_a_ledger_that_fails(self, running, monkeypatch):
        running.add_host('a')
        due = running.ledger.due_events
        failures = [exception.Unavailable('the database is away')] * 2

        def due_events(now):
            if failures:
                raise failures.pop()
            return due(now)

        monkeypatch.setattr(running.ledger, 'due_events', due_events)
        lease = running.create(start='now')
        wait_for(lambda: self.status(running, lease) == 'ACTIVE')
