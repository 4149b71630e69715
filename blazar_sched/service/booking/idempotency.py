# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys: a repeated create request makes no second object."""

from collections.abc import Mapping
import dataclasses
import hashlib
import json
from typing import Any
import uuid

from blazar_sched.domain import exception
from blazar_sched.domain.lease import Lease
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import Tx

# The caller is not part of the requested values.
_CALLER = ('project_id', 'user_id', 'trust_id')


def digest(values: Mapping[str, Any]) -> str:
    """Return the digest that identifies a create request in its project.

    The digest is of the values as requested: 'now' gives the same digest at
    any time.
    """
    asked = {k: v for k, v in values.items() if k not in _CALLER}
    text = json.dumps(asked, sort_keys=True, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """The idempotency key of a request for a lease.

    :param values: the fields of the request
    :param key: unique in the project; None for none
    """

    values: Mapping[str, Any]
    key: str | None

    def lease(self, source: Reader) -> Lease | None:
        """Return the lease that the key has made, None if none.

        :param source: the ledger, or a commit
        :raises IdempotencyKeyReused: if the key was used for another request,
            or the lease was deleted
        """
        if self.key is None:
            return None
        found = source.lease_by_key(self.values['project_id'], self.key)
        if found is None:
            return None
        lease_id, known = found
        require_same(known, digest(self.values))
        if lease_id is None:
            raise deleted()
        try:
            return source.lease(lease_id)
        except exception.LeaseNotFound as e:
            raise deleted() from e

    def put(self, tx: Tx, lease_id: str, now: int) -> None:
        """Write that the key has made a lease."""
        if self.key is not None:
            tx.put_key(
                self.values['project_id'], self.key, lease_id,
                digest(self.values), now,
            )


def new_id(namespace: uuid.UUID, project_id: str, key: str | None) -> str:
    """Return the id of the object that a request makes.

    The key needs no row: the id of the object is made from the key.

    :param namespace: the namespace of the ids of such objects
    :param key: the idempotency key of the request, None for none
    """
    if key is None:
        return str(uuid.uuid4())
    return str(uuid.uuid5(namespace, f'{project_id} {key}'))


def deleted() -> exception.IdempotencyKeyReused:
    return exception.IdempotencyKeyReused(
        'what the key has created was deleted', field='Idempotency-Key'
    )


def require_same(known: str, asked: str) -> None:
    if known != asked:
        raise exception.IdempotencyKeyReused(
            'the key was already used for a different request',
            field='Idempotency-Key',
        )
