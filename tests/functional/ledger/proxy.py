# SPDX-License-Identifier: Apache-2.0
"""A proxy between a ledger and its database that cuts a COMMIT."""

import contextlib
import socket
import threading
import time

import sqlalchemy as sa

PORTS = {'mysql': 3306, 'postgresql': 5432}
# Seconds of delay of a late COMMIT, or of a late end of its connection.
LATE = 0.3


def lose(client, server, commit):
    """The server never gets the COMMIT."""


def lose_late(client, server, commit):
    """The server gets no COMMIT, and does not notice the end at once."""
    _hang_up(client)
    time.sleep(LATE)


def swallow(client, server, commit):
    """All later packets are dropped, as when a network is partitioned."""
    time.sleep(20 * LATE)


def lose_answer(client, server, commit):
    """The server commits, and the client gets no response."""
    _hang_up(client)
    server.sendall(commit)
    time.sleep(LATE)


def deliver_late(client, server, commit):
    """The server commits long after the client has given up."""
    _hang_up(client)
    time.sleep(LATE)
    server.sendall(commit)
    time.sleep(LATE)


def _hang_up(connection):
    # shutdown() also wakes a thread that waits for the socket; close() does
    # not.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _is_commit(data):
    # PostgreSQL's COMMIT ends with a NUL; READ COMMITTED is another text.
    return data.rstrip(b'\0').endswith(b'COMMIT')


class Proxy:
    """A proxy that forwards traffic; once armed, it cuts one COMMIT.

    :param way: called with (client, server, the client's data) in place of
        forwarding; both connections are closed afterwards
    """

    def __init__(self, url, way):
        target = sa.make_url(url)
        self._target = (
            target.host,
            target.port or PORTS[target.get_backend_name()],
        )
        self._way = way
        self._armed = threading.Event()
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.url = target.set(
            host='127.0.0.1', port=self._listener.getsockname()[1]
        ).render_as_string(hide_password=False)
        threading.Thread(target=self._listen, daemon=True).start()

    def arm(self):
        self._armed.set()

    def close(self):
        _hang_up(self._listener)
        self._listener.close()

    def _listen(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for function in (self._up, self._down):
                    threading.Thread(
                        target=function, args=(client, server), daemon=True
                    ).start()

    def _up(self, client, server):
        with client, server, contextlib.suppress(OSError):
            while data := client.recv(65536):
                if _is_commit(data) and self._armed.is_set():
                    self._armed.clear()
                    self._way(client, server, data)
                    break
                server.sendall(data)
            _hang_up(client)
            _hang_up(server)

    def _down(self, client, server):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
