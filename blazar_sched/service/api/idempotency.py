# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys of requests that create something."""

import re
from typing import TypedDict

import falcon
from oslo_utils import uuidutils

from blazar_sched.domain import exception
from blazar_sched.service.api.schemas.idempotency import KEY_HEADER

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
