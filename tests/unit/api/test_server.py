# SPDX-License-Identifier: Apache-2.0
"""The API over real sockets."""

import http.client
import json
import socket
import threading

import pytest

from blazar_sched.service.api import server


@pytest.fixture
def running(conf, manager):
    conf.set_override('port', 0, 'api')
    manager.answers['list_leases'] = []
    api = server.serve(conf, manager)
    yield api
    api.stop()


def raw(port, request):
    """Send bytes; return the status and the body of the answer."""
    with socket.create_connection(('127.0.0.1', port), timeout=10) as peer:
        peer.sendall(request)
        answer = http.client.HTTPResponse(peer)
        answer.begin()
        return answer.status, answer.read()


def test_it_listens_on_a_free_port(running):
    assert running.port != 0
    connection = http.client.HTTPConnection('127.0.0.1', running.port)
    connection.request('GET', '/v1/leases')
    answer = connection.getresponse()
    assert answer.status == 200
    assert json.loads(answer.read()) == {'leases': []}
    connection.close()


def test_stop_closes_the_port_and_ends_the_threads(conf, manager):
    conf.set_override('port', 0, 'api')
    before = set(threading.enumerate())
    api = server.serve(conf, manager)
    raw(api.port, b'GET / HTTP/1.0\r\n\r\n')
    api.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('127.0.0.1', api.port), timeout=10)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


def test_stop_lets_a_request_finish(conf, manager):
    conf.set_override('port', 0, 'api')
    asked, may_answer = threading.Event(), threading.Event()

    class Slow:
        def call(self, ctxt, method, **kwargs):
            asked.set()
            may_answer.wait(10)
            return []

    api = server.serve(conf, Slow())
    answers = []
    client = threading.Thread(
        target=lambda: answers.append(
            raw(api.port, b'GET /v1/leases HTTP/1.0\r\n\r\n')
        )
    )
    client.start()
    assert asked.wait(10)
    stopper = threading.Thread(target=api.stop)
    stopper.start()
    may_answer.set()
    stopper.join(10)
    client.join(10)
    assert answers == [(200, b'{"leases": []}')]


@pytest.mark.parametrize('host', ['0.0.0.0', '::'])
def test_noauth_is_for_loopback_only(conf, manager, host):
    conf.set_override('port', 0, 'api')
    conf.set_override('host', host, 'api')
    with pytest.raises(server.UnsafeAddress, match='noauth'):
        server.serve(conf, manager)


def test_a_loopback_name_will_do(conf, manager):
    conf.set_override('port', 0, 'api')
    conf.set_override('host', 'localhost', 'api')
    server.serve(conf, manager).stop()


def test_a_port_that_is_taken_is_said_so(conf, manager, running):
    conf.set_override('port', running.port, 'api')
    with pytest.raises(OSError, match='in use'):
        server.serve(conf, manager)


@pytest.mark.parametrize(
    'status, request_',
    [
        (400, b'garbage\r\n\r\n'),
        (400, b'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n'),
        (400, b'GET / HTTP/1.1\r\nbad header\r\n\r\n'),
        (413, b'POST /v1/leases HTTP/1.1\r\nHost: a\r\n'
              b'Content-Length: 99999999999\r\n\r\n'),
        (413, b'POST /v1/leases HTTP/1.1\r\nHost: a\r\n'
              b'Transfer-Encoding: chunked\r\n\r\n'
              b'20000\r\n' + b' ' * 0x20000 + b'\r\n0\r\n\r\n'),
        (431, b'GET / HTTP/1.1\r\nX: ' + b'x' * 300000 + b'\r\n\r\n'),
        (400, b'POST /v1/leases HTTP/1.1\r\nHost: a\r\n'
              b'Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n'),
    ],
)
def test_what_the_server_refuses_is_in_the_envelope(
    running, status, request_
):
    said, body = raw(running.port, request_)
    assert said == status
    assert set(json.loads(body)) == {
        'error_code', 'error_message', 'error_name'
    }
    assert json.loads(body)['error_code'] == status
