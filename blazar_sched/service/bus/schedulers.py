# SPDX-License-Identifier: Apache-2.0
"""Asks nova-scheduler's workers: see replica.wire and worker.listener.

Over the bus alone: no manager and no database is needed, and no worker waits
for anything. Whoever answers in time is heard.
"""

from collections.abc import Iterator
import queue
import socket
import time
from typing import Any
import uuid

import oslo_messaging

from blazar_sched.domain import exception
from blazar_sched.replica import wire
from blazar_sched.service.bus import rpc


class _EndPoint:
    target = oslo_messaging.Target(version=wire.RPC_VERSION)

    def __init__(self, question: str) -> None:
        self.answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._question = question

    def answer(
        self, ctxt: Any, question: str, worker: str, body: Any
    ) -> None:
        # Another's question is answered to all who ask at that time.
        if question == self._question:
            self.answers.put((worker, body))


def ask(
    bus: oslo_messaging.Transport, seconds: float, method: str, **what: Any
) -> list[tuple[str, Any]]:
    """Ask all workers; return what they have answered within some seconds.

    :param method: of wire, and `what` its arguments
    :returns: each worker's name and answer, in the order of the names
    :raises Unavailable: if the bus does not answer
    """
    question = str(uuid.uuid4())
    end_point = _EndPoint(question)
    server = rpc.Background(
        oslo_messaging.get_rpc_server(
            bus,
            # A queue by this name is left behind, so there is one a host.
            oslo_messaging.Target(
                exchange=wire.EXCHANGE,
                topic=wire.ANSWERS_TOPIC,
                server=socket.gethostname(),
            ),
            [end_point],
            executor='threading',
            access_policy=oslo_messaging.DefaultRPCAccessPolicy,
        )
    )
    client = oslo_messaging.get_rpc_client(
        bus,
        oslo_messaging.Target(
            exchange=wire.EXCHANGE,
            topic=wire.NEWS_TOPIC,
            version=wire.RPC_VERSION,
            fanout=True,
        ),
        retry=rpc.RETRIES,
    )
    server.start()
    try:
        _cast(client, method, question=question, **what)
        return sorted(_until(end_point.answers, seconds), key=lambda a: a[0])
    finally:
        server.stop()


def _cast(
    client: oslo_messaging.RPCClient, method: str, **what: Any
) -> None:
    try:
        client.cast({}, method, **what)
    except Exception as e:
        # Drivers let errors through that are of the libraries they use.
        raise exception.Unavailable(f'the bus does not answer: {e}') from e


def _until(
    answers: queue.SimpleQueue[tuple[str, Any]], seconds: float
) -> Iterator[tuple[str, Any]]:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        try:
            yield answers.get(timeout=left)
        except queue.Empty:
            return
