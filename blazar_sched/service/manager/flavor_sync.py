# SPDX-License-Identifier: Apache-2.0
"""Synchronization of the ledger's copy of Nova's flavors."""

from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.ledger.ledger import Ledger


class Flavors:
    """The ledger's copies of Nova's flavors."""

    def __init__(self, ledger: Ledger, nova: Nova) -> None:
        self._ledger = ledger
        self._nova = nova

    def sync(self) -> None:
        """Bring the copies of all flavors up to date, in at most one commit.

        :raises Unavailable: if Nova does not answer
        """
        new = self._nova.flavors()
        if _by_id(new) != _by_id(self._ledger.flavors()):
            self._ledger.write(lambda tx: tx.put_flavors(new))


def _by_id(flavors: list[Flavor]) -> dict[str, Flavor]:
    return {flavor.id: flavor for flavor in flavors}
