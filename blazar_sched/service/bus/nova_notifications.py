# SPDX-License-Identifier: Apache-2.0
"""Hears of Nova's services and servers by its versioned notifications.

What they say is not believed, as it may be old: they only say where to look.
Any may be lost, or come twice.
"""

from collections.abc import Callable
from typing import Any

from oslo_config import cfg
import oslo_messaging
from oslo_utils import uuidutils

from blazar_sched.service import loop
from blazar_sched.service.bus import rpc

SERVICE_UPDATE = 'service.update'
# Notifications are shared by the managers, and taken from nobody else.
POOL = 'blazar-sched'


class Listener(rpc.Background):
    """Listens on the configured topics.

    :param services: called when a service has changed
    :param instance: called with the uuid of a server that has come, changed
        or gone
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        services: Callable[[], object],
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
            [_Endpoint(services, instance)],
            executor='threading',
            pool=POOL,
        )
        super().__init__(server)

    @property
    def loops(self) -> tuple[loop.Loop, ...]:
        """None: the threads are oslo.messaging's."""
        return ()


class _Endpoint:
    filter_rule = oslo_messaging.NotificationFilter(
        event_type=rf'^({SERVICE_UPDATE}|instance\..+)$'
    )

    def __init__(
        self,
        services: Callable[[], object],
        instance: Callable[[str], object],
    ) -> None:
        self._services = services
        self._instance = instance

    def info(
        self,
        ctxt: Any,
        publisher_id: str,
        event_type: str,
        payload: Any,
        metadata: Any,
    ) -> None:
        if event_type == SERVICE_UPDATE:
            self._services()
        elif (uuid := _uuid(payload)) is not None:
            self._instance(uuid)

    # By its name the priority: what has failed may have left a server
    # elsewhere, or gone.
    error = info


def _uuid(payload: Any) -> str | None:
    """Return the server that a payload is of; None if it cannot be read."""
    match payload:
        case {'nova_object.data': {'uuid': str() as uuid}}:
            return uuid if uuidutils.is_uuid_like(uuid) else None
    return None
