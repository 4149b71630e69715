# SPDX-License-Identifier: Apache-2.0
"""The action that notifies the operator's service of a lease.

The service is notified once the lease has started, or before its end.
"""

import hashlib
import hmac
import json

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.domain.event import AFTER_START_LEASE
from blazar_sched.domain.event import BEFORE_END_LEASE
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.notify.conf import WEBHOOK
from blazar_sched.service import faults
from blazar_sched.service.before_end import base
from blazar_sched.service.bus import payload
from blazar_sched.service.bus.notifier import LEASE_EVENT
from blazar_sched.service.clients import receiver
from blazar_sched.service.clients import rest

SIGNATURE = 'X-Signature'
# The same key for every request about the same thing, so that the receiver can
# recognize a duplicate.
KEY = 'Idempotency-Key'


class Webhook(base.Action):
    """The action ``webhook``: one POST for a lease."""

    once = True
    at_start = True

    @staticmethod
    def missing_option(conf: cfg.ConfigOpts) -> str | None:
        return None if conf[WEBHOOK].url else '[webhook] url'

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
        options = self._conf[WEBHOOK]
        body = json.dumps({
            **payload.lease(lease), 'event_type': LEASE_EVENT + event_type
        })
        headers = {
            **rest.cause(), 'Content-Type': 'application/json',
            KEY: f'{lease.id}.{key}',
        }
        if options.secret:
            headers[SIGNATURE] = hmac.new(
                options.secret.encode(), body.encode(), hashlib.sha256
            ).hexdigest()
        rest.begin_request()
        answer = receiver.post(
            options.url, headers, body, options.timeout, most=200
        )
        faults.point('webhook:asked')
        if not answer.is_ok:
            raise exception.Unavailable(
                f'the webhook answered {answer.status}',
                detail=answer.body.decode(errors='replace'),
            )
