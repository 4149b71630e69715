# SPDX-License-Identifier: Apache-2.0
"""Where projects may have requests sent to: to public addresses.

The blocks are those of IANA's registries of special-purpose addresses, as of
2025. Python has a table of its own, which differs between its versions.
"""

from collections.abc import Iterable
import ipaddress
from urllib import parse

from blazar_sched.domain import exception
from blazar_sched.service.clients import receiver

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The addresses of single hosts, without multicast and what IPv4 keeps for the
# future. IPv6 addresses outside are local, not assigned, or IPv4 addresses in
# another form: compatible, of NAT64, and others.
_UNICAST = [
    ipaddress.ip_network(text)
    for text in ('0.0.0.0/1', '128.0.0.0/2', '192.0.0.0/3', '2000::/3')
]
# The blocks in there that have a special purpose, some of them reachable.
_SPECIAL = [
    ipaddress.ip_network(text) for text in (
        # This network, private, shared, loopback and link-local.
        '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8',
        '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16',
        # Protocols, documentation, AS112, AMT, relays of 6to4, benchmarks.
        '192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24',
        '192.88.99.0/24', '192.175.48.0/24', '198.18.0.0/15',
        '198.51.100.0/24', '203.0.113.0/24',
        # Protocols with Teredo and ORCHID, documentation, 6to4, AS112.
        '2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48',
        '3fff::/20',
    )
]


def is_allowed(address: receiver.Address, allowed: Iterable[Network]) -> bool:
    """Tell whether projects may have requests sent to an address.

    :param allowed: the networks that the operator allows besides public ones
    """
    # A connection to an IPv4-mapped address is one to the IPv4 address.
    mapped = getattr(address, 'ipv4_mapped', None)
    if mapped is not None:
        address = mapped
    return any(address in network for network in allowed) or (
        any(address in network for network in _UNICAST)
        and not any(address in network for network in _SPECIAL)
    )


def check_url(url: str, allowed: Iterable[Network]) -> None:
    """Refuse a URL that no request is sent to, as far as its text tells.

    :param allowed: as for `is_allowed`
    :raises InvalidInput: naming `url`
    """
    try:
        parts = parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as e:
        raise exception.InvalidInput(f'url: {e}', field='url') from e
    if (
        parts.scheme not in receiver.PORTS or not host or parts.fragment
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
