# SPDX-License-Identifier: Apache-2.0
"""Versioned notifications as Nova sends them, and who hears of them."""

import threading

import oslo_messaging

from blazar_sched.conf import service as service_conf


def of_server(uuid):
    """Return a payload as Nova's, but for all that nobody reads."""
    return {
        'nova_object.name': 'InstanceActionPayload',
        'nova_object.namespace': 'nova',
        'nova_object.version': '1.9',
        'nova_object.data': {'uuid': uuid, 'state': 'active'},
    }


def nova(url, topic):
    """Return what notifies as Nova does, by its own nova.conf.

    Call it with an event type, a payload and, unless that is info, a
    priority.
    """
    conf = service_conf.load(files=[])
    conf.set_override('transport_url', url)
    conf.set_override('control_exchange', 'nova')
    notifier = oslo_messaging.Notifier(
        oslo_messaging.get_notification_transport(conf),
        'nova-compute:a',
        driver='messagingv2',
        topics=[topic],
    )

    def notify(event_type, payload, priority='info'):
        getattr(notifier, priority)({}, event_type, payload)

    return notify


class Heard:
    """Whom a listener may call with what it hears.

    :param timeout: seconds that are waited for anything
    """

    def __init__(self, timeout):
        self._timeout = timeout
        self._seen = []
        self._changed = threading.Condition()

    def __call__(self, *what):
        with self._changed:
            self._seen.append(what)
            self._changed.notify_all()

    def wait(self, count, timeout=None):
        """Return the arguments of the calls, once they are so many."""
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._seen) >= count, timeout or self._timeout
            )
            return list(self._seen)
