# SPDX-License-Identifier: Apache-2.0
"""Announcements of the instances that a worker has placed.

Between the decision of a worker and the record of the instance in the feed,
another worker may give the same room away, and a lease may be placed on it.
Therefore a placed instance is announced at once: to the other workers, which
count the instance as pending, and to a manager, which books the record of the
instance with its relocation path. An announcement may be lost: the manager
learns of the instance from Nova anyway. So the scheduler never waits for the
bus, and announcements are dropped while the bus is away.
"""

import queue
import threading

from oslo_log import log as logging
import oslo_messaging

from blazar_sched.domain.instance import Instance
from blazar_sched.replica import limited_log
from blazar_sched.replica import wire

LOG = logging.getLogger(__name__)

# The most announcements that wait for the bus; others are dropped.
MAX_WAITING = 1000
STOP_TIMEOUT = 2.0


class Announcer:
    """A thread that casts the placed instances of a worker.

    :param worker: the name of the worker
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        # None ends the thread.
        self._placed: queue.Queue[tuple[Instance, int] | None] = queue.Queue(
            MAX_WAITING
        )
        self._thread: threading.Thread | None = None
        self._failure = limited_log.LimitedLog(LOG)

    def start(self, transport: oslo_messaging.Transport) -> None:
        """Start to cast, without waiting for the bus."""
        self._workers = _client(transport, wire.NEWS_TOPIC, fanout=True)
        self._manager = _client(transport, wire.TOPIC, fanout=False)
        self._thread = threading.Thread(
            target=self._run, name='blazar-sched-announcer', daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop; a cast that waits for the bus is not awaited."""
        if self._thread is not None:
            self._put(None)
            self._thread.join(STOP_TIMEOUT)

    def announce(self, instance: Instance, now: int) -> None:
        """Announce an instance soon; do nothing before `start`.

        :param now: epoch seconds
        """
        if self._thread is not None:
            self._put((instance, now))

    def _put(self, item: tuple[Instance, int] | None) -> None:
        try:
            self._placed.put_nowait(item)
        except queue.Full:
            self._failure.report(
                'An instance that was placed is not announced: the message '
                'bus is away'
            )

    def _run(self) -> None:
        while (item := self._placed.get()) is not None:
            try:
                self._cast(*item)
            except Exception as e:
                # Drivers let errors of the libraries that they use through.
                self._failure.report(
                    'An instance that was placed is not announced: '
                    f'{type(e).__name__}: {e}'
                )

    def _cast(self, instance: Instance, placed_at: int) -> None:
        page = wire.instance_page(instance)
        self._workers.cast(
            {}, wire.PLACED_METHOD, worker=self._worker, page=page
        )
        self._manager.cast(
            {}, wire.BOOK_METHOD, page=page, placed_at=placed_at
        )


def _client(
    transport: oslo_messaging.Transport, topic: str, fanout: bool
) -> oslo_messaging.RPCClient:
    return oslo_messaging.get_rpc_client(
        transport,
        oslo_messaging.Target(
            exchange=wire.EXCHANGE, topic=topic, version=wire.RPC_VERSION,
            fanout=fanout,
        ),
        retry=wire.RETRIES,
    )
