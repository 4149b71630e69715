# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys of requests that create something.

A request that is repeated under the same key creates nothing more.
"""

import re
from typing import TypedDict

import falcon
from oslo_utils import uuidutils

from blazar_sched.domain import exception
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Type

KEY_HEADER = 'Idempotency-Key'
HEADERS = (
    Field(
        KEY_HEADER,
        'Identifies the request: a client that received no response can '
        'repeat the request with the same key, and receives what the first '
        'request created',
        type=Type({'type': 'string', 'pattern': '^[ -~]{1,255}$'}),
    ),
)

_KEY = re.compile('[ -~]{1,255}')


class Argument(TypedDict, total=False):
    idempotency_key: str


def argument(req: falcon.Request, dry_run: bool) -> Argument:
    """Return the manager's argument with the key of a request.

    A request without a key is given a new key, because a call with a key is
    sent to another manager if a manager dies. A dry run can be repeated
    without a key.

    :raises InvalidInput: if the key is invalid
    """
    key = req.get_header(KEY_HEADER)
    if key is None:
        return {} if dry_run else {
            'idempotency_key': uuidutils.generate_uuid()
        }
    if not _KEY.fullmatch(key):
        raise exception.InvalidInput(
            f'{KEY_HEADER} must have 1 to 255 printable ASCII characters',
            field=KEY_HEADER,
        )
    return {'idempotency_key': key}
