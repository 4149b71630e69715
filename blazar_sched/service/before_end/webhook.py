# SPDX-License-Identifier: Apache-2.0
"""The action that notifies the operator's service of a lease.

The service is notified once the lease has started, or before its end.
"""

from oslo_config import cfg

from blazar_sched.conf import webhook as webhook_conf
from blazar_sched.domain.event import AFTER_START_LEASE
from blazar_sched.domain.event import BEFORE_END_LEASE
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.before_end import base
from blazar_sched.service.bus import payload
from blazar_sched.service.bus.notifier import LEASE_EVENT
from blazar_sched.service.clients import webhook


class Webhook(base.Action):
    """The action ``webhook``: one POST for a lease."""

    once = True
    at_start = True

    @staticmethod
    def missing_option(conf: cfg.ConfigOpts) -> str | None:
        return None if conf[webhook_conf.GROUP].url else '[webhook] url'

    def act(
        self, lease: Lease, reservation: Reservation, servers: base.Servers
    ) -> None:
        """Send the lease, in the format of notifications.

        :raises Unavailable: if the request is not accepted: any answer but 2xx
        """
        self._post(lease, BEFORE_END_LEASE, lease.ending)

    def start(self, lease: Lease) -> None:
        """Send the lease, as `act` does."""
        self._post(lease, AFTER_START_LEASE, AFTER_START_LEASE)

    def _post(self, lease: Lease, event_type: str, key: str) -> None:
        webhook.post(
            self._conf, self._conf[webhook_conf.GROUP].url,
            {**payload.lease(lease), 'event_type': LEASE_EVENT + event_type},
            f'{lease.id}.{key}',
        )
