# SPDX-License-Identifier: Apache-2.0
"""Addresses that projects may have requests sent to: the public ones.

The blocks are those of IANA's registries of special-purpose addresses, as of
2025. Python has a table of its own, which differs between its versions.
"""

from collections.abc import Iterable
import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
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


def is_allowed(address: Address, allowed: Iterable[Network]) -> bool:
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
