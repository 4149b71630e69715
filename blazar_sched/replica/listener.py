# SPDX-License-Identifier: Apache-2.0
"""Hears of new revisions; see replica.wire.

Only a wake-up: what is lost is made up for by the next poll, and what is
heard is not believed but asked for.
"""

from collections.abc import Callable
import socket
import threading
from typing import Any

from oslo_log import log as logging
import oslo_messaging

from blazar_sched.replica import wire

LOG = logging.getLogger(__name__)

# Seconds between two tries to begin.
PAUSE = 10.0
STOP_TIMEOUT = 2.0


class _EndPoint:
    target = oslo_messaging.Target(version=wire.RPC_VERSION)

    def __init__(self, hear: Callable[[str, int], object]) -> None:
        self._hear = hear

    def newest(self, ctxt: Any, revision: int, ledger: str) -> None:
        self._hear(ledger, revision)


class Listener:
    """Calls ``hear(ledger, revision)`` when a commit is told of.

    Once begun, the driver of the bus connects again by itself. To begin may
    take until there is a bus, so that has a thread of its own.
    """

    def __init__(self, hear: Callable[[str, int], object]) -> None:
        self._end_point = _EndPoint(hear)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, transport: oslo_messaging.Transport) -> None:
        """Begin, not waiting for it."""
        self._thread = threading.Thread(
            target=self._run, args=(transport,), daemon=True,
            name='blazar-sched-listener',
        )
        self._thread.start()

    def stop(self) -> None:
        """End it; whoever still waits for the bus is not waited for."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT)

    def _run(self, transport: oslo_messaging.Transport) -> None:
        server = oslo_messaging.get_rpc_server(
            transport,
            # All workers of a machine have one name, so that the queue by
            # that name, which nobody uses, is one: a fanout reaches each.
            oslo_messaging.Target(
                exchange=wire.EXCHANGE,
                topic=wire.NEWS_TOPIC,
                server=socket.gethostname(),
            ),
            [self._end_point],
        )
        while not self._stopping.is_set():
            try:
                server.start()
            except Exception as e:
                LOG.debug('No news can be heard yet: %s', e)
                self._stopping.wait(PAUSE)
            else:
                self._stopping.wait()
                server.stop()
                server.wait()
