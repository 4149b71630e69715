# SPDX-License-Identifier: Apache-2.0
"""A listener for news and questions to all workers; see replica.wire.

News are only a wake-up: the next poll makes up for lost news, and the content
of news is not used but pulled from the ledger. Instances that other workers
have placed count until the ledger has them: see worker.announcer. Questions
come from people: no decision waits for an answer.
"""

from collections.abc import Callable
import socket
import threading
from typing import Any

from oslo_log import log as logging
import oslo_messaging

from blazar_sched.domain.instance import Instance
from blazar_sched.replica import wire
from blazar_sched.worker.decision import Explanation

LOG = logging.getLogger(__name__)

# Seconds between two attempts to start.
PAUSE = 10.0
STOP_TIMEOUT = 2.0

Hear = Callable[[str, int], object]
HearPlaced = Callable[[Instance], object]
# Explains an instance, by uuid, on one host or all: (uuid, host name).
Explain = Callable[[str, str | None], list[Explanation]]
Report = Callable[[], dict[str, Any]]


class _EndPoint:
    target = oslo_messaging.Target(version=wire.RPC_VERSION)

    def __init__(
        self, worker: str, hear: Hear, hear_placed: HearPlaced,
        explain: Explain, report: Report,
        answer: Callable[[str, object], object],
    ) -> None:
        self._worker = worker
        self._hear = hear
        self._hear_placed = hear_placed
        self._explain = explain
        self._report = report
        self._answer = answer
        # One question at a time, as a worker has other work to do.
        self._lock = threading.Lock()

    def newest(self, ctxt: Any, revision: int, ledger: str) -> None:
        self._hear(ledger, revision)

    def placed(self, ctxt: Any, worker: str, page: Any) -> None:
        # This worker's own announcement may be older than its last decision.
        if worker == self._worker:
            return
        try:
            instance = wire.parse_instance(page)
        except ValueError as e:
            # During an upgrade, workers of two versions run.
            LOG.debug('Ignoring an instance placed by %s: %s', worker, e)
        else:
            self._hear_placed(instance)

    def explain(
        self, ctxt: Any, question: str, instance_uuid: str, host: str | None
    ) -> None:
        with self._lock:
            decisions = self._explain(instance_uuid, host)
        # Most workers have no decisions about the instance.
        if decisions:
            self._answer(question, decisions)

    def report(self, ctxt: Any, question: str) -> None:
        self._answer(question, self._report())


class Listener:
    """A listener that calls ``hear(ledger, revision)`` at news of a commit.

    `hear_placed` is called with an instance that another worker has placed.
    A question is answered with the results of `explain` and `report`, under
    the name `worker`. Once started, the driver of the bus reconnects by
    itself. The start may wait until there is a bus, so the start has a thread
    of its own.
    """

    def __init__(
        self, worker: str, hear: Hear, hear_placed: HearPlaced,
        explain: Explain, report: Report,
    ) -> None:
        self._worker = worker
        self._end_point = _EndPoint(
            worker, hear, hear_placed, explain, report, self._answer
        )
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, transport: oslo_messaging.Transport) -> None:
        """Start to listen, without waiting for the bus."""
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(
                exchange=wire.EXCHANGE, topic=wire.ANSWERS_TOPIC,
                version=wire.RPC_VERSION, fanout=True,
            ),
            retry=wire.RETRIES,
        )
        self._thread = threading.Thread(
            target=self._run, args=(transport,), daemon=True,
            name='blazar-sched-listener',
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening; a thread that waits for the bus is not awaited."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT)

    def _answer(self, question: str, body: object) -> None:
        self._client.cast(
            {}, wire.ANSWER_METHOD, question=question, worker=self._worker,
            body=body,
        )

    def _run(self, transport: oslo_messaging.Transport) -> None:
        server = oslo_messaging.get_rpc_server(
            transport,
            # All workers of a machine share one server name, so that they
            # share one queue of that name, which is not used. A fanout
            # reaches each worker anyway.
            oslo_messaging.Target(
                exchange=wire.EXCHANGE, topic=wire.NEWS_TOPIC,
                server=socket.gethostname(),
            ),
            [self._end_point],
            access_policy=oslo_messaging.DefaultRPCAccessPolicy,
        )
        while not self._stopping.is_set():
            try:
                server.start()
            except Exception as e:
                LOG.debug('Could not listen for revisions yet: %s', e)
                self._stopping.wait(PAUSE)
            else:
                self._stopping.wait()
                server.stop()
                server.wait()
