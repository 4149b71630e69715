# SPDX-License-Identifier: Apache-2.0
"""Deletion of the Keystone trusts of leases that are over.

A trust has no expiry, so a trust that is left lends its creator's roles for
ever. The commit that ends a lease discards the trust of the lease: the ledger
records the trust until Keystone has deleted it.
"""

from collections.abc import Callable

from blazar_sched.domain import exception
from blazar_sched.replica import limited_log
from blazar_sched.service import loop
from blazar_sched.service.clients.keystone import Keystone
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.metrics import Metrics

# The most trusts that are deleted in one step, and the seconds between two
# steps.
MAX_TRUSTS = 100
PAUSE = 60.0


class Trusts(loop.Looped):
    """The trusts of leases that are over."""

    def __init__(
        self, ledger: Ledger, keystone: Keystone, clock: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        self._ledger = ledger
        self._keystone = keystone
        self._clock = clock
        self._objects = loop.Objects[str]('trust deletion', metrics)
        # The last trust of the step before: trusts that Keystone goes on to
        # refuse do not keep the others from their turn.
        self._last = ''
        self._loop = loop.Loop('trust deletion', self.step, lambda: PAUSE)
        self._away = limited_log.LimitedLog(loop.LOG)

    def step(self) -> None:
        """Delete discarded trusts, at most MAX_TRUSTS of them.

        :raises Unavailable: after each trust was tried, if Keystone has not
            deleted one of the trusts
        """
        found = self._ledger.discarded_trusts(MAX_TRUSTS, self._last)
        self._last = found[-1] if len(found) == MAX_TRUSTS else ''
        self._objects.each(
            ((id_, id_) for id_ in found), self._delete, self._clock()
        )

    def delete(self, trust_id: str | None) -> None:
        """Delete a discarded trust now or, if that fails, in a later step."""
        if trust_id is None:
            return
        try:
            self._delete(trust_id)
        except exception.Unavailable as e:
            self._away.report_away('trust deletion', e)

    def _delete(self, trust_id: str) -> None:
        self._keystone.delete_trust(trust_id)
        self._ledger.write(lambda tx: tx.forget_trust(trust_id))
