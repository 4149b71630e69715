# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys: a create that is asked for again makes nothing more."""

from collections.abc import Mapping
import hashlib
import json
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.service.ledger.reader import Reader

# Who asks is no part of what is asked for.
_CALLER = ('project_id', 'user_id', 'trust_id')


def digest(values: Mapping[str, Any]) -> str:
    """Return what tells a request for a lease from others of its project.

    Of the values as they were asked for: 'now' is the same whenever it is.
    """
    asked = {k: v for k, v in values.items() if k not in _CALLER}
    text = json.dumps(asked, sort_keys=True, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()


def made(
    source: Reader, project_id: str, key: str, asked: str
) -> Lease | None:
    """Return the lease that an idempotency key has made, None if none.

    :param source: the ledger, or a commit
    :param asked: the digest of what is asked for with it now
    :raises IdempotencyKeyReused: if it was another request's
    """
    found = source.lease_by_key(project_id, key)
    if found is None:
        return None
    lease_id, known = found
    if known != asked:
        raise exception.IdempotencyKeyReused(
            'the key was used for another request', field='Idempotency-Key'
        )
    try:
        lease: Lease = source.lease(lease_id)
    except exception.LeaseNotFound:
        # Deleted since, and the key with it.
        return None
    return lease
