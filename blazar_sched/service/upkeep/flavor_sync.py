# SPDX-License-Identifier: Apache-2.0
"""Synchronization of the ledger's copy of Nova's flavors."""

from collections.abc import Iterable
from collections.abc import Mapping
import functools
from typing import Any

from blazar_sched.domain.flavor import Flavor
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import Tx


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

    def learn(self, reservations: Iterable[Mapping[str, Any]]) -> None:
        """Copy the flavors of requested reservations that have no copy yet.

        Nova is asked for no further flavors once it does not have one: the
        request is refused.

        :raises Unavailable: if Nova does not answer
        """
        for asked in reservations:
            flavor_id = asked.get('flavor_id')
            if not isinstance(flavor_id, str) or self._ledger.flavor(
                flavor_id
            ):
                continue
            new = self._nova.flavor(flavor_id)
            if new is None:
                return
            self._ledger.write(functools.partial(_add, new=new))


def _add(tx: Tx, new: Flavor) -> None:
    tx.put_flavors([*tx.flavors(), new])


def _by_id(flavors: list[Flavor]) -> dict[str, Flavor]:
    return {flavor.id: flavor for flavor in flavors}
