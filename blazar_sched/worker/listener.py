# SPDX-License-Identifier: Apache-2.0
"""Hears what is told or asked of all workers; see replica.wire.

News are only a wake-up: what is lost is made up for by the next poll, and
what is heard is not believed but asked for. Questions are of people: nothing
that decides waits for an answer.
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
# How often a bus that is away is tried again before a message is given up.
RETRIES = 1

Hear = Callable[[str, int], object]
# Of an instance, by its uuid, and of one host or all: (uuid, host name).
Explain = Callable[[str, str | None], list[dict[str, Any]]]
Report = Callable[[], dict[str, Any]]


class _EndPoint:
    target = oslo_messaging.Target(version=wire.RPC_VERSION)

    def __init__(
        self,
        hear: Hear,
        explain: Explain,
        report: Report,
        answer: Callable[[str, Any], object],
    ) -> None:
        self._hear = hear
        self._explain = explain
        self._report = report
        self._answer = answer
        # One question at a time: a worker has other things to do.
        self._lock = threading.Lock()

    def newest(self, ctxt: Any, revision: int, ledger: str) -> None:
        self._hear(ledger, revision)

    def explain(
        self, ctxt: Any, question: str, instance_uuid: str, host: str | None
    ) -> None:
        with self._lock:
            decisions = self._explain(instance_uuid, host)
        # Most know nothing of it.
        if decisions:
            self._answer(question, decisions)

    def report(self, ctxt: Any, question: str) -> None:
        self._answer(question, self._report())


class Listener:
    """Calls ``hear(ledger, revision)`` when a commit is told of.

    Whoever asks is sent what `explain` and `report` return, under the name
    `worker`. Once begun, the driver of the bus connects again by itself. To
    begin may take until there is a bus, so that has a thread of its own.
    """

    def __init__(
        self, worker: str, hear: Hear, explain: Explain, report: Report
    ) -> None:
        self._worker = worker
        self._end_point = _EndPoint(hear, explain, report, self._answer)
        self._client: Any = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, transport: oslo_messaging.Transport) -> None:
        """Begin, not waiting for it."""
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(
                exchange=wire.EXCHANGE,
                topic=wire.ANSWERS_TOPIC,
                version=wire.RPC_VERSION,
                fanout=True,
            ),
            retry=RETRIES,
        )
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

    def _answer(self, question: str, body: Any) -> None:
        self._client.cast(
            {}, wire.ANSWER_METHOD, question=question, worker=self._worker,
            body=body,
        )

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
            access_policy=oslo_messaging.DefaultRPCAccessPolicy,
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
