# SPDX-License-Identifier: Apache-2.0
"""Trusts: a new lease is lent its creator's roles.

The caller's token is needed for that and goes no further: not to the
manager, not to the log, not into the ledger.
"""

from collections.abc import Callable
from typing import Any

from oslo_context import context
from oslo_log import log as logging

from blazar_sched.domain import exception
from blazar_sched.service.clients.keystone import Keystone

LOG = logging.getLogger(__name__)

# Where the WSGI environ has the Trustor of a request, if there is one.
TRUSTOR = 'blazar_sched.trustor'

Lease = dict[str, Any]


class Trustor:
    """A caller who can lend us their roles while they are here."""

    def __init__(
        self,
        keystone: Keystone,
        token: str,
        ctxt: context.RequestContext,
    ) -> None:
        self._keystone = keystone
        self._token = token
        self._context = ctxt

    def lend(self) -> str | None:
        """Return the id of a new trust; None if there can be none."""
        return self._keystone.create_trust(
            self._token,
            str(self._context.user_id),
            str(self._context.project_id),
            self._context.roles,
        )

    def take_back(self, trust_id: str | None) -> None:
        """Delete a trust, as far as that goes now."""
        try:
            self._keystone.delete_trust(trust_id, self._token)
        except exception.Unavailable as e:
            LOG.warning('Trust %s is left without a lease: %s', trust_id, e)


def lent(
    trustor: Trustor | None,
    create: Callable[[str | None], Lease],
    rehearse: Callable[[], Lease],
) -> Lease:
    """Return a lease that is lent the caller's roles.

    A request that is refused costs Keystone nothing: each trust that is
    deleted leaves a revocation there, which is looked at with every token.

    A trust that it does not have is deleted: if there is none, or if the
    request was made before. Also if nobody knows whether there is one: better
    a lease that its creator does not act in than a trust that nobody sees.

    :param create: asks the manager for the lease, by the id of its trust
    :param rehearse: asks whether there will be one, by a dry run
    """
    if trustor is None:
        return create(None)
    expected = rehearse()
    if expected['trust_id'] is not None:
        # The request was made before, and has its lease.
        return expected
    trust_id, used = trustor.lend(), None
    try:
        lease = create(trust_id)
        used = lease['trust_id']
        return lease
    finally:
        if used != trust_id:
            trustor.take_back(trust_id)
