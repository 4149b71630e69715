# SPDX-License-Identifier: Apache-2.0
"""Notifications: what becomes of leases and hosts, for who listens.

By oslo.messaging, where [oslo_messaging_notifications] names a driver, with
Blazar's publisher, level, event types and payload. What Blazar has no type
for has one of ours. They are sent in their order, from a thread of their own
and after the commit: a broker that hangs delays nothing, and loses them.
"""

import collections
from typing import Any

from oslo_config import cfg
from oslo_log import log
import oslo_messaging

from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.service import loop
from blazar_sched.service.bus import payload as payloads
from blazar_sched.service.bus import rpc

LOG = log.getLogger(__name__)

PUBLISHER = 'blazar.lease'
# Blazar's; an event of a lease is LEASE_EVENT and its type, once it is done.
LEASE_CREATE = 'lease.create'
LEASE_UPDATE = 'lease.update'
LEASE_DELETE = 'lease.delete'
LEASE_EVENT = 'lease.event.'
# The owner was told of an end that has been moved since.
BEFORE_END_STOP = 'lease.event.before_end_lease.stop'
# Ours: behind the type of an event that was given up.
ERROR = '.error'
LEASE_DEGRADED = 'lease.degraded'
LEASE_HEALED = 'lease.healed'
# It has not started, and its hosts do not have the room any more.
LEASE_AT_RISK = 'lease.at_risk'
HOST_FAILURE = 'host.failure'
HOST_RECOVERY = 'host.recovery'
# A server takes what leases have been promised, though no filter let it in.
INSTANCE_MISPLACED = 'instance.misplaced'
# It is in a lease's way, and has to go.
INSTANCE_VACATE = 'instance.vacate'

# So many wait for a broker that hangs; then the oldest are lost.
MOST_WAITING = 10_000
# Seconds between two steps where there is nothing to send.
IDLE = 3600.0


class Notifier(loop.Looped):
    """Sends notifications; safe to share between threads.

    Once it is stopped no more are sent: notifications that wait behind one
    that hangs are lost.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        #: Whether anything is sent at all.
        self.is_on = bool(conf.oslo_messaging_notifications.driver)
        #: How many could not be sent.
        self.lost = 0
        self._notifier = oslo_messaging.Notifier(
            rpc.notifications(conf), PUBLISHER
        )
        self._waiting: collections.deque[tuple[str, dict[str, Any]]] = (
            collections.deque(maxlen=MOST_WAITING)
        )
        self._loop = loop.Loop('notifier', self.step)

    def lease(self, event_type: str, lease: Lease) -> None:
        """Tell soon what has become of a lease: `event_type` is above."""
        if self.is_on:
            self._put(event_type, payloads.lease(lease))

    def host(self, event_type: str, host: Host) -> None:
        """Tell soon what has become of a host: `event_type` is above."""
        if self.is_on:
            self._put(event_type, payloads.host(host))

    def instance(self, event_type: str, uuid: str, **details: Any) -> None:
        """Tell soon what has become of a server: `event_type` is above."""
        if self.is_on:
            self._put(event_type, {'instance_id': uuid, **details})

    def step(self) -> float:
        """Send what waits."""
        while self._waiting:
            event_type, payload = self._waiting.popleft()
            try:
                self._notifier.info({}, event_type, payload)
            except Exception:
                # Whatever a driver raises: nothing depends on it.
                LOG.exception('%s could not be sent', event_type)
                self.lost += 1
        return IDLE

    def _put(self, event_type: str, payload: dict[str, Any]) -> None:
        if len(self._waiting) == MOST_WAITING:
            LOG.warning('%s is lost: too many wait', self._waiting[0][0])
            self.lost += 1
        self._waiting.append((event_type, payload))
        self._loop.poke()
