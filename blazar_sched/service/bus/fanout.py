# SPDX-License-Identifier: Apache-2.0
"""Fanout of new revisions to replicas, so that replicas pull at once.

A fanout message is a wake-up without data: the next poll makes up for a lost
message. So a commit never waits for the broker, and only the newest revision
is sent.
"""

from collections.abc import Callable

import oslo_messaging

from blazar_sched.domain import exception
from blazar_sched.replica import limited_log
from blazar_sched.replica import wire
from blazar_sched.service import loop
from blazar_sched.service.bus import rpc


class Fanout(loop.Looped):
    """A loop that casts the newest revision, in a separate thread.

    :param bus: the transport that `rpc.transport` returned
    :param ledger: returns the ledger's UUID
    """

    def __init__(
        self, bus: oslo_messaging.Transport, ledger: Callable[[], str]
    ) -> None:
        target = oslo_messaging.Target(
            exchange=rpc.EXCHANGE, topic=wire.NEWS_TOPIC,
            version=wire.RPC_VERSION, fanout=True,
        )
        self._client = oslo_messaging.get_rpc_client(
            bus, target, retry=rpc.RETRIES
        )
        self._ledger = ledger
        self._newest = self._told = 0
        self._loop = loop.Loop('fanout', self.step)
        self._away = limited_log.LimitedLog(loop.LOG)

    def announce(self, revision: int) -> None:
        """Schedule the cast of a revision, unless a newer one is pending."""
        self._newest = max(self._newest, revision)
        self._loop.wake()

    def step(self) -> float:
        """Cast the newest revision; a failed cast is left to the poll."""
        newest = self._newest
        if newest > self._told:
            self._told = newest
            try:
                self._client.cast(
                    {}, wire.NEWS_METHOD, revision=newest,
                    ledger=self._ledger(),
                )
            except oslo_messaging.MessagingException as e:
                self._away.report_away('fanout', exception.Unavailable(
                    f'revision {newest} was not cast', detail=str(e)
                ))
        return loop.IDLE
