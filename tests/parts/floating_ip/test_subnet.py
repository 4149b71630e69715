# SPDX-License-Identifier: Apache-2.0
"""Reservable addresses, compared with a list of all addresses."""

import ipaddress

import hypothesis
from hypothesis import strategies as st
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import ip_address
from blazar_sched.parts.floating_ip import floating_ip
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from blazar_sched.parts.floating_ip.floating_ip import Subnet

NET = Subnet(
    'net', 'n', '203.0.113.0/24', '203.0.113.1',
    (('203.0.113.10', '203.0.113.20'),),
)
SIX = Subnet(
    'six', 'n', '2001:db8::/64', '2001:db8::1',
    (('2001:db8::100', '2001:db8::1ff'),),
)


@pytest.mark.parametrize(
    'address, subnet',
    [
        ('203.0.113.2', NET),
        ('203.0.113.9', NET),
        ('203.0.113.21', NET),
        ('203.0.113.254', NET),
        ('2001:db8::2', SIX),
        ('2001:db8::200', SIX),
        ('2001:db8::ffff:ffff:ffff:ffff', SIX),
    ],
)
def test_an_address_outside_the_pools_can_be_reserved(address, subnet):
    assert floating_ip.find_subnet(address, [NET, SIX]) is subnet


@pytest.mark.parametrize(
    'address, why',
    [
        ('203.0.113.0', 'network or broadcast address'),
        ('203.0.113.255', 'network or broadcast address'),
        ('203.0.113.1', 'gateway'),
        ('203.0.113.10', 'pool'),
        ('203.0.113.20', 'pool'),
        ('2001:db8::', 'network or broadcast address'),
        ('2001:db8::1', 'gateway'),
        ('2001:db8::180', 'pool'),
    ],
)
def test_an_address_of_others_cannot(address, why):
    with pytest.raises(exception.InvalidInput, match=why) as refused:
        floating_ip.find_subnet(address, [NET, SIX])
    assert refused.value.field == 'floating_ip_address'


@pytest.mark.parametrize(
    'address, subnets',
    [
        ('203.0.113.2', []),
        ('198.51.100.7', [NET, SIX]),
        ('2001:db9::1', [NET, SIX]),
        # The same number in the other address family.
        ('::cb00:7102', [NET]),
    ],
)
def test_an_address_of_no_subnet_is_not_found(address, subnets):
    with pytest.raises(exception.NotFound):
        floating_ip.find_subnet(address, subnets)


def test_a_subnet_without_gateway_or_pools():
    bare = Subnet('bare', 'n', '203.0.113.0/24')
    assert floating_ip.find_subnet('203.0.113.1', [bare]) is bare


@st.composite
def subnets(draw):
    """A small IPv4 subnet, with a gateway and pools anywhere in it."""
    prefix = draw(st.integers(26, 32))
    base = draw(st.integers(0, 255)) << (32 - prefix)
    cidr = ipaddress.ip_network(((10 << 24) + base, prefix))
    inside = st.sampled_from([str(ip) for ip in cidr])
    pools = tuple(
        tuple(sorted(pair, key=ipaddress.ip_address))
        for pair in draw(st.lists(st.tuples(inside, inside), max_size=3))
    )
    gateway = draw(st.none() | inside)
    return Subnet('id', 'n', str(cidr), gateway, pools)


@hypothesis.given(subnets())
def test_every_address_of_a_subnet_against_a_list_of_the_good_ones(subnet):
    cidr = ipaddress.ip_network(subnet.cidr)
    every = [str(ip) for ip in cidr]
    good = set(every) - {every[0], every[-1], subnet.gateway}
    for first, last in subnet.pools:
        good -= set(every[every.index(first):every.index(last) + 1])
    found = set()
    for address in every:
        try:
            floating_ip.find_subnet(address, [subnet])
            found.add(address)
        except exception.InvalidInput:
            pass
    assert found == good
    assert found == {
        address
        for address in every
        if floating_ip.can_be_reserved(address, [subnet])
    }
    assert not floating_ip.can_be_reserved('192.0.2.1', [subnet])


@pytest.mark.parametrize(
    'text, kept',
    [
        ('203.0.113.7', '203.0.113.7'),
        ('2001:DB8:0:0::7', '2001:db8::7'),
    ],
)
def test_an_address_is_kept_in_one_form(text, kept):
    assert ip_address.parse(text, floating_ip.ADDRESS) == kept


@pytest.mark.parametrize(
    'text',
    [
        '', 'x', '203.0.113', '203.0.113.256', '203.0.113.07', '203.0.113.7 ',
        '203.0.113.7/32', '2001:db8::7%eth0', '２０３.0.113.7', 3405803783,
        None, ['203.0.113.7'], b'\xcb\x00\x71\x07',
    ],
)
def test_what_is_no_address_is_refused_by_its_field(text):
    with pytest.raises(exception.InvalidInput) as refused:
        ip_address.parse(text, 'required_floatingips')
    assert refused.value.field == 'required_floatingips'


def test_addresses_are_in_the_order_of_their_numbers():
    mixed = ['2001:db8::2', '203.0.113.10', '203.0.113.9', '2001:db8::1']
    nouns = [FloatingIP('id', 'n', 's', a) for a in mixed]
    nouns.append(FloatingIP('id', 'm', 's', '203.0.113.11'))
    assert [n.address for n in sorted(nouns, key=floating_ip.order)] == [
        '203.0.113.11', '203.0.113.9', '203.0.113.10', '2001:db8::1',
        '2001:db8::2',
    ]
