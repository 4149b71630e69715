# SPDX-License-Identifier: Apache-2.0
"""The event runner: the order, the claims and the retries of events."""

from collections import Counter
import dataclasses
import threading
import time
import uuid

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.event import Claim
from blazar_sched.service import faults
from blazar_sched.service.events import runner as manager_runner
from blazar_sched.service.events import trust
from blazar_sched.service.events.attempts import Attempted
from blazar_sched.service.manager.manager import Manager
from tests.waiting import PATIENCE
from tests.waiting import until


class Killed(BaseException):
    """The end of the manager's process."""


def statuses(lease):
    return {e.event_type: e.status for e in lease.events}


@pytest.fixture
def before_flavor(world):
    """before_flavor(act): call `act` with each flavor before it is made."""
    make = world.nova.create_flavor

    def arm(act):
        def create_flavor(flavor):
            act(flavor)
            make(flavor)

        world.nova.create_flavor = create_flavor

    return arm


class TestLife:
    def test_lease_and_events_have_each_status_from_start_to_end(
        self, world, slots
    ):
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

    def test_two_late_leases_do_not_wait_for_each_other(self, world, slots):
        world.add_host('a')
        leases = [
            world.create(slots(), start=start, end=start + 100)
            for start in (100, 150)
        ]
        world.run(1000)
        assert [world.lease(each).status for each in leases] == [
            'TERMINATED', 'TERMINATED'
        ]

    def test_objects_of_an_unfinished_start_are_removed_after_the_window(
        self, world, slots
    ):
        world.add_host('a')
        lease = world.create(slots())
        world.nova.failures = 1
        world.run(100)
        assert world.placement.classes
        world.run(1000)
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.placement.classes
        assert not world.placement.children

    def test_lease_is_starting_and_terminating_meanwhile(self, world, slots):
        world.add_host('a')
        lease = world.create(slots(), start='now')
        world.nova.failures = 1
        world.run()
        assert world.lease(lease).status == 'STARTING'
        world.run(10)
        assert world.lease(lease).status == 'ACTIVE'
        world.add_own_server(lease)
        world.run(200)
        assert world.lease(lease).status == 'TERMINATING'
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'

    def test_event_sets_the_time_of_the_change(self, world):
        world.add_host('a')
        lease = world.create()
        assert world.lease(lease).updated_at is None
        for event_type, seconds in (('start_lease', 100), ('end_lease', 100)):
            world.run(seconds)
            now = world.lease(lease)
            [reservation] = now.reservations
            [event] = [e for e in now.events if e.event_type == event_type]
            assert (
                now.updated_at == reservation.updated_at == event.updated_at
                == world.now
            )

    def test_start_after_the_window_touches_no_server(self, world):
        """A manager suspended through a window must not clear its hosts."""
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
        """A lease must not start on a host before the previous one left."""
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

    def test_start_on_another_host_does_not_wait(self, world):
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

    def test_lease_starts_after_the_previous_end_is_given_up(
        self, world, conf
    ):
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
        world.run(5)
        assert world.lease(first).status == 'ERROR'
        assert world.lease(second).status == 'ACTIVE'
        assert world.lease(second).degraded

    def test_a_start_that_waited_for_others_has_its_whole_time(
        self, world, conf
    ):
        """Its server may take as long as any other server."""
        world.add_host('a')
        server = world.add_server(
            'a', start=world.now + 100, end=world.now + 5000
        )
        for _ in range(2):
            world.manager.instances.sync()
        [later] = world.ledger.leases()
        first = world.start_lease(end=100)
        world.add_server('a', 'project')
        world.nova.slowness = 10_000
        world.run(100)
        world.run(conf.manager.server_delete_timeout)
        world.run(5)
        assert world.lease(first).status == 'ERROR'
        assert world.lease(later).status == 'STARTING'
        world.nova.slowness, world.nova.lands_on = 0, 'a'
        for _ in range(2):
            world.run(5)
        assert world.lease(later).status == 'ACTIVE'
        assert world.nova.stored[server.uuid].status == 'ACTIVE'

    def test_the_events_of_a_lease_come_one_after_another(self, world):
        world.add_host('a')
        lease = world.create(start=10, end=20)
        world.clock.now += 100
        end = next(e for e in lease.events if e.event_type == 'end_lease')
        assert not world.runner.run(end)
        assert statuses(world.lease(lease))['end_lease'] == 'UNDONE'

    def test_deferred_event_is_not_executed_early(self, world):
        """Another manager moves the event between the poll and the claim."""
        world.add_host('a')
        lease = world.create(start=10, end=20)
        assert not world.runner.run(lease.events[0])
        assert world.lease(lease) == lease


class TestFailure:
    def test_failed_start_is_tried_again(self, world, conf, slots):
        conf.set_override('event_max_retries', 2, 'manager')
        world.add_host('a')
        lease = world.create(slots(), start='now')
        world.nova.failures = 2
        world.run()
        assert world.nova.failures == 1
        world.run(1)
        assert world.lease(lease).status == 'STARTING'
        world.run(1)
        assert world.lease(lease).status == 'ACTIVE'

    @pytest.mark.parametrize('interval', [0.1, 10.0, 60.0])
    @pytest.mark.parametrize('retries', [0, 1, 30])
    def test_the_pauses_double_and_last_as_long_as_ever(
        self, interval, retries
    ):
        tried = Attempted('lease', 0.0)
        now, pauses = 0.0, []
        while tried.pause_longer(now, interval, interval * retries):
            pauses.append(tried.not_before - now)
            now = tried.not_before
        assert -1e-9 < now - interval * retries < interval + 1e-9
        assert all(pause < interval + 1e-9 for pause in pauses)
        if retries == 30:
            assert pauses[-1] == pytest.approx(interval)
        if retries and interval >= 10:
            assert pauses[:6] == [0.25, 0.5, 1, 2, 4, 8]

    def test_one_outage_costs_each_lease_a_second(self, world, slots):
        world.add_host('a', vcpus=16)
        leases = [world.create(slots(1), start='now') for _ in range(6)]
        world.placement.failures = 6
        world.run()
        assert world.placement.failures == 0
        world.run(1)
        assert {world.lease(x).status for x in leases} == {'ACTIVE'}

    def test_while_nova_is_away_is_no_time_for_servers_to_go(
        self, world, conf
    ):
        conf.set_override('server_delete_timeout', 15, 'manager')
        world.add_host('a')
        lease = world.start_lease(end=100)
        world.add_server('a', 'project')
        world.nova.slowness = 1
        world.nova.failures = 3
        world.run(100)
        for _ in range(3):
            world.run(10)
        # The deletion has only now been requested.
        assert world.lease(lease).status == 'TERMINATING'
        for _ in range(2):
            world.run(5)
        assert world.lease(lease).status == 'TERMINATED'

    def test_end_removes_what_a_failed_start_has_made(
        self, world, conf, slots
    ):
        conf.set_override('event_max_retries', 0, 'manager')
        world.add_host('a')
        lease = world.create(slots(), start='now')
        # The flavor is created, and the access to it is refused.
        world.nova.add_flavor_access = None
        world.run()
        failed = world.lease(lease)
        assert failed.status == 'ERROR'
        assert failed.reservations[0].status == 'error'
        assert statuses(failed)['start_lease'] == 'ERROR'
        assert world.nova.made_flavors
        with pytest.raises(exception.InvalidStatus):
            world.update_lease(lease, end=world.now + 500)
        world.run(200)
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.nova.made_flavors
        assert not world.placement.children
        assert not world.placement.classes

    def test_growing_that_fails_leaves_the_lease_active(
        self, world, conf, slots
    ):
        conf.set_override('event_max_retries', 0, 'manager')
        world.add_host('a')
        lease = world.start_lease(slots(1))
        world.change_reservation(lease, amount=2)
        world.nova.failures, world.nova.refuses = 1, True
        world.run()
        now = world.lease(lease)
        assert (now.status, now.degraded) == ('ACTIVE', True)

    def test_lp_1791721_servers_that_vanish_during_the_end(
        self, world, slots, monkeypatch
    ):
        """A user's own delete once aborted the end of the lease."""
        world.add_host('a')
        lease = world.start_lease(slots())
        world.add_own_server(lease)
        listed = world.nova.servers

        def servers(**filters):
            found = listed(**filters)
            world.nova.stored.clear()
            return found

        monkeypatch.setattr(world.nova, 'servers', servers)
        world.run(200)
        world.run(1)
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.nova.made_flavors

    def test_start_done_twice_makes_each_object_once(self, world, slots):
        world.add_host('a')
        lease = world.start_lease(slots(2))
        flavors = dict(world.nova.made_flavors)
        children = dict(world.placement.children)
        driver_start(world, lease)
        assert world.nova.made_flavors == flavors
        assert world.placement.children == children
        world.run(200)
        driver_end(world, lease)
        assert not world.nova.made_flavors

    def test_partial_end_goes_on_where_it_failed(self, world, conf, slots):
        world.add_host('a')
        lease = world.start_lease(slots(2), slots(1))
        world.placement.failures = 1
        world.run(200)
        assert world.lease(lease).status == 'TERMINATING'
        world.run(10)
        assert world.lease(lease).status == 'TERMINATED'
        assert not world.placement.children
        assert not world.placement.classes


class TestGivenUp:
    """The given-up start of an active lease is retried."""

    PACE = int(manager_runner.START_RETRY_INTERVAL)

    @pytest.fixture(autouse=True)
    def once(self, conf):
        conf.set_override('event_max_retries', 0, 'manager')

    @pytest.fixture
    def lease(self, world, slots):
        """A lease that has grown while Nova refused requests."""
        world.add_host('a')
        lease = world.start_lease(slots(1), end=100_000)
        world.change_reservation(lease, amount=2)
        world.nova.failures, world.nova.refuses = 10**6, True
        world.run()
        assert statuses(world.lease(lease))['start_lease'] == 'ERROR'
        assert (world.lease(lease).status, world.lease(lease).degraded) == (
            'ACTIVE', True
        )
        return lease

    def assert_open(self, world, lease):
        now = world.lease(lease)
        assert statuses(now)['start_lease'] == 'DONE'
        assert (now.status, now.degraded) == ('ACTIVE', False)
        assert {r.status for r in now.reservations} == {'active'}
        assert set(world.placement.children.values()) == {2}

    def test_failed_start_is_repeated_until_it_is_done(self, world, lease):
        for _ in range(3):
            world.run(self.PACE)
        assert statuses(world.lease(lease))['start_lease'] == 'ERROR'
        world.nova.failures = 0
        world.run(self.PACE)
        self.assert_open(world, lease)
        world.check()

    def test_at_that_pace_and_told_of_once(self, world, lease, told):
        before, failures = world.lease(lease), world.nova.failures
        for _ in range(4 * self.PACE // 10):
            world.run(10)
        assert failures - world.nova.failures == 4
        assert told == []
        assert world.lease(lease).updated_at == before.updated_at

    def test_by_the_next_manager(self, world, conf, lease):
        world.nova.failures = 0
        world.begin(conf)
        world.run(self.PACE - 1)
        assert statuses(world.lease(lease))['start_lease'] == 'ERROR'
        world.run(1)
        self.assert_open(world, lease)

    def test_added_host_is_opened_after_a_failed_start(
        self, world, lease, slots
    ):
        world.nova.failures = 0
        world.run(self.PACE)
        world.add_host('b')
        world.update_lease(lease, reservations=[slots(1, vcpus=8)])
        world.nova.failures = 1
        world.run()
        added = world.lease(lease).reservations[1]
        assert added.status == 'pending'
        world.run(self.PACE)
        assert world.lease(lease).reservations[1].status == 'active'
        assert not world.lease(lease).degraded

    def test_healing_is_told_of(self, world, lease, told):
        world.nova.failures = 0
        world.run(self.PACE)
        assert [event_type for event_type, _ in told] == [
            'lease.event.start_lease', 'lease.healed',
        ]

    def test_end_does_not_wait_for_a_failed_start(self, world, lease):
        world.clock.now = lease.end
        world.nova.failures = 0
        world.run()
        assert world.lease(lease).status == 'TERMINATED'
        world.run(10 * self.PACE)
        assert statuses(world.lease(lease))['start_lease'] == 'ERROR'

    def test_failed_start_is_not_repeated_during_another_event(
        self, world, lease
    ):
        """Another manager has begun the end since this one polled."""
        [(start, _)] = [
            (e, None) for e in world.lease(lease).events
            if e.event_type == 'start_lease'
        ]
        end = next(e for e in lease.events if e.event_type == 'end_lease')
        theirs = Claim('another', str(uuid.uuid4()), world.now + 30)
        assert world.ledger.write(
            lambda tx: tx.claim_event(end.id, theirs, None)
        )
        world.nova.failures = 0
        assert not world.runner.run(start)
        assert statuses(world.lease(lease)) == {
            'start_lease': 'ERROR', 'end_lease': 'IN_PROGRESS'
        }

    @pytest.mark.parametrize('status', ['TERMINATED', 'ERROR', 'DELETING'])
    def test_failed_start_of_a_lease_that_is_over_is_not_repeated(
        self, world, lease, status
    ):
        world.nova.failures = 0
        start = world.lease(lease).events[0]
        world.ledger.commit(lambda tx: tx.put_lease(
            dataclasses.replace(world.lease(lease), status=status)
        ))
        world.clock.now += self.PACE
        assert [e for e, _ in world.runner.due()] == []
        assert not world.runner.run(start)
        assert world.lease(lease).status == status

    @pytest.mark.parametrize('point', [
        'start_lease:claimed', 'start_lease:stepped', 'start_lease:worked',
        'start_lease:finished', 'commit:before', 'commit:after',
    ])
    def test_failed_start_is_done_after_a_kill(
        self, world, conf, lease, killed, point
    ):
        world.nova.failures = 0
        with killed(point):
            world.run(self.PACE)
        world.begin(conf)
        for seconds in (0, 31, self.PACE):
            world.run(seconds)
        self.assert_open(world, lease)
        assert world.ledger.check() == []

    def test_only_a_shortage_that_is_over_is_forgotten(self, world, lease):
        """A server in the way still makes the lease degraded."""
        id_ = lease.reservations[0].id
        world.ledger.commit(lambda tx: tx.set_reservations_made(
            {id_: {'before_end_failed': 'no address'}}
        ))
        world.nova.failures = 0
        world.run(self.PACE)
        now = world.lease(lease)
        assert statuses(now)['start_lease'] == 'DONE'
        assert now.degraded


class TestBeforeEnd:
    @pytest.fixture
    def told(self, world, monkeypatch):
        """The reservations whose driver was called, in order."""
        told = []

        def act(part, when):
            assert when == 'before_end'
            assert {a.host for a in part.allocations} <= set(part.hosts)
            if world.nova.failures:
                world.nova.failures -= 1
                raise exception.Unavailable('compute answered 500')
            told.append(part.reservation.id)

        for resource_type in ('physical:host', 'virtual:instance'):
            driver = world.runner._drivers[resource_type]
            monkeypatch.setattr(driver, 'act', act)
        return told

    def test_each_reservation_once(self, world, told, whole, slots):
        world.add_hosts('a', 'b')
        lease = world.create(whole(), slots(), before_end=world.now + 150)
        world.run(149)
        world.run()
        assert told == []
        world.run(1)
        assert told == [r.id for r in lease.reservations]
        world.run(20)
        world.run(100)
        assert len(told) == 2
        assert world.lease(lease).status == 'TERMINATED'

    def test_late_action_is_done_before_the_end(self, world, told):
        """The manager was away: the servers still exist."""
        world.add_host('a')
        lease = world.start_lease(before_end=world.now + 150)
        world.run(1000)
        assert told == [lease.reservations[0].id]
        assert world.lease(lease).status == 'TERMINATED'

    def test_lease_that_never_started_has_no_action(self, world, told):
        world.add_host('a')
        lease = world.create(before_end=world.now + 150)
        world.run(1000)
        assert world.lease(lease).status == 'TERMINATED'
        assert told == []


class TestTrust:
    """A lease's trust is deleted after all steps that may need it."""

    @pytest.fixture
    def gone(self, world, monkeypatch):
        gone = []

        def delete_trust(trust_id):
            gone.append(trust_id)
            if world.placement.failures:
                raise exception.Unavailable('identity cannot be reached')

        keystone = world.manager.services.keystone
        monkeypatch.setattr(keystone, 'delete_trust', delete_trust)
        world.add_host('a')
        return gone

    def test_trust_is_deleted_when_the_lease_is_over(self, world, gone, slots):
        lease = world.create(slots(), start='now', trust_id='trust')
        assert lease.trust_id == 'trust'
        world.run()
        world.nova.slowness = 1
        world.add_own_server(lease)
        world.run(200)
        assert gone == []
        for _ in range(3):
            world.run(1)
        assert gone == ['trust']
        assert world.lease(lease).status == 'TERMINATED'

    @pytest.mark.parametrize('start', ['now', 100])
    def test_trust_is_deleted_with_the_lease(self, world, gone, start):
        lease = world.create(start=start, trust_id='trust')
        world.run()
        world.leases.delete(lease.id, None)
        assert gone == ['trust']

    @pytest.mark.parametrize('start', ['now', 100])
    def test_trust_that_cannot_be_deleted_is_kept_for_another_try(
        self, world, gone, start
    ):
        lease = world.create(start=start, trust_id='trust')
        world.run()
        world.placement.failures = 1
        world.leases.delete(lease.id, None)
        assert world.ledger.leases() == []
        gone.clear()
        with pytest.raises(exception.Unavailable):
            world.manager.trusts.step()
        world.placement.failures = 0
        world.manager.trusts.step()
        world.manager.trusts.step()
        assert gone == ['trust', 'trust']

    def test_refused_deletion_of_a_trust_delays_no_other(self, world, gone):
        world.placement.failures = 1
        for name in ('one', 'two'):
            lease = world.create(trust_id=name)
            world.leases.delete(lease.id, None)
        gone.clear()
        with pytest.raises(exception.Unavailable):
            world.manager.trusts.step()
        assert sorted(gone) == ['one', 'two']

    def test_refused_deletions_leave_the_others_their_turn(
        self, world, gone, monkeypatch
    ):
        """However many trusts Keystone goes on to refuse."""
        monkeypatch.setattr(trust, 'MAX_TRUSTS', 2)
        world.placement.failures = 1
        for name in ('a', 'b', 'c'):
            lease = world.create(trust_id=name)
            world.leases.delete(lease.id, None)
        for _ in range(2):
            gone.clear()
            for _ in range(2):
                with pytest.raises(exception.Unavailable):
                    world.manager.trusts.step()
            assert gone == ['a', 'b', 'c']

    def test_a_manager_killed_after_the_end_leaves_none(self, world, gone):
        """The end and the discarded trust are written in one commit."""
        lease = world.start_lease(end=100, trust_id='trust')

        def die(point):
            if point == 'end_lease:finished':
                raise Killed

        faults.arm(die)
        with pytest.raises(Killed):
            world.run(200)
        faults.arm(None)
        assert (world.lease(lease).status, gone) == ('TERMINATED', [])
        world.manager.trusts.step()
        assert gone == ['trust']

    def test_stays_with_the_lease_that_goes_on(self, world, gone, slots):
        lease = world.start_lease(slots(), slots(), trust_id='trust')
        world.change_reservation(lease, remove=True)
        world.run()
        assert len(world.ledger.leases()) == 1
        assert 'trust' not in gone
        assert world.lease(lease).trust_id == 'trust'


def parts(world, lease):
    return world.runner._parts(world.lease(lease))


def driver_start(world, lease):
    for driver, part in parts(world, lease):
        driver.start(part, world.now)


def driver_end(world, lease):
    for driver, part in parts(world, lease):
        assert driver.end(part)


class TestClaims:
    # Seconds until a claim expires without renewal.
    LASTS = 30

    def claim(self, world, event, seen=None):
        """Another manager's claim, just written."""
        new = Claim('another', str(uuid.uuid4()), world.now + 30)
        world.ledger.write(lambda tx: tx.claim_event(event.id, new, seen))
        return new

    def renew(self, world, claim):
        new = dataclasses.replace(claim, until=claim.until + 10)
        world.ledger.write(
            lambda tx: tx.renew_claims([claim.token], new.until)
        )
        return new

    def start(self, lease):
        [start] = [e for e in lease.events if e.event_type == 'start_lease']
        return start

    def test_anothers_event_is_left_alone_while_it_is_renewed(self, world):
        world.add_host('a')
        lease = world.create(start='now')
        claim = self.claim(world, self.start(lease))
        for _ in range(10):
            world.run(20)
            assert world.lease(lease).status == 'PENDING'
            claim = self.renew(world, claim)
        assert statuses(world.lease(lease))['start_lease'] == 'IN_PROGRESS'

    @pytest.mark.row('F62')
    def test_taken_over_once_it_has_been_silent_for_long(self, world):
        """Another manager continues the event of a manager that died."""
        world.add_host('a')
        lease = world.create(start='now')
        self.claim(world, self.start(lease))
        world.run()
        world.run(self.LASTS - 1)
        assert world.lease(lease).status == 'PENDING'
        world.run(1)
        assert world.lease(lease).status == 'ACTIVE'

    @pytest.mark.parametrize('step', [-36_000, 36_000])
    def test_a_step_of_the_clock_kills_no_claim_and_saves_none(
        self, world, step
    ):
        world.add_host('a')
        lease = world.create(start='now', end=100_000)
        claim = self.claim(world, self.start(lease))
        world.run()
        world.clock.step(step)
        world.run(20)
        self.renew(world, claim)
        world.run(20)
        assert world.lease(lease).status == 'PENDING'
        world.run(self.LASTS)
        world.clock.step(max(0, -step))
        world.run()
        assert world.lease(lease).status == 'ACTIVE'

    @pytest.mark.parametrize('step', [-36_000, 36_000])
    def test_a_step_of_the_clock_delays_no_retry(self, world, slots, step):
        world.add_host('a')
        world.clock.step(max(0, -step))
        lease = world.create(slots(), start='now', end=100_000)
        start = self.start(lease)
        world.nova.failures = 1
        assert not world.runner.run(start)
        # The event counts as due all along: only the retry matters.
        world.clock.step(step)
        world.ledger.commit(lambda tx: tx.put_lease(dataclasses.replace(
            world.lease(lease), events=(dataclasses.replace(start, time=0),)
        )))
        world.run()
        assert world.lease(lease).status == 'STARTING'
        world.run(1)
        assert world.lease(lease).status == 'ACTIVE'

    def test_a_claim_in_use_is_renewed(self, world, slots, before_flavor):
        """However long Nova takes, no other manager takes the event over."""
        world.add_host('a')
        lease = world.create(slots(), start='now')
        seen = []

        def take_long(flavor):
            for _ in range(10):
                world.clock.now += 10
                world.runner.renew()
                [(_, claim)] = world.ledger.due_events(world.now)[:1]
                seen.append(claim.until)

        before_flavor(take_long)
        assert world.runner.run(self.start(lease))
        assert world.lease(lease).status == 'ACTIVE'
        assert len(set(seen)) == 10

    def test_a_renewal_is_seen_while_the_clock_is_set_back(self, world, slots):
        world.add_host('a')
        lease = world.create(slots(), start='now')
        seen = []

        def create_flavor(*args):
            for _ in range(3):
                world.clock.now += 10
                world.clock.step(-10)
                world.runner.renew()
                seen.append(world.ledger.due_events(world.now)[0][1].until)

        world.nova.create_flavor = create_flavor
        world.runner.run(self.start(lease))
        assert len(set(seen)) == 3

    def test_a_late_manager_does_no_other_step(self, world, slots):
        """The manager was suspended for longer than its claim, and resumes."""
        world.add_host('a')
        lease = world.create(slots(), slots(), start='now')
        start = self.start(lease)
        created = world.nova.create_flavor
        taken, steps = [], []

        def create_flavor(flavor):
            steps.append(flavor.id)
            created(flavor)
            world.clock.now += 1000
            [(_, mine)] = [
                pair for pair in world.ledger.due_events(world.now) if pair[1]
            ]
            taken.append(self.claim(world, start, seen=mine))

        world.nova.create_flavor = create_flavor
        assert not world.runner.run(start)
        assert steps == [lease.reservations[0].id]
        assert world.lease(lease).status == 'STARTING'
        # The manager has not released the other manager's claim either.
        [(_, claim)] = world.ledger.due_events(lease.start)
        assert claim == taken[0]

    def test_a_late_manager_knows_it_by_its_own_clock(self, world, slots):
        """This holds also if no other manager has taken the event over."""
        world.add_host('a')
        lease = world.create(slots(), slots(), start='now')
        created = world.nova.create_flavor
        steps = []

        def create_flavor(flavor):
            steps.append(flavor.id)
            created(flavor)
            world.clock.now += 25

        world.nova.create_flavor = create_flavor
        assert not world.runner.run(self.start(lease))
        assert len(steps) == 1
        # Any manager may claim the event again.
        assert statuses(world.lease(lease))['start_lease'] == 'UNDONE'

    def test_a_late_managers_outcome_is_refused(self, world, slots):
        """All steps are done, but the claim is no longer the manager's own."""
        world.add_host('a')
        lease = world.create(slots(), start='now')
        start = self.start(lease)
        added = world.nova.add_flavor_access

        def add_flavor_access(*args):
            added(*args)
            [(_, mine)] = [
                pair for pair in world.ledger.due_events(world.now) if pair[1]
            ]
            self.claim(world, start, seen=mine)

        world.nova.add_flavor_access = add_flavor_access
        assert not world.runner.run(start)
        assert world.lease(lease).status == 'STARTING'
        assert statuses(world.lease(lease))['start_lease'] == 'IN_PROGRESS'

    @pytest.mark.row('F63')
    def test_two_managers_do_it_once(self, world, conf, slots, before_flavor):
        """Both managers poll at once; each lease is started by one of them."""
        world.add_host('a')
        leases = [world.create(slots(1, 1), start='now') for _ in range(6)]
        begun = []
        before_flavor(lambda flavor: begun.append(flavor.id))
        other = Manager(
            conf, world.nova, world.placement, world.clock, world.monotonic
        )
        runners = (world.runner, other.runner)
        for runner in runners:
            runner.step()
        until(
            lambda: {world.lease(lease).status for lease in leases}
            == {'ACTIVE'}
        )
        assert sorted(begun) == sorted(
            lease.reservations[0].id for lease in leases
        )
        for runner in runners:
            runner.stop()
        other.ledger.close()


class TestThreads:
    @pytest.fixture
    def few_workers(self, conf):
        conf.set_override('event_max_workers', 4, 'manager')

    @pytest.fixture
    def running(self, conf, world):
        """A manager with the real clock, and the runner's own threads."""
        world.manager.clock._own = time.time
        world.runner._monotonic = time.monotonic
        world.runner._claims._monotonic = time.monotonic
        world.clock.now = int(time.time())
        world.runner.start()
        yield world
        world.runner.stop()

    def status(self, world, lease):
        return world.lease(lease).status

    @pytest.mark.row('C7')
    def test_within_a_second_of_its_time(self, running):
        running.add_host('a')
        lease = running.create(start=1, end=2)
        for status, at in (('ACTIVE', lease.start), ('TERMINATED', lease.end)):
            until(lambda s=status: self.status(running, lease) == s)
            assert 0 <= time.time() - at < 1

    def test_lease_of_now_starts_at_once(self, running, monkeypatch):
        monkeypatch.setattr(manager_runner, 'INTERVAL', 1000.0)
        running.runner.wake()
        running.add_host('a')
        begun = time.monotonic()
        lease = running.create(start='now')
        until(lambda: self.status(running, lease) == 'ACTIVE')
        assert time.monotonic() - begun < 1

    @pytest.mark.row('F61')
    def test_a_slow_event_delays_no_other(
        self, few_workers, running, slots, before_flavor
    ):
        running.add_host('a', vcpus=21)
        hold, held = threading.Event(), threading.Event()

        def hold_the_first(flavor):
            if not held.is_set():
                held.set()
                assert hold.wait(PATIENCE)

        before_flavor(hold_the_first)
        first = running.create(slots(1, 1), start='now')
        assert held.wait(PATIENCE)
        others = [running.create(slots(1, 1), start='now') for _ in range(20)]
        for lease in others:
            until(lambda x=lease: self.status(running, x) == 'ACTIVE')
        assert self.status(running, first) == 'STARTING'
        hold.set()
        until(lambda: self.status(running, first) == 'ACTIVE')

    @pytest.mark.row('F61')
    def test_sixteen_events_run_at_the_same_time(
        self, running, slots, before_flavor
    ):
        running.add_host('a', vcpus=16)
        barrier = threading.Barrier(16)
        before_flavor(lambda flavor: barrier.wait(PATIENCE))
        leases = [running.create(slots(1, 1), start='now') for _ in range(16)]
        for lease in leases:
            until(lambda x=lease: self.status(running, x) == 'ACTIVE')

    def test_many_that_hang_hold_the_first_workers_once(
        self, few_workers, running, conf, slots, before_flavor
    ):
        """As many events as workers fail, then hang; other events proceed."""
        conf.set_override('event_retry_interval', 0.1, 'manager')
        workers = conf.manager.event_max_workers
        running.add_host('a', vcpus=workers + 1)
        hold, tried = threading.Event(), Counter()

        def fail_then_hang(flavor):
            tried[flavor.id] += 1
            if flavor.id in bad and tried[flavor.id] > 1:
                hold.wait(2 * PATIENCE)
            if flavor.id in bad and tried[flavor.id] == 1:
                raise exception.Unavailable('compute cannot be reached')

        before_flavor(fail_then_hang)
        hanging = [
            running.create(slots(1, 1), start=1000, end=2000)
            for _ in range(workers)
        ]
        bad = {lease.reservations[0].id for lease in hanging}
        for lease in hanging:
            running.leases.update(lease.id, None, {'start': 'now'})
        # All have failed, and hang now or wait for their retry.
        until(
            lambda: len(tried) == workers
            and len(running.runner._attempts.running) == workers
            and max(tried.values()) > 1
        )
        later = running.create(slots(1, 1), start='now')
        until(lambda: self.status(running, later) == 'ACTIVE')
        hold.set()
        for lease in hanging:
            until(lambda x=lease: self.status(running, x) == 'ACTIVE')

    @pytest.fixture
    def hanging(self, before_flavor):
        """hanging() -> held, hold: flavors are made once `hold` is set."""

        def hanging():
            held, hold = threading.Event(), threading.Event()

            def hang(flavor):
                held.set()
                assert hold.wait(PATIENCE)

            before_flavor(hang)
            return held, hold

        return hanging

    def test_stops_after_the_tries_under_way(
        self, conf, running, slots, hanging
    ):
        """Events that wait for a thread are left to the next manager."""
        conf.set_override('event_max_workers', 1, 'manager')
        one = Manager(conf, running.nova, running.placement)
        running.runner.stop()
        running.add_host('a')
        leases = [running.create(slots(1, 1), start='now') for _ in range(2)]
        held, hold = hanging()
        one.runner.step()
        assert held.wait(PATIENCE)
        stopping = threading.Thread(target=one.runner.stop)
        stopping.start()
        until(lambda: one.runner.stopping)
        hold.set()
        stopping.join(PATIENCE)
        assert sorted(self.status(running, x) for x in leases) == [
            'ACTIVE', 'PENDING',
        ]
        one.ledger.close()

    def test_a_stop_gives_back_what_hangs(
        self, conf, running, slots, hanging, monkeypatch
    ):
        """Another manager need not wait for the claim to expire."""
        monkeypatch.setattr(manager_runner, 'STOP_TIMEOUT', 0.1)
        running.runner.stop()
        one = Manager(conf, running.nova, running.placement)
        running.add_host('a')
        lease = running.create(slots(1, 1), slots(1, 1), start='now')
        held, hold = hanging()
        one.runner.step()
        assert held.wait(PATIENCE)
        one.runner.stop()
        assert statuses(running.lease(lease))['start_lease'] == 'UNDONE'
        hold.set()
        until(lambda: not one.runner._attempts.running)
        # The step that hung was its last step.
        assert [*running.nova.made_flavors] == [lease.reservations[0].id]
        assert self.status(running, lease) == 'STARTING'
        one.ledger.close()

    def test_a_stop_ends_a_delete_that_waits_for_servers(
        self, conf, running, slots, monkeypatch
    ):
        """The client got its response: the next manager continues the delete.
        """
        monkeypatch.setattr(time, 'sleep', lambda seconds: None)
        one = Manager(conf, running.nova, running.placement)
        running.runner.stop()
        running.add_host('a')
        lease = running.create(slots(1, 1), start='now')
        id_ = lease.reservations[0].id
        running.add_server('a', 'project', reservation_id=id_)
        assert one.runner.run(lease.events[0])
        running.nova.slowness = 10_000
        deleting = threading.Thread(
            target=one.leases.delete, args=(lease.id, None)
        )
        deleting.start()
        until(lambda: running.nova.asked)
        one.runner.stop()
        deleting.join(PATIENCE)
        assert not deleting.is_alive()
        assert self.status(running, lease) == 'DELETING'
        [(event, claim)] = running.ledger.due_events(int(time.time()))
        assert (event.event_type, claim) == ('end_lease', None)
        one.ledger.close()

    def test_survives_a_ledger_that_fails(self, running, monkeypatch):
        running.add_host('a')
        due = running.ledger.due_events
        failures = [exception.Unavailable('the database is away')] * 2

        def due_events(*args):
            if failures:
                raise failures.pop()
            return due(*args)

        monkeypatch.setattr(running.ledger, 'due_events', due_events)
        lease = running.create(start='now')
        until(lambda: self.status(running, lease) == 'ACTIVE')
