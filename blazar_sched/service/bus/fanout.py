# SPDX-License-Identifier: Apache-2.0
"""Tells replicas that there is a newer revision, so that they pull at once.

A wake-up, no data: one that is lost is made up for by the next poll. So a
commit never waits for the broker, and only the newest revision is told.
"""

from collections.abc import Callable

from oslo_log import log
import oslo_messaging

from blazar_sched.replica import wire
from blazar_sched.service import loop
from blazar_sched.service.bus import rpc

LOG = log.getLogger(__name__)

# Seconds between two steps where there is nothing to tell.
IDLE = 3600.0


class Herald(loop.Looped):
    """Casts the newest revision, in a thread of its own.

    :param bus: what `rpc.transport` returned
    :param ledger: returns the ledger's uuid
    """

    def __init__(
        self, bus: oslo_messaging.Transport, ledger: Callable[[], str]
    ) -> None:
        target = oslo_messaging.Target(
            exchange=rpc.EXCHANGE,
            topic=wire.NEWS_TOPIC,
            version=rpc.VERSION,
            fanout=True,
        )
        self._client = oslo_messaging.get_rpc_client(
            bus, target, retry=rpc.RETRIES
        )
        self._ledger = ledger
        self._newest = self._told = 0
        self._loop = loop.Loop('herald', self.step)

    def tell(self, revision: int) -> None:
        """Have a revision told soon, unless a newer one is."""
        self._newest = max(self._newest, revision)
        self._loop.poke()

    def step(self) -> float:
        """Tell what was not told; what cannot be is left to the poll."""
        newest = self._newest
        if newest > self._told:
            self._told = newest
            try:
                self._client.cast(
                    {}, wire.NEWS_METHOD, revision=newest,
                    ledger=self._ledger(),
                )
            except oslo_messaging.MessagingException as e:
                LOG.warning('Revision %d could not be told: %s', newest, e)
        return IDLE
