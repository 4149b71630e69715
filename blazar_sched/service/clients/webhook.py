# SPDX-License-Identifier: Apache-2.0
"""Requests to the operator's webhook."""

import hashlib
import hmac
import json
from typing import Any

from oslo_config import cfg
import requests

from blazar_sched.conf import webhook as webhook_conf
from blazar_sched.domain import exception
from blazar_sched.service import faults
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
    body = json.dumps(content).encode()
    headers = {
        **rest.cause(), 'Content-Type': 'application/json', KEY: key
    }
    if options.secret:
        headers[SIGNATURE] = hmac.new(
            options.secret.encode(), body, hashlib.sha256
        ).hexdigest()
    rest.begin_request()
    try:
        answer = requests.post(
            url,
            data=body,
            headers=headers,
            timeout=options.timeout,
            allow_redirects=False,
        )
    except requests.RequestException as e:
        raise exception.Unavailable(
            'the webhook is unreachable', detail=str(e)
        ) from e
    faults.point('webhook:asked')
    if not 200 <= answer.status_code < 300:
        raise exception.Unavailable(
            f'the webhook answered {answer.status_code}',
            detail=answer.text[:200],
        )
