# SPDX-License-Identifier: Apache-2.0
"""Trusts, by which the creator of a lease delegates roles to the lease.

The caller's token is needed to create a trust and goes no further: not to the
manager, not to the log, and not into the ledger.
"""

from collections.abc import Callable
from typing import Any

from oslo_context import context
from oslo_log import log as logging

from blazar_sched.domain import exception
from blazar_sched.service.clients.keystone import Keystone

LOG = logging.getLogger(__name__)

# The key of the request's Trustor, if any, in the WSGI environ.
TRUSTOR = 'blazar_sched.trustor'

Lease = dict[str, Any]


class Trustor:
    """A caller who can delegate roles by a trust during the request."""

    def __init__(
        self, keystone: Keystone, token: str, ctxt: context.RequestContext
    ) -> None:
        self._keystone = keystone
        self._token = token
        self._context = ctxt

    def create(self) -> str | None:
        """Return the id of a new trust; None if no trust is possible."""
        return self._keystone.create_trust(
            self._token, str(self._context.user_id),
            str(self._context.project_id), self._context.roles,
        )

    def delete(self, trust_id: str | None) -> None:
        """Delete a trust, if Keystone is available."""
        try:
            self._keystone.delete_trust(trust_id, self._token)
        except exception.Unavailable as e:
            LOG.warning('Trust %s is left without a lease: %s', trust_id, e)


def with_trust(
    trustor: Trustor | None, create: Callable[[str | None], Lease],
    dry_run: Callable[[], Lease],
) -> Lease:
    """Return a lease that has a trust with the caller's roles.

    A refused request causes no work in Keystone: each deleted trust leaves a
    revocation in Keystone, which is checked with every token.

    A new trust that the lease does not have is deleted: if there is no lease,
    or if the request was made before. The trust is also deleted if it is
    unknown whether there is a lease: a lease that cannot act for its creator
    is better than a trust that belongs to no lease.

    :param create: asks the manager for the lease, with the id of the trust
    :param dry_run: tells by a dry run whether there will be a lease
    """
    if trustor is None:
        return create(None)
    expected = dry_run()
    if expected['trust_id'] is not None:
        # The request was made before, and has its lease.
        return expected
    trust_id, used = trustor.create(), None
    try:
        lease = create(trust_id)
        used = lease['trust_id']
        return lease
    finally:
        if used != trust_id:
            trustor.delete(trust_id)
