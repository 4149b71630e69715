# SPDX-License-Identifier: Apache-2.0
"""Queries to the schedulers on a real broker: each gets its responses."""

from concurrent import futures
import contextlib

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.replica import wire
from blazar_sched.service.bus import rpc
from blazar_sched.service.bus import schedulers
from blazar_sched.worker import listener

# Seconds to wait for responses, and the number of attempts: a worker hears
# nothing until it has its queue.
WAIT = 3
TIMES = 20


@pytest.fixture
def transport(bus):
    """Open the bus as another process would."""
    def transport():
        conf = service_conf.load(files=[])
        conf.set_override('transport_url', bus)
        return rpc.transport(conf)

    return transport


@pytest.fixture
def workers(transport):
    """Two workers, each with a decision on the server that is named after it.
    """
    def explain(name):
        return lambda uuid, host: [
            {'server': uuid, 'host': host}
        ] if uuid == name else []

    with contextlib.ExitStack() as stack:
        for name in ('one', 'two'):
            each = listener.Listener(
                name, lambda *news: None, lambda placed: None, explain(name),
                lambda name=name: {'revision': len(name)},
            )
            each.start(transport())
            stack.callback(each.stop)
        yield


def all_of_them(bus):
    """Repeat the query until both workers respond."""
    for _ in range(TIMES):
        found = schedulers.query(bus, WAIT, wire.REPORT_METHOD)
        if len(found) == 2:
            return found
    raise AssertionError(found)


def test_all_workers_answer(transport, workers):
    assert all_of_them(transport()) == [
        ('one', {'revision': 3}), ('two', {'revision': 3})
    ]


def test_two_who_ask_at_once_have_each_their_own_answer(transport, workers):
    all_of_them(transport())

    def ask(server):
        return schedulers.query(
            transport(), WAIT, wire.EXPLAIN_METHOD, instance_uuid=server,
            host='h1',
        )

    with futures.ThreadPoolExecutor(2) as pool:
        one, two = pool.map(ask, ('one', 'two'))

    for name, found in (('one', one), ('two', two)):
        assert found == [(name, [{'server': name, 'host': 'h1'}])]
