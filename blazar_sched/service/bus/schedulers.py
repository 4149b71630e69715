# SPDX-License-Identifier: Apache-2.0
"""Queries of nova-scheduler's workers; see replica.wire, worker.listener.

Queries use the bus only: no manager and no database is needed, and no worker
waits for anything. All answers that arrive in time are returned.
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

    def answer(self, ctxt: Any, question: str, worker: str, body: Any) -> None:
        # Answers to other questions reach all processes that ask then.
        if question == self._question:
            self.answers.put((worker, body))


def query(
    bus: oslo_messaging.Transport, seconds: float, method: str, **what: Any
) -> list[tuple[str, Any]]:
    """Query all workers and return their answers within some seconds.

    :param method: a method of replica.wire, with `what` as its arguments;
        managers and APIs answer REPORT_METHOD, too
    :returns: each process's name and answer, sorted by name
    :raises Unavailable: if the bus does not answer
    """
    question = str(uuid.uuid4())
    end_point = _EndPoint(question)
    server = rpc.Background(
        oslo_messaging.get_rpc_server(
            bus,
            # The queue of this name is left behind, so the name is the same
            # for all queries from a host.
            oslo_messaging.Target(
                exchange=wire.EXCHANGE, topic=wire.ANSWERS_TOPIC,
                server=socket.gethostname(),
            ),
            [end_point],
            executor='threading',
            access_policy=oslo_messaging.DefaultRPCAccessPolicy,
        )
    )
    topics = [wire.NEWS_TOPIC]
    if method == wire.REPORT_METHOD:
        topics += wire.TOPIC, wire.API_TOPIC
    server.start()
    try:
        for topic in topics:
            client = oslo_messaging.get_rpc_client(
                bus,
                oslo_messaging.Target(
                    exchange=wire.EXCHANGE, topic=topic,
                    version=wire.RPC_VERSION, fanout=True,
                ),
                retry=rpc.RETRIES,
            )
            _cast(client, method, question=question, **what)
        return sorted(_until(end_point.answers, seconds), key=lambda a: a[0])
    finally:
        server.stop()


def _cast(client: oslo_messaging.RPCClient, method: str, **what: Any) -> None:
    try:
        client.cast({}, method, **what)
    except Exception as e:
        # Drivers let errors of the libraries that they use through.
        raise exception.Unavailable(
            f'the message bus is unreachable: {e}'
        ) from e


def _until(
    answers: queue.SimpleQueue[tuple[str, Any]], seconds: float
) -> Iterator[tuple[str, Any]]:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        try:
            yield answers.get(timeout=left)
        except queue.Empty:
            return
