# SPDX-License-Identifier: Apache-2.0
"""Versioned notifications as Nova sends them, and a listener for them."""

import threading

import oslo_messaging

from blazar_sched.conf import service as service_conf


def of_server(uuid):
    """Return a notification of a server, with the fields that are read."""
    return {
        'nova_object.name': 'InstanceActionPayload',
        'nova_object.namespace': 'nova',
        'nova_object.version': '1.9',
        'nova_object.data': {'uuid': uuid, 'state': 'active'},
    }


def nova(url, topic):
    """Return a function that sends notifications as Nova does, with nova.conf.

    The arguments are an event type, a payload and a priority, by default info.
    """
    conf = service_conf.load(files=[])
    conf.set_override('transport_url', url)
    conf.set_override('control_exchange', 'nova')
    notifier = oslo_messaging.Notifier(
        oslo_messaging.get_notification_transport(conf), 'nova-compute:a',
        driver='messagingv2', topics=[topic],
    )

    def notify(event_type, payload, priority='info'):
        getattr(notifier, priority)({}, event_type, payload)

    return notify


class Heard:
    """An end point that records the calls that it receives.

    :param timeout: seconds to wait for a call
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
        """Return the arguments of the calls, once there are `count` calls."""
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._seen) >= count, timeout or self._timeout
            )
            return list(self._seen)
