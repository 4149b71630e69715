# SPDX-License-Identifier: Apache-2.0
"""The API over real sockets."""

import contextlib
import http.client
import json
import logging
import resource
import socket
import threading
import time
import types

import pytest
from waitress import channel

from blazar_sched.service.api import server

LIST = b'GET /v1/leases HTTP/1.0\r\nX-Auth-Token: admin\r\n\r\n'
# The number of connections on which no whole request is sent.
IDLE = 300
# The content sent on them: nothing, half a header, half a body.
HALVES = (
    b'', b'GET / HTTP/1.1\r\nX:',
    b'POST /v1/leases HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{',
)


@pytest.fixture
def running(conf, manager):
    conf.set_override('port', 0, 'api')
    manager.answers['list_leases'] = []
    api = server.serve(conf, manager)
    yield api
    api.stop()


def raw(port, request):
    """Send bytes; return the status and the body of the response."""
    with socket.create_connection(('127.0.0.1', port), timeout=10) as peer:
        peer.sendall(request)
        answer = http.client.HTTPResponse(peer)
        answer.begin()
        return answer.status, answer.read()


def test_server_listens_on_a_free_port(running):
    assert running.port != 0
    connection = http.client.HTTPConnection('127.0.0.1', running.port)
    connection.request('GET', '/v1/leases', headers={'X-Auth-Token': 'admin'})
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
            return {'items': [], 'next': None}

    api = server.serve(conf, Slow())
    answers = []
    client = threading.Thread(
        target=lambda: answers.append(raw(api.port, LIST))
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


def test_noauth_is_warned_of(conf, manager, caplog):
    conf.set_override('port', 0, 'api')
    server.serve(conf, manager).stop()
    [warning] = [
        r.getMessage() for r in caplog.records if r.levelname == 'WARNING'
    ]
    assert 'noauth' in warning


@pytest.mark.parametrize('trusted, host', [(True, 'proxy'), (False, 'here')])
def test_links_have_the_name_of_a_proxy_that_is_believed(
    conf, manager, trusted, host
):
    conf.set_override('port', 0, 'api')
    conf.set_override('auth_strategy', 'keystone', 'api')
    api = server.serve(conf, manager)
    conf.set_override(
        'enable_proxy_headers_parsing', trusted, 'oslo_middleware'
    )
    _, body = raw(
        api.port,
        b'GET / HTTP/1.0\r\nHost: here\r\nX-Forwarded-Host: proxy\r\n\r\n',
    )
    api.stop()
    [version] = json.loads(body)['versions']
    assert version['links'][0]['href'] == f'http://{host}/v1'


def test_a_loopback_name_will_do(conf, manager):
    conf.set_override('port', 0, 'api')
    conf.set_override('host', 'localhost', 'api')
    server.serve(conf, manager).stop()


def test_a_port_that_is_taken_is_said_so(conf, manager, running):
    conf.set_override('port', running.port, 'api')
    with pytest.raises(OSError, match='in use'):
        server.serve(conf, manager)


@pytest.mark.parametrize('status, request_', [
    (400, b'garbage\r\n\r\n'),
    (400, b'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n'),
    (400, b'GET / HTTP/1.1\r\nbad header\r\n\r\n'),
    (413, b'POST /v1/leases HTTP/1.1\r\nHost: a\r\n'
          b'Content-Length: 99999999999\r\n\r\n'),
    (413, b'POST /v1/leases HTTP/1.1\r\nHost: a\r\n'
          b'Transfer-Encoding: chunked\r\n\r\n'
          b'20000\r\n' + b' ' * 0x20000 + b'\r\n0\r\n\r\n'),
    (431, b'GET / HTTP/1.1\r\nX: ' + b'x' * 300000 + b'\r\n\r\n'),
    (400, b'POST /v1/leases HTTP/1.1\r\nHost: localhost\r\n'
          b'X-Auth-Token: admin\r\n'
          b'Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n'),
])
def test_what_the_server_refuses_is_in_the_envelope(running, status, request_):
    said, body = raw(running.port, request_)
    assert said == status
    assert set(json.loads(body)) == {
        'error_code', 'error_message', 'error_name'
    }
    assert json.loads(body)['error_code'] == status


@pytest.fixture
def peers():
    """peers(port, count) opens connections with half a request at most."""
    with contextlib.ExitStack() as stack:

        def peers(port, count):
            opened = [
                stack.enter_context(
                    socket.create_connection(('127.0.0.1', port), timeout=10)
                )
                for _ in range(count)
            ]
            for number, peer in enumerate(opened):
                peer.sendall(HALVES[number % len(HALVES)])
            return opened

        yield peers


def test_idle_connections_stop_nobody(running, peers):
    peers(running.port, IDLE)
    for _ in range(3):
        assert raw(running.port, LIST) == (200, b'{"leases": []}')


def test_with_a_low_limit_idle_connections_stop_the_api(
    conf, manager, peers, caplog
):
    """The control of the test above."""
    conf.set_override('port', 0, 'api')
    conf.set_override('max_connections', 100, 'api')
    said = threading.Event()

    def listen(record):
        if 'connection limit' in record.getMessage():
            said.set()
        return True

    with caplog.at_level(logging.WARNING), caplog.filtering(listen):
        api = server.serve(conf, manager)
        idle = peers(api.port, IDLE)
        assert said.wait(10)
        with socket.create_connection(
            ('127.0.0.1', api.port), timeout=0.2
        ) as peer:
            peer.sendall(b'GET / HTTP/1.0\r\n\r\n')
            with pytest.raises(TimeoutError):
                peer.recv(1)
            for one in idle:
                one.close()
            peer.settimeout(10)
            assert peer.recv(1)
    api.stop()


@pytest.fixture
def clock(monkeypatch):
    """The server's clock, in seconds: `clock.now` can be set."""
    clock = types.SimpleNamespace(now=time.time())
    clock.time = lambda: clock.now
    monkeypatch.setattr('waitress.channel.time', clock)
    monkeypatch.setattr('waitress.server.time', clock)
    return clock


@pytest.mark.parametrize('trickling', [server._Channel, channel.HTTPChannel])
@pytest.mark.parametrize('half', HALVES)
def test_a_connection_without_a_whole_request_is_closed(
    running, clock, half, trickling, monkeypatch
):
    """A slow client's too; the limit is ours, not that of waitress."""
    monkeypatch.setattr(running._server, 'channel_class', trickling)
    with socket.create_connection(
        ('127.0.0.1', running.port), timeout=10
    ) as peer:
        peer.sendall(half or b'G')
        # A client with a later response knows that the bytes were read.
        raw(running.port, b'GET / HTTP/1.0\r\n\r\n')
        clock.now += 15
        peer.sendall(b'E')
        raw(running.port, b'GET / HTTP/1.0\r\n\r\n')
        clock.now += 10
        raw(running.port, b'GET / HTTP/1.0\r\n\r\n')
        if trickling is server._Channel:
            assert peer.recv(1) == b''
        else:
            [kept] = [
                c for c in running._server.active_channels.values()
                if c.addr == peer.getsockname()
            ]
            assert not kept.will_close


def test_a_request_in_pieces_is_answered(running, clock):
    with socket.create_connection(
        ('127.0.0.1', running.port), timeout=10
    ) as peer:
        for piece in (LIST[:1], LIST[1:9], LIST[9:]):
            peer.sendall(piece)
            clock.now += 6
        answer = http.client.HTTPResponse(peer)
        answer.begin()
        assert answer.status == 200


@pytest.mark.parametrize('limits, left', [
    ((1024, 4096), 2000),
    ((1024, resource.RLIM_INFINITY), 2000),
    ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 2000),
    ((1024, 1024), 1024 - server._OTHER_FILES),
    ((64, 64), 1),
])
def test_connections_are_as_many_as_files(monkeypatch, limits, left):
    limited = list(limits)
    monkeypatch.setattr(resource, 'getrlimit', lambda what: tuple(limited))
    monkeypatch.setattr(
        resource, 'setrlimit',
        lambda what, limits: limited.__setitem__(slice(None), limits),
    )
    assert server._connections(2000) == left
    assert limited[1] == limits[1]
