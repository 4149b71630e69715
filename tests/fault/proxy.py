# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that can cut, refuse and drop traffic."""

from collections.abc import Callable
import contextlib
import socket
import threading

# A link calls these functions before it forwards bytes from the client, or to
# the client; the result decides about the bytes.
PASS, CUT, CUT_AFTER = 'pass', 'cut', 'cut after'
Judge = Callable[[bytes], str]


class Proxy:
    """A proxy that listens on `port` and forwards to another port.

    `from_client` and `to_client` decide about traffic. Other threads may set
    them, and call `cut`, `block` and `unblock`, at any time.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port: int = self._listener.getsockname()[1]
        self.from_client: Judge = lambda data: PASS
        self.to_client: Judge = lambda data: PASS
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
            _close(link)

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
            return _close(client)
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
        self, source: socket.socket, sink: socket.socket, judge: Judge
    ) -> None:
        try:
            while data := source.recv(65536):
                self._flows.wait()
                verdict = judge(data)
                if verdict == CUT:
                    break
                sink.sendall(data)
                if verdict == CUT_AFTER:
                    break
        except OSError:
            pass
        finally:
            with self._lock:
                self._links -= {source, sink}
            _close(source)
            _close(sink)


def _close(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    link.close()
