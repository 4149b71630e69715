# SPDX-License-Identifier: Apache-2.0
"""Demands of floating IPs."""

from blazar_sched.domain import demand
from blazar_sched.parts.floating_ip.demand import Addresses
from blazar_sched.parts.floating_ip.demand import read

ADDRESSES = {
    'network_id': 'n', 'amount': 2, 'required_floatingips': ['192.0.2.1'],
}


def test_a_demand_is_written_as_it_was_read():
    found = demand.decode('virtual:floatingip', ADDRESSES)
    assert found.resource_type == 'virtual:floatingip'
    assert found.encode() == ADDRESSES
    assert read(found) == Addresses('n', 2, ('192.0.2.1',))
    assert read(found).demand == found


def test_floating_ips_are_not_on_hosts():
    asked = Addresses('n', 5).demand
    assert asked.slot == {}
    assert asked.count([]) == asked.least == asked.most == 5
    assert not asked.is_on_hosts(active=False)
