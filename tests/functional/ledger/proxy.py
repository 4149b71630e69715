# SPDX-License-Identifier: Apache-2.0
"""Stands between a ledger and its database, and cuts a COMMIT's connection."""

import contextlib
import socket
import threading
import time

import sqlalchemy as sa

PORTS = {'mysql': 3306, 'postgresql': 5432}
# Seconds that a late COMMIT, or a late end of its connection, takes.
LATE = 0.3


def lose(client, server, commit):
    """The server never gets it."""


def lose_late(client, server, commit):
    """The same, but the server does not notice at once."""
    _hang_up(client)
    time.sleep(LATE)


def swallow(client, server, commit):
    """Nobody hears of anything any more, as when a network is cut in two."""
    time.sleep(20 * LATE)


def lose_answer(client, server, commit):
    """The server does it, and nobody hears of it."""
    _hang_up(client)
    server.sendall(commit)
    time.sleep(LATE)


def deliver_late(client, server, commit):
    """The server does it when the client has long given up."""
    _hang_up(client)
    time.sleep(LATE)
    server.sendall(commit)
    time.sleep(LATE)


def _hang_up(connection):
    # Also for a thread that waits for it, which close() alone would not.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _is_commit(data):
    # PostgreSQL's end with a NUL. It also says READ COMMITTED.
    return data.rstrip(b'\0').endswith(b'COMMIT')


class Proxy:
    """Passes everything on; once armed, one COMMIT goes the given way.

    :param way: does with (client, server, what the client sent) as it likes;
        both connections are closed then
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
