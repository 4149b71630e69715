# SPDX-License-Identifier: Apache-2.0
"""The listener for Nova's notifications, with messages on an in-memory bus."""

import dataclasses
import uuid

import pytest

from blazar_sched.service.bus.nova_notifications import Listener
from tests import notifications
from tests.waiting import PATIENCE
from tests.waiting import until

# Seconds to wait for an expected message, and for an unexpected one.
SHORT = 0.5

UUID = str(uuid.UUID(int=1))


@pytest.fixture
def heard():
    return notifications.Heard(PATIENCE)


@pytest.fixture
def topic(conf):
    """A topic without messages of other tests."""
    topic = str(uuid.uuid4())
    conf.set_override('notification_topics', [topic], 'manager')
    return topic


@pytest.fixture
def listen(conf, topic):
    """listen(heard) starts a manager's listener."""
    started = []

    def listen(heard):
        each = Listener(conf, lambda: heard('services'), heard)
        each.start()
        started.append(each)

    yield listen
    for each in started:
        each.stop()


@pytest.fixture
def notify(topic):
    return notifications.nova('fake://', topic)


# Event types and payloads that change no server or service.
OTHERS = [
    # Unversioned notifications come on the same topic.
    ('compute.instance.create.end', {'instance_id': UUID}),
    ('scheduler.select_destinations.end', notifications.of_server(UUID)),
    ('service.create', {}),
    ('keypair.create.end', notifications.of_server(UUID)),
    ('instance.create.end', None),
    ('instance.create.end', []),
    ('instance.create.end', {}),
    ('instance.create.end', {'nova_object.data': None}),
    ('instance.create.end', {'nova_object.data': {}}),
    ('instance.create.end', notifications.of_server(None)),
    ('instance.create.end', notifications.of_server(1)),
    ('instance.create.end', notifications.of_server('../flavors')),
    ('instance.create.end', notifications.of_server([UUID])),
]


class TestListener:
    def test_hears_of_servers_and_services(self, listen, notify, heard):
        listen(heard)
        for event_type in (
            'instance.create.end', 'instance.delete.end', 'instance.update',
            'instance.live_migration_post_dest.end', 'instance.rebuild.end',
        ):
            notify(event_type, notifications.of_server(UUID))
        # A failed action may have left the server on another host.
        notify('instance.create.error', notifications.of_server(UUID), 'error')
        notify('service.update', {})
        assert sorted(heard.wait(7)) == [(UUID,)] * 6 + [('services',)]

    def test_other_notifications_are_ignored(self, listen, notify, heard):
        """None of these stops the listener either."""
        listen(heard)
        for each in OTHERS:
            notify(*each)
        notify('service.update', {})
        assert heard.wait(1) == [('services',)]
        assert heard.wait(2, SHORT) == [('services',)]

    def test_managers_share_them(self, listen, notify, heard):
        for _ in range(3):
            listen(heard)
        servers = [str(uuid.UUID(int=i)) for i in range(20)]
        for id_ in servers:
            notify('instance.update', notifications.of_server(id_))
        heard.wait(len(servers))
        seen = [id_ for id_, in heard.wait(len(servers) + 1, SHORT)]
        assert sorted(seen) == servers


class TestManager:
    """With the option set, the manager polls the servers of notifications."""

    @pytest.fixture
    def listening(self, world, conf, topic):
        conf.set_override('enable_polling_monitor', False, 'manager')
        conf.set_override('enable_notification_monitor', True, 'manager')
        conf.set_override('sync_interval', 3600.0, 'manager')
        manager = world.begin(conf)
        world.add_host('a')
        manager.start()
        yield world
        manager.stop()

    def test_a_host_that_fails(self, listening, notify):
        world = listening
        world.nova.nodes['a'] = dataclasses.replace(
            world.nova.nodes['a'], up=False
        )
        notify('service.update', {})
        until(lambda: not world.host('a').reservable)

    @pytest.mark.row('F44')
    def test_a_server_that_comes_and_goes(self, listening, notify):
        world = listening
        server = world.add_server('a')
        notify('instance.create.end', notifications.of_server(server.uuid))
        until(lambda: world.ledger.instance(server.uuid))
        del world.nova.stored[server.uuid]
        notify('instance.delete.end', notifications.of_server(server.uuid))
        until(lambda: not world.ledger.instance(server.uuid))

    def test_manager_does_not_listen_without_the_option(
        self, world, conf, notify, heard
    ):
        """The manager then takes no message from the topic."""
        manager = world.begin(conf)
        manager.start()
        notify('service.update', {})
        manager.stop()
        conf.set_override('enable_notification_monitor', True, 'manager')
        each = Listener(conf, lambda: heard('services'), heard)
        each.start()
        assert heard.wait(1) == [('services',)]
        each.stop()
