# SPDX-License-Identifier: Apache-2.0
"""A listener for Nova's versioned notifications of services and servers.

The contents of a notification are not trusted, because they may be outdated:
a notification only says which server or service to look up. A notification
may be lost, or be delivered twice.
"""

from collections.abc import Callable
from typing import Any

from oslo_config import cfg
import oslo_messaging
from oslo_utils import uuidutils

from blazar_sched.service import loop
from blazar_sched.service.bus import rpc

SERVICE_UPDATE = 'service.update'
# The managers share notifications in a pool of their own, so that other
# consumers still receive every notification.
POOL = 'blazar-sched'


class Listener(rpc.Background):
    """A listener on the configured topics.

    :param services: called when a service has changed
    :param instance: called with the UUID of a server that was created,
        changed or deleted
    """

    def __init__(
        self, conf: cfg.ConfigOpts, services: Callable[[], object],
        instance: Callable[[str], object],
    ) -> None:
        server = oslo_messaging.get_notification_listener(
            rpc.notifications(conf),
            [
                oslo_messaging.Target(
                    exchange=conf.manager.notification_exchange, topic=topic
                )
                for topic in conf.manager.notification_topics
            ],
            [_Endpoint(services, instance)], executor='threading', pool=POOL,
        )
        super().__init__(server)

    @property
    def loops(self) -> tuple[loop.Loop, ...]:
        """Return no loops, because the threads are those of oslo.messaging."""
        return ()


class _Endpoint:
    filter_rule = oslo_messaging.NotificationFilter(
        event_type=rf'^({SERVICE_UPDATE}|instance\..+)$'
    )

    def __init__(
        self, services: Callable[[], object], instance: Callable[[str], object]
    ) -> None:
        self._services = services
        self._instance = instance

    def info(
        self, ctxt: Any, publisher_id: str, event_type: str, payload: Any,
        metadata: Any,
    ) -> None:
        if event_type == SERVICE_UPDATE:
            self._services()
        elif (uuid := _uuid(payload)) is not None:
            self._instance(uuid)

    # The method's name is the priority. An operation that failed may have
    # left a server on another host, or deleted.
    error = info


def _uuid(payload: Any) -> str | None:
    """Return the server UUID in a payload, None if it cannot be read."""
    match payload:
        case {'nova_object.data': {'uuid': str() as uuid}}:
            return uuid if uuidutils.is_uuid_like(uuid) else None
    return None
