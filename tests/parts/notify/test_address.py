# SPDX-License-Identifier: Apache-2.0
"""The addresses to which projects may have requests sent.

What is special is read from the text of IANA's registries, whose tables are
below, by a reading of addresses of the test's own: Python's module knows
special networks too, and not the same in each version.
"""

import ipaddress
import socket

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.notify import address

# https://www.iana.org/assignments/iana-ipv4-special-registry (and multicast).
IPV4 = """
0.0.0.0/8           "This network"
0.0.0.0/32          "This host on this network"
10.0.0.0/8          Private-Use
100.64.0.0/10       Shared Address Space
127.0.0.0/8         Loopback
169.254.0.0/16      Link Local
172.16.0.0/12       Private-Use
192.0.0.0/24        IETF Protocol Assignments
192.0.0.0/29        IPv4 Service Continuity Prefix
192.0.0.8/32        IPv4 dummy address
192.0.0.9/32        Port Control Protocol Anycast
192.0.0.10/32       Traversal Using Relays around NAT Anycast
192.0.0.170/32      NAT64/DNS64 Discovery
192.0.0.171/32      NAT64/DNS64 Discovery
192.0.2.0/24        Documentation (TEST-NET-1)
192.31.196.0/24     AS112-v4
192.52.193.0/24     AMT
192.88.99.0/24      Deprecated (6to4 Relay Anycast)
192.88.99.2/32      6a44-relay anycast address
192.168.0.0/16      Private-Use
192.175.48.0/24     Direct Delegation AS112 Service
198.18.0.0/15       Benchmarking
198.51.100.0/24     Documentation (TEST-NET-2)
203.0.113.0/24      Documentation (TEST-NET-3)
224.0.0.0/4         Multicast
240.0.0.0/4         Reserved
255.255.255.255/32  Limited Broadcast
"""
# https://www.iana.org/assignments/iana-ipv6-special-registry, and what the
# registry of the address space does not give to single hosts.
IPV6 = """
::1/128             Loopback Address
::/128              Unspecified Address
::/96               Deprecated (IPv4-compatible)
::ffff:0:0:0/96     Deprecated (IPv4-translated)
64:ff9b::/96        IPv4-IPv6 Translat.
64:ff9b:1::/48      IPv4-IPv6 Translat.
100::/64            Discard-Only Address Block
100:0:0:1::/64      Dummy IPv6 Prefix
2001::/23           IETF Protocol Assignments
2001::/32           TEREDO
2001:1::1/128       Port Control Protocol Anycast
2001:1::2/128       Traversal Using Relays around NAT Anycast
2001:1::3/128       DNS-SD Service Registration Protocol Anycast
2001:2::/48         Benchmarking
2001:3::/32         AMT
2001:4:112::/48     AS112-v6
2001:10::/28        Deprecated (previously ORCHID)
2001:20::/28        ORCHIDv2
2001:30::/28        Drone Remote ID Protocol Entity Tags
2001:db8::/32       Documentation
2002::/16           6to4
2620:4f:8000::/48   Direct Delegation AS112 Service
3fff::/20           Documentation
4000::/2            Not assigned
5f00::/16           Segment Routing (SRv6) SIDs
8000::/1            Not assigned
fc00::/7            Unique-Local
fe80::/10           Link-Local Unicast
fec0::/10           Deprecated (Site-Local)
ff00::/8            Multicast
"""
FAMILIES = {4: (socket.AF_INET, 32), 6: (socket.AF_INET6, 128)}
PUBLIC = (
    '1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255',
    '100.128.0.0', '169.253.255.255', '172.15.0.1', '172.32.0.0',
    '191.255.255.255', '192.0.1.0', '192.0.3.0', '192.88.98.255',
    '192.88.100.0', '192.167.0.1', '192.169.0.0', '198.17.0.1', '198.20.0.0',
    '223.255.255.255', '2000::1', '2001:200::1', '2001:4860:4860::8888',
    '2003::1', '2606:4700::1111', '2620:4f:8001::', '2a00::1', '3ffe::1',
    '3fff:1000::1',
)


def blocks(registry, family):
    """Yield the first and the last address of each block, as numbers."""
    of, bits = FAMILIES[family]
    for line in registry.strip().splitlines():
        text, _, length = line.split()[0].partition('/')
        first = int.from_bytes(socket.inet_pton(of, text), 'big')
        yield first, first + (1 << bits - int(length)) - 1


def allows(number, family, networks=()):
    of, bits = FAMILIES[family]
    text = socket.inet_ntop(of, number.to_bytes(bits // 8, 'big'))
    found = address.is_allowed(
        ipaddress.ip_address(text), [*map(ipaddress.ip_network, networks)]
    )
    # The text of a URL says the same.
    try:
        address.check_url(
            f'http://[{text}]/' if family == 6 else f'http://{text}/',
            [*map(ipaddress.ip_network, networks)],
        )
    except exception.InvalidInput:
        assert not found
    else:
        assert found
    return found


@pytest.mark.parametrize('family, registry', [(4, IPV4), (6, IPV6)])
def test_no_address_of_a_special_block_is_public(family, registry):
    special = [*blocks(registry, family)]
    assert len(special) > 25
    beside = 0
    for first, last in special:
        step = max(1, (last - first) // 50)
        for number in {*range(first, last + 1, step), last}:
            assert not allows(number, family), hex(number)
        for number in (first - 1, last + 1):
            if 0 <= number < 1 << FAMILIES[family][1] and not any(
                a <= number <= b for a, b in special
            ) and (family == 4 or number >> 125 == 1):
                assert allows(number, family), hex(number)
                beside += 1
    assert beside > 5


@pytest.mark.parametrize('text', PUBLIC)
def test_a_public_address(text):
    assert address.is_allowed(ipaddress.ip_address(text), ())


def test_an_ipv4_address_in_another_form():
    """Only the mapped form is a connection to the IPv4 address."""
    def forms(text):
        v4 = int.from_bytes(socket.inet_aton(text), 'big')
        yield 0xFFFF << 32 | v4
        yield from (
            v4,                                             # compatible
            0xFFFF << 48 | v4,                              # translated
            0x64FF9B << 96 | v4,                            # NAT64
            0x64FF9B0001 << 80 | v4,                        # NAT64, local
            0x2002 << 112 | v4 << 80,                       # 6to4
            0x20010000 << 96 | 1 << 64 | v4 ^ 0xFFFFFFFF,   # Teredo
        )

    for text in ('10.1.2.3', '127.0.0.1', '169.254.169.254', '192.0.0.192'):
        assert not any(allows(number, 6) for number in forms(text))
        mapped, *others = forms(text)
        assert allows(mapped, 6, [f'{text}/32'])
        assert not any(allows(each, 6, [f'{text}/32']) for each in others)
    mapped, *others = forms('8.8.8.8')
    assert allows(mapped, 6)
    assert not any(allows(each, 6) for each in others)


def test_the_operator_allows_a_network():
    assert allows(0x0A010203, 4, ['10.1.0.0/16'])
    assert not allows(0x0A020203, 4, ['10.1.0.0/16'])
