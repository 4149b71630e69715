# SPDX-License-Identifier: Apache-2.0
"""Requests to the receivers of webhooks, and to the operator's services.

A request ends in a given time, however slowly the receiver answers, and reads
no more of the response than its caller needs. Proxies of the environment are
not used, and redirects are not followed.

A project must not reach through the service what it cannot reach itself: each
address of a receiver whose URL a project has chosen is checked, and the
connection is made to a checked address, so that another answer of the name
server changes nothing.
"""

import base64
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from urllib import parse

from blazar_sched.domain import exception

# The most addresses of a receiver that are tried.
MAX_ADDRESSES = 4
PORTS = {'http': 80, 'https': 443}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """A response of a receiver.

    :param body: the beginning of the body, as far as it was asked for
    :param retry_after: the header Retry-After, if any
    """

    status: int
    body: bytes = b''
    retry_after: str | None = None

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300


def post(
    url: str, headers: dict[str, str], body: str, timeout: float,
    allowed: Callable[[Address], bool] | None = None, most: int = 0,
) -> Answer:
    """Post a body; return the response.

    :param timeout: seconds after which the request is given up
    :param allowed: tells whether requests may be sent to an address; any
        address by default
    :param most: the most bytes of the body of the response to read
    :raises Unavailable: if there is no response
    """
    until = time.monotonic() + timeout
    parts = parse.urlsplit(url)
    host, port = str(parts.hostname), parts.port or PORTS[parts.scheme]
    target = (parts.path or '/') + (f'?{parts.query}' if parts.query else '')
    user, _, name = parts.netloc.rpartition('@')
    headers = {'Host': name, **headers}
    if user:
        login = base64.b64encode(parse.unquote(user).encode())
        headers.setdefault('Authorization', f'Basic {login.decode()}')
    try:
        with connected(host, port, until, allowed) as sock:
            if parts.scheme == 'https':
                sock = ssl.create_default_context().wrap_socket(
                    sock, server_hostname=host
                )
            with sock:
                connection = http.client.HTTPConnection(host, port)
                connection.sock = sock
                connection.request('POST', target, body.encode(), headers)
                answer = _answer(sock, most)
                # A body without a length ends where the connection ends.
                _left(until)
                return answer
    except (OSError, ValueError, http.client.HTTPException) as e:
        raise exception.Unavailable(
            'the receiver has no valid certificate'
            if isinstance(e, ssl.SSLCertVerificationError)
            else 'the receiver is unreachable',
            detail=str(e),
        ) from e


@contextlib.contextmanager
def connected(
    host: str, port: int, until: float,
    allowed: Callable[[Address], bool] | None = None,
) -> Iterator[socket.socket]:
    """Connect to a host until a monotonic time, when the connection ends.

    :param allowed: as for `post`
    :raises OSError: if no address of the host answers
    :raises Unavailable: if the host has no address that is allowed
    """
    sock = _connect(_addresses(host, port, allowed), until)
    # The end of the connection is that of each socket made of this one.
    with sock, sock.dup() as same:
        timer = threading.Timer(_left(until), _shut_down, [same])
        timer.daemon = True
        timer.start()
        try:
            yield sock
        finally:
            timer.cancel()


def _answer(sock: socket.socket, most: int) -> Answer:
    """Return the response that follows those of 1xx.

    :raises HTTPException: if there is none
    """
    with http.client.HTTPResponse(sock, method='POST') as response:
        response.begin()
        while response.status < 200:
            # Where this is set, the response has begun already.
            response.headers = None  # type: ignore[assignment]
            response.begin()
        return Answer(
            response.status, response.read(most) if most else b'',
            response.headers['Retry-After'],
        )


def _addresses(
    host: str, port: int, allowed: Callable[[Address], bool] | None
) -> list[tuple[str, int]]:
    """Return the addresses of a receiver to which requests may be sent.

    :raises Unavailable: if there is none
    """
    found = [
        (str(where[0]), port)
        for *_, where in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )
        # Without the scope of a link-local address.
        if allowed is None or allowed(
            ipaddress.ip_address(str(where[0]).partition('%')[0])
        )
    ]
    if not found:
        raise exception.Unavailable('the receiver has no public address')
    return found[:MAX_ADDRESSES]


def _connect(
    addresses: Iterable[tuple[str, int]], until: float
) -> socket.socket:
    """Connect to the first address that answers.

    :raises OSError: if none does
    """
    failure: OSError | None = None
    for address in addresses:
        try:
            return socket.create_connection(address, _left(until))
        except OSError as e:
            failure = e
    raise failure or TimeoutError


def _left(until: float) -> float:
    """Return the seconds that are left.

    :raises TimeoutError: if none are left
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
