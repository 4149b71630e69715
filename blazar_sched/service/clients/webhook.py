# SPDX-License-Identifier: Apache-2.0
"""Requests to the operator's webhook."""

import hashlib
import hmac
import json
from typing import Any

from oslo_config import cfg

from blazar_sched.conf import webhook as webhook_conf
from blazar_sched.domain import exception
from blazar_sched.service import faults
from blazar_sched.service.clients import receiver
from blazar_sched.service.clients import rest

SIGNATURE = 'X-Signature'
# The same key for every request about the same thing, so that the receiver can
# recognize a duplicate.
KEY = 'Idempotency-Key'


def post(
    conf: cfg.ConfigOpts, url: str, content: dict[str, Any], key: str
) -> None:
    """Send a JSON document to a URL of the operator.

    :param key: the idempotency key
    :raises Unavailable: if the request is not accepted: any answer but 2xx
    """
    options = conf[webhook_conf.GROUP]
    body = json.dumps(content)
    headers = {
        **rest.cause(), 'Content-Type': 'application/json', KEY: key
    }
    if options.secret:
        headers[SIGNATURE] = hmac.new(
            options.secret.encode(), body.encode(), hashlib.sha256
        ).hexdigest()
    rest.begin_request()
    answer = receiver.post(url, headers, body, options.timeout, most=200)
    faults.point('webhook:asked')
    if not answer.is_ok:
        raise exception.Unavailable(
            f'the webhook answered {answer.status}',
            detail=answer.body.decode(errors='replace'),
        )
