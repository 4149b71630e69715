# SPDX-License-Identifier: Apache-2.0
"""Requests to the receivers of webhooks, whose URLs projects choose.

A project must not reach through the service what it cannot reach itself: each
address of the receiver is checked, and the connection is made to a checked
address, so that another answer of the name server changes nothing. Proxies of
the environment are not used, redirects are not followed, and the body of the
response is not read.
"""

from collections.abc import Iterable
import contextlib
import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
from urllib import parse

from blazar_sched.domain import exception

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The most addresses of a receiver that are tried.
MAX_ADDRESSES = 4
_PORTS = {'http': 80, 'https': 443}
# The public addresses of IPv6: all others are local, not assigned, or
# translated to IPv4, as the addresses of 6to4 and Teredo are.
_PUBLIC = ipaddress.ip_network('2000::/3')
_TRANSLATED = [
    ipaddress.ip_network(text) for text in ('2002::/16', '2001::/32')
]
# A status that ends a response, unlike those of 1xx. The bytes of a line, and
# the lines, in which it must be found.
_STATUS = re.compile(rb'HTTP/1\.[01] ([2-9][0-9]{2})[ \r\n]')
_MAX_LINE = 8192
_MAX_LINES = 100


def check_url(url: str, allowed: Iterable[Network]) -> None:
    """Refuse a URL that no request is sent to, as far as its text tells.

    :raises InvalidInput: naming `url`
    """
    try:
        parts = parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as e:
        raise exception.InvalidInput(f'url: {e}', field='url') from e
    if (
        parts.scheme not in _PORTS or not host or parts.fragment
        or port == 0 or '@' in parts.netloc or not url.isascii()
        or not url.isprintable() or ' ' in url
    ):
        raise exception.InvalidInput(
            'url must be an http or https URL of ASCII characters, without a '
            'user name and a fragment',
            field='url',
        )
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    if not is_allowed(address, allowed):
        raise exception.InvalidInput(
            'url has an address that is not public', field='url'
        )


def is_allowed(address: Address, allowed: Iterable[Network]) -> bool:
    """Tell whether requests may be sent to an address.

    :param allowed: the networks that the operator allows besides public ones
    """
    mapped = getattr(address, 'ipv4_mapped', None)
    if mapped is not None:
        address = mapped
    if any(address in network for network in allowed):
        return True
    return (
        address.is_global and not address.is_multicast
        and (address.version == 4 or address in _PUBLIC)
        and not any(address in network for network in _TRANSLATED)
    )


def post(
    url: str,
    headers: dict[str, str],
    body: str,
    timeout: float,
    allowed: Iterable[Network],
) -> int:
    """Post a body; return the status of the response.

    :param timeout: seconds after which the request is given up, however slowly
        the receiver reads and answers
    :raises Unavailable: if there is no response
    """
    until = time.monotonic() + timeout
    parts = parse.urlsplit(url)
    host = str(parts.hostname)
    port = parts.port or _PORTS[parts.scheme]
    target = (parts.path or '/') + (f'?{parts.query}' if parts.query else '')
    connection = http.client.HTTPConnection(host, port)
    try:
        sock = _connect(_addresses(host, port, allowed), until)
        with sock:
            if parts.scheme == 'https':
                sock = ssl.create_default_context().wrap_socket(
                    sock, server_hostname=host, do_handshake_on_connect=False
                )
            # Also while the receiver sends a byte now and then.
            timer = threading.Timer(_left(until), _shut_down, [sock])
            timer.daemon = True
            timer.start()
            try:
                if isinstance(sock, ssl.SSLSocket):
                    sock.do_handshake()
                connection.sock = sock
                connection.request(
                    'POST', target, body.encode(),
                    {'Host': parts.netloc, **headers},
                )
                return _status(sock)
            finally:
                timer.cancel()
                connection.close()
                sock.close()
    except (OSError, ValueError, http.client.HTTPException) as e:
        raise exception.Unavailable(
            'the receiver has no valid certificate'
            if isinstance(e, ssl.SSLCertVerificationError)
            else 'the receiver is unreachable',
            detail=str(e),
        ) from e


def _status(sock: socket.socket) -> int:
    """Return the status of a response, of which no more is read.

    :raises HTTPException: if there is none
    """
    with sock.makefile('rb') as response:
        for _ in range(_MAX_LINES):
            found = _STATUS.match(response.readline(_MAX_LINE))
            if found:
                return int(found[1])
    raise http.client.BadStatusLine('the response has no status')


def _addresses(
    host: str, port: int, allowed: Iterable[Network]
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
        if is_allowed(
            ipaddress.ip_address(str(where[0]).partition('%')[0]), allowed
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
        # Not the method of a TLS socket, which would change its state.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
