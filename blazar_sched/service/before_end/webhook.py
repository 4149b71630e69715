# SPDX-License-Identifier: Apache-2.0
"""The action that notifies the operator's service of a lease's end."""

import hashlib
import hmac
import json

from oslo_config import cfg
import requests

from blazar_sched.conf import webhook as webhook_conf
from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service import faults
from blazar_sched.service.before_end import base
from blazar_sched.service.bus import payload
from blazar_sched.service.clients import rest

SIGNATURE = 'X-Signature'
# The same key for every request about the same end, so that the receiver can
# recognize a duplicate.
KEY = 'Idempotency-Key'


class Webhook(base.Action):
    """The action ``webhook``: one POST for a lease."""

    once = True

    @staticmethod
    def missing_option(conf: cfg.ConfigOpts) -> str | None:
        return None if conf[webhook_conf.GROUP].url else '[webhook] url'

    def act(
        self,
        lease: Lease,
        reservation: Reservation,
        servers: base.Servers,
    ) -> None:
        """Send the lease, in the format of notifications.

        :raises Unavailable: if the request is not accepted: any answer but 2xx
        """
        body = json.dumps(payload.lease(lease)).encode()
        rest.begin_request()
        try:
            answer = requests.post(
                self._options.url,
                data=body,
                headers=self._headers(lease, body),
                timeout=self._options.timeout,
                allow_redirects=False,
            )
        except requests.RequestException as e:
            raise exception.Unavailable(
                f'the webhook is unreachable: {e}'
            ) from e
        faults.point('webhook:asked')
        if not 200 <= answer.status_code < 300:
            raise exception.Unavailable(
                f'the webhook answered {answer.status_code}: '
                f'{answer.text[:200]}'
            )

    @property
    def _options(self) -> cfg.ConfigOpts.GroupAttr:
        return self._conf[webhook_conf.GROUP]

    def _headers(self, lease: Lease, body: bytes) -> dict[str, str]:
        headers = {
            'Content-Type': 'application/json',
            KEY: f'{lease.id}.{lease.ending}',
        }
        if self._options.secret:
            headers[SIGNATURE] = hmac.new(
                self._options.secret.encode(), body, hashlib.sha256
            ).hexdigest()
        return headers
