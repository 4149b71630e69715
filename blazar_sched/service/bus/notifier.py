# SPDX-License-Identifier: Apache-2.0
"""Notifications about leases, hosts and servers.

A notification of what a project has, such as a lease, belongs to the commit of
a change: it is added to the commit, and sent once the change is committed.

Notifications are sent with oslo.messaging, where
[oslo_messaging_notifications] names a driver, with Blazar's publisher, level,
event types and payload. Where Blazar has no event type, the type is this
project's own. Notifications are sent in order, from a separate thread and
after the commit: a broker that hangs delays nothing, but notifications are
lost. The log has a line for each notification, whether or not it is sent.
"""

import collections
from collections.abc import Callable
import itertools
from typing import Any

from oslo_config import cfg
from oslo_context import context
from oslo_log import log
import oslo_messaging

from blazar_sched.domain import event
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.notification import Notification
from blazar_sched.domain.notification import Payload
from blazar_sched.service import loop
from blazar_sched.service import parts
from blazar_sched.service.bus import payload as payloads
from blazar_sched.service.bus import rpc
from blazar_sched.service.ledger.tx import Tx

LOG = log.getLogger(__name__)

PUBLISHER = 'blazar.lease'
# Blazar's event types. The type for an event of a lease, once the event is
# done, is LEASE_EVENT followed by the type of the event.
LEASE_CREATE = 'lease.create'
LEASE_UPDATE = 'lease.update'
LEASE_DELETE = 'lease.delete'
LEASE_EVENT = 'lease.event.'
# The owner was notified of an end of lease that has been moved since.
BEFORE_END_STOP = 'lease.event.before_end_lease.stop'
# The event types of this project; ERROR follows the type of an event that was
# given up.
ERROR = '.error'
LEASE_DEGRADED = 'lease.degraded'
LEASE_HEALED = 'lease.healed'
# The lease has not started, and its hosts no longer have the capacity.
LEASE_AT_RISK = 'lease.at_risk'
# The lease has started, and its capacity is not used in full.
LEASE_UNUSED = 'lease.unused'
# The types about what projects have, without those of parts.
_OF_PROJECTS = (
    LEASE_CREATE, f'{LEASE_CREATE}{ERROR}', LEASE_UPDATE, LEASE_DELETE,
    *(
        f'{LEASE_EVENT}{each}{suffix}'
        for each in event.OF_LEASE for suffix in ('', ERROR)
    ),
    BEFORE_END_STOP, LEASE_DEGRADED, LEASE_HEALED, LEASE_AT_RISK,
    LEASE_UNUSED,
)
HOST_FAILURE = 'host.failure'
HOST_RECOVERY = 'host.recovery'
# A server uses capacity that is promised to leases, though no filter passed
# the server.
INSTANCE_MISPLACED = 'instance.misplaced'
# A server must leave its host in time, and no other host has room.
INSTANCE_UNPLANNED = 'instance.unplanned'
# The live migration of a server along its relocation path: Nova has accepted
# the request; the server has come to its next host; Nova has refused the
# request, or the server is where it was; a reservation needs the host, and the
# server is still there.
# The owner may choose when an instance is stopped and moved.
INSTANCE_RELOCATION_PLANNED = 'instance.relocation.planned'
INSTANCE_RELOCATION_START = 'instance.relocation.start'
INSTANCE_RELOCATION_END = 'instance.relocation.end'
INSTANCE_RELOCATION_ERROR = 'instance.relocation.error'
INSTANCE_RELOCATION_LATE = 'instance.relocation.late'
# A server occupies capacity of a lease, and has to leave.
INSTANCE_VACATE = 'instance.vacate'

# The maximum number of notifications that wait for a broker that hangs; beyond
# it the oldest notifications are lost.
MAX_WAITING = 10_000
# What the log shows of a payload, and what a notification contains of the
# context of the request that has caused it, as far as there is one: no token.
_LOGGED = (
    'lease_id', 'series_id', 'request_id', 'host_id', 'instance_id', 'name',
    'project_id', 'user_id', 'start_date', 'end_date', 'status', 'degraded',
    'hypervisor_hostname', 'target_hypervisor_hostname', 'needs_approval',
    'approved_by',
)
_CONTEXT = (
    'request_id', 'global_request_id', 'user_id', 'project_id', 'roles',
)


def of_projects(conf: cfg.ConfigOpts) -> tuple[str, ...]:
    """Return the types that webhooks of projects can have."""
    of_parts = parts.each('manager', 'NOTIFICATIONS', parts.running(conf))
    return (*_OF_PROJECTS, *itertools.chain.from_iterable(of_parts))


class _Contexts(oslo_messaging.NoOpSerializer):
    """A serializer that sends who has caused a notification.

    The fields of the request are those of the caller. What a manager does by
    itself, such as the end of a lease in time, has no user.
    """

    def serialize_context(
        self, ctxt: context.RequestContext | None
    ) -> dict[str, Any]:
        return {
            **{name: getattr(ctxt, name, None) for name in _CONTEXT},
            'manager': rpc.process_name(),
        }


class Notifier(loop.Looped):
    """A sender of notifications that threads can share.

    A stopped notifier sends nothing more: notifications that wait behind a
    notification that hangs are lost.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        #: Whether notifications are sent at all.
        self.is_on = bool(conf.oslo_messaging_notifications.driver)
        #: The number of notifications that could not be sent.
        self.lost = 0
        self._notifier = oslo_messaging.Notifier(
            rpc.notifications(conf), PUBLISHER, serializer=_Contexts()
        )
        self._waiting: collections.deque[
            tuple[context.RequestContext | None, str, dict[str, Any]]
        ] = collections.deque(maxlen=MAX_WAITING)
        self._loop = loop.Loop('notifier', self.step)

    def notify(self, notification: Notification) -> None:
        """Queue a notification of a change that was committed."""
        self.tell(notification.event_type, notification.payload())

    def tell(self, event_type: str, payload: Payload) -> None:
        """Queue a notification of a host or a server; the type is from above.
        """
        shown = {k: payload[k] for k in _LOGGED if k in payload}
        LOG.info(
            '%s: %s', event_type,
            ', '.join(f'{k} {v}' for k, v in shown.items()),
        )
        if not self.is_on:
            return
        if len(self._waiting) == MAX_WAITING:
            LOG.warning(
                'Dropped notification %s: the queue is full',
                self._waiting[0][1],
            )
            self.lost += 1
        self._waiting.append((context.get_current(), event_type, payload))
        self._loop.wake()

    def send(self, event_type: str, payload: dict[str, Any]) -> None:
        """Send a notification in this thread, without a line in the log.

        There may be more of these at a time than the queue takes.
        """
        self._send(None, event_type, payload)

    def step(self) -> float:
        """Send the queued notifications."""
        while self._waiting:
            self._send(*self._waiting.popleft())
        return loop.IDLE

    def _send(
        self, caller: context.RequestContext | None, event_type: str,
        payload: dict[str, Any],
    ) -> None:
        try:
            self._notifier.info(caller, event_type, payload)
        except Exception:
            # Any error of a driver is logged: nothing depends on
            # notifications.
            LOG.exception('Could not send notification %s', event_type)
            self.lost += 1


def lease(tx: Tx, event_type: str, lease: Lease) -> None:
    """Notify of a lease, with an `event_type` from above.

    A held offer is not a lease yet: no notification is sent.
    """
    is_degraded = event_type == LEASE_DEGRADED
    form = payloads.degraded if is_degraded else payloads.lease
    of_lease(tx, event_type, lease, lambda: form(lease))


def of_lease(
    tx: Tx, event_type: str, lease: Lease, payload: Callable[[], Payload]
) -> None:
    """Notify of a lease as `lease` does, with a payload of its own."""
    if not lease.is_offer:
        tx.notifications.append(
            Notification(event_type, lease.project_id, payload)
        )
