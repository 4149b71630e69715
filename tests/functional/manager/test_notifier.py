# SPDX-License-Identifier: Apache-2.0
"""Notifications of oslo.messaging, recorded by its test driver."""

import json
import threading

from oslo_context import context
import oslo_messaging
from oslo_messaging.notify import _impl_test
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.notification import Notification
from blazar_sched.service.bus import notifier as bus_notifier
from blazar_sched.service.bus import payload as payloads
from blazar_sched.service.bus import rpc
from blazar_sched.service.bus.notifier import HOST_FAILURE
from blazar_sched.service.bus.notifier import Notifier
from tests.functional.manager.conftest import hosts

EVENT = 'lease.event.'
ENDED = f'{EVENT}end_lease'


@pytest.fixture
def loud(conf, request):
    """A world whose manager notifies."""
    _impl_test.reset()
    conf.set_override('driver', ['test'], 'oslo_messaging_notifications')
    yield request.getfixturevalue('world')
    _impl_test.reset()


def sent(world):
    """Return the notifications since the last call: (type, payload)."""
    world.manager.notifier.step()
    messages = [message for _, message, *_ in _impl_test.NOTIFICATIONS]
    _impl_test.reset()
    assert all(m['publisher_id'] == 'blazar.lease' for m in messages)
    assert all(m['priority'] == 'INFO' for m in messages)
    return [(m['event_type'], m['payload']) for m in messages]


def types(world):
    return [event_type for event_type, _ in sent(world)]


class TestLease:
    def test_payload_is_blazars(self, loud):
        loud.add_host('a')
        lease = loud.create(before_end=loud.now + 150)
        [(event_type, payload)] = sent(loud)
        assert event_type == 'lease.create'
        [reservation] = payload.pop('reservations')
        events = payload.pop('events')
        assert payload == {
            'lease_id': lease.id, 'name': 'lease', 'user_id': 'user',
            'project_id': 'project', 'trust_id': None,
            'start_date': '2027-01-15T08:01:40.000000',
            'end_date': '2027-01-15T08:03:20.000000', 'status': 'PENDING',
            'degraded': False, 'created_at': '2027-01-15T08:00:00.000000',
            'updated_at': None,
        }
        asked = lease.reservations[0]
        assert reservation['id'] == reservation['resource_id'] == asked.id
        assert reservation['resource_type'] == 'physical:host'
        assert (reservation['min'], reservation['max']) == (1, 1)
        assert [(e['event_type'], e['time']) for e in events] == [
            ('start_lease', '2027-01-15T08:01:40.000000'),
            ('before_end_lease', '2027-01-15T08:02:30.000000'),
            ('end_lease', '2027-01-15T08:03:20.000000'),
        ]

    def test_lease_is_notified_from_start_to_end(self, loud, slots):
        loud.add_host('a')
        lease = loud.create(slots(), before_end=loud.now + 150)
        seen = []
        for _ in range(5):
            loud.run()
            seen += [(type_, p['status']) for type_, p in sent(loud)]
            loud.clock.now += 50
        loud.leases.delete(lease.id, None)
        seen += [(type_, p['status']) for type_, p in sent(loud)]
        assert seen == [
            ('lease.create', 'PENDING'),
            ('lease.event.start_lease', 'ACTIVE'),
            ('lease.event.before_end_lease', 'ACTIVE'),
            ('lease.event.end_lease', 'TERMINATED'),
            ('lease.delete', 'TERMINATED'),
        ]

    def test_a_lease_without_end(self, loud):
        loud.add_host('a')
        loud.create(end=window.FOREVER)
        [(_, payload)] = sent(loud)
        assert payload['end_date'] is None
        json.dumps(payload, allow_nan=False)

    def test_an_update_says_that_the_end_told_is_another(self, loud):
        loud.add_host('a')
        lease = loud.create(before_end=loud.now + 180)
        loud.run(100)
        sent(loud)
        loud.update_lease(lease, end=lease.end + 5)
        assert types(loud) == ['lease.update']
        loud.run(85)
        assert types(loud) == [EVENT + 'before_end_lease']
        loud.update_lease(lease, name='other')
        assert types(loud) == ['lease.update']
        loud.update_lease(lease, end=lease.end + 500)
        assert types(loud) == ['lease.update', EVENT + 'before_end_lease.stop']

    def test_refused_or_empty_changes_are_not_notified(self, loud):
        loud.add_host('a')
        lease = loud.create()
        sent(loud)
        with pytest.raises(exception.NotEnoughHostsAvailable):
            loud.create()
        with pytest.raises(exception.InvalidInput):
            loud.update_lease(lease, end=loud.now - 100)
        loud.update_lease(lease, end=lease.end)
        assert types(loud) == []

    def test_a_request_repeated_makes_one(self, loud):
        loud.add_host('a')
        values = loud.values(start='now')
        sent(loud)
        for _ in range(2):
            loud.leases.create(values, 'key')
        assert types(loud) == ['lease.create']

    def test_deleted_active_lease_is_notified_as_ended_and_deleted(self, loud):
        loud.add_host('a')
        lease = loud.start_lease()
        sent(loud)
        loud.leases.delete(lease.id, None)
        assert types(loud) == [EVENT + 'end_lease', 'lease.delete']

    def test_an_event_that_is_given_up(self, loud, conf, slots):
        conf.set_override('event_max_retries', 0, 'manager')
        loud.add_host('a')
        loud.create(slots(), start='now')
        sent(loud)
        loud.nova.failures, loud.nova.refuses = 1, True
        loud.run()
        [(event_type, payload)] = sent(loud)
        assert event_type == EVENT + 'start_lease.error'
        assert payload['status'] == 'ERROR'

    def test_lease_that_falls_short_is_notified_as_degraded(self, loud):
        loud.add_host('a')
        loud.create(start='now')
        loud.add_server('a')
        sent(loud)
        loud.run()
        assert types(loud) == [EVENT + 'start_lease', 'lease.degraded']


class TestSending:
    def test_off_unless_a_driver_is_named(self, world):
        world.add_host('a')
        world.create()
        assert types(world) == []
        assert not world.manager.notifier.is_on

    def test_who_has_ended_a_lease(self, conf, request):
        """A listener of oslo.messaging gets the notifications, as from Blazar.

        They are of two users, and then of a manager by itself.
        """
        group = 'oslo_messaging_notifications'
        conf.set_override('driver', ['messagingv2'], group)
        world = request.getfixturevalue('world')
        world.add_host('a')
        heard, over = {}, threading.Event()

        class Listener:
            def info(self, ctxt, publisher_id, event_type, payload, metadata):
                assert publisher_id == 'blazar.lease'
                heard[event_type, payload['name']] = ctxt
                if (event_type, payload['name']) == (ENDED, 'late'):
                    over.set()

        listener = oslo_messaging.get_notification_listener(
            world.manager.notifier._notifier.transport,
            [oslo_messaging.Target(topic='notifications')], [Listener()],
            executor='threading',
        )
        listener.start()
        world.manager.start()
        client = rpc.Client(rpc.transport(conf), timeout=20)

        def call(user, roles, method, **arguments):
            ctxt = context.RequestContext(
                user_id=user, project_id='p', roles=roles, auth_token='secret',
                global_request_id='req-of-all', overwrite=False,
            )
            return client.call(ctxt.to_dict(), method, **arguments)

        def create(name):
            return call('ann', ['member'], 'create_lease', values={
                'name': name, 'project_id': 'p', 'user_id': 'ann',
                'start': world.now + 100, 'end': world.now + 200,
                'before_end': None, 'reservations': [hosts()],
            })['id']

        try:
            call(
                'root', ['admin', 'member'], 'delete_lease',
                lease_id=create('gone'), project_id=None,
            )
            create('late')
            world.clock.now += 1000
            world.manager.runner.wake()
            assert over.wait(20)
        finally:
            world.manager.stop()
            listener.stop()
            listener.wait()
        made, gone = (
            heard[event_type, 'gone']
            for event_type in ('lease.create', 'lease.delete')
        )
        assert (made['user_id'], made['roles']) == ('ann', ['member'])
        assert gone['user_id'] == 'root'
        assert gone['roles'] == ['admin', 'member']
        assert gone['request_id'] != made['request_id']
        assert gone['global_request_id'] == 'req-of-all'
        assert 'secret' not in json.dumps(list(heard.values()))
        by_manager = heard[ENDED, 'late']
        assert by_manager['user_id'] is None and not by_manager['roles']
        assert by_manager['manager'] == rpc.process_name()

    def test_a_host(self, loud):
        loud.add_host('a')
        [host] = loud.ledger.hosts()
        loud.manager.notifier.tell(HOST_FAILURE, payloads.host(host))
        [(event_type, payload)] = sent(loud)
        assert event_type == 'host.failure'
        assert payload['host_id'] == host.id
        assert payload['hypervisor_hostname'] == 'a'
        json.dumps(payload, allow_nan=False)

    def test_a_broker_that_hangs_delays_nothing(self, loud, monkeypatch):
        loud.add_host('a')
        hold, notify = threading.Event(), _impl_test.TestDriver.notify
        seen = []

        def hang(*args):
            assert hold.wait(20)
            notify(*args)
            seen.append(args)
            if len(seen) == 3:
                over.set()

        over = threading.Event()
        monkeypatch.setattr(_impl_test.TestDriver, 'notify', hang)
        loud.manager.notifier.start()
        lease = loud.create()
        loud.update_lease(lease, name='other')
        loud.leases.delete(lease.id, None)
        assert not seen
        hold.set()
        assert over.wait(20)
        loud.manager.notifier.stop()
        assert types(loud) == ['lease.create', 'lease.update', 'lease.delete']

    def test_failed_notification_stops_no_other(self, loud, monkeypatch):
        loud.add_host('a')
        notify = _impl_test.TestDriver.notify
        failures = [RuntimeError('no broker')]

        def fail(*args):
            if failures:
                raise failures.pop()
            notify(*args)

        monkeypatch.setattr(_impl_test.TestDriver, 'notify', fail)
        lease = loud.create()
        loud.leases.delete(lease.id, None)
        assert types(loud) == ['lease.delete']

    def test_the_oldest_give_way(self, loud, conf, monkeypatch):
        monkeypatch.setattr(bus_notifier, 'MAX_WAITING', 2)
        notifier = Notifier(conf)
        for name in 'abc':
            notifier.notify(Notification(name, 'project', dict))
        notifier.step()
        assert types(loud) == ['b', 'c']
