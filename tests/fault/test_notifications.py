# SPDX-License-Identifier: Apache-2.0
"""Nova's notifications on a real broker, with its exchanges and queues."""

import contextlib
import uuid

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.service.bus import nova_notifications
from tests import notifications

SOON = 120
SHORT = 1


@pytest.fixture
def topic():
    return f'notifications-{uuid.uuid4()}'


@pytest.fixture
def listening(bus, topic):
    """listening(heard) -> a context in which a manager listens."""
    conf = service_conf.load(files=[])
    conf.set_override('transport_url', bus)
    conf.set_override('notification_topics', [topic], 'manager')

    @contextlib.contextmanager
    def listening(heard):
        each = nova_notifications.Listener(
            conf, lambda: heard('services'), heard
        )
        each.start()
        try:
            yield
        finally:
            each.stop()

    return listening


@pytest.fixture
def notify(bus, topic):
    return notifications.nova(bus, topic)


@pytest.mark.row('F44')
def test_each_is_heard_by_one_of_the_managers(listening, notify):
    heard = notifications.Heard(SOON)
    uuids = sorted(str(uuid.uuid4()) for _ in range(50))
    with listening(heard), listening(heard):
        for each in uuids:
            notify('instance.update', notifications.of_server(each))
        heard.wait(len(uuids))
        seen = heard.wait(len(uuids) + 1, SHORT)
    assert sorted(uuid for uuid, in seen) == uuids


def test_a_manager_hears_what_came_while_none_was_there(listening, notify):
    heard = notifications.Heard(SOON)
    with listening(heard):
        notify('service.update', {})
        assert heard.wait(1) == [('services',)]
    notify('service.update', {})
    with listening(heard):
        assert heard.wait(2) == [('services',)] * 2
