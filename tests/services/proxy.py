# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that can cut, refuse and drop traffic."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import socket
import threading

import sqlalchemy as sa

# What is done with bytes from a source to a sink; tells whether both are
# closed then.
Way = Callable[[socket.socket, socket.socket, bytes], bool]


def forward(source: socket.socket, sink: socket.socket, data: bytes) -> bool:
    sink.sendall(data)
    return False


def cut(source: socket.socket, sink: socket.socket, data: bytes) -> bool:
    return True


def cut_after(source: socket.socket, sink: socket.socket, data: bytes) -> bool:
    sink.sendall(data)
    return True


class Proxy:
    """A proxy that listens on `port` and forwards to another port.

    `from_client` and `to_client` return what is done with traffic. Other
    threads may set them, and call `cut`, `block` and `unblock`, at any time.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port: int = self._listener.getsockname()[1]
        self.from_client: Callable[[bytes], Way] = lambda data: forward
        self.to_client: Callable[[bytes], Way] = lambda data: forward
        self._flows = threading.Event()
        self._flows.set()
        self._links: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> 'Proxy':
        return self

    def __exit__(self, *exc_info: object) -> None:
        # This wakes the thread that accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.unblock()
        self.cut()

    def cut(self) -> None:
        """Reset all connections; new connections are accepted."""
        with self._lock:
            links, self._links = self._links, set()
        for link in links:
            close(link)

    def block(self) -> None:
        """Forward nothing, silently, as in a network partition."""
        self._flows.clear()

    def unblock(self) -> None:
        self._flows.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self._serve, args=(client,), daemon=True
            ).start()

    def _serve(self, client: socket.socket) -> None:
        self._flows.wait()
        try:
            server = socket.create_connection(('127.0.0.1', self._target))
        except OSError:
            return close(client)
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._links |= {client, server}
        threading.Thread(
            target=self._pass,
            args=(server, client, lambda data: self.to_client(data)),
            daemon=True,
        ).start()
        self._pass(client, server, lambda data: self.from_client(data))

    def _pass(
        self, source: socket.socket, sink: socket.socket,
        judge: Callable[[bytes], Way],
    ) -> None:
        try:
            while data := source.recv(65536):
                self._flows.wait()
                if judge(data)(source, sink, data):
                    break
        except OSError:
            pass
        finally:
            with self._lock:
                self._links -= {source, sink}
            close(source)
            close(sink)


@contextlib.contextmanager
def before(url: str) -> Iterator[tuple[Proxy, str]]:
    """Yield a proxy before a server, and the server's URL through it."""
    parts = sa.make_url(url)
    assert parts.port
    with Proxy(parts.port) as proxy:
        through = parts.set(host='127.0.0.1', port=proxy.port)
        yield proxy, through.render_as_string(hide_password=False)


def close(link: socket.socket) -> None:
    """Close a socket; a thread that waits for it wakes up."""
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    link.close()
