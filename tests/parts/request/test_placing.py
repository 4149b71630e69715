# SPDX-License-Identifier: Apache-2.0
"""Whether hosts are enough for a lease request, whatever is on them."""

import pytest

from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.window import Window
from blazar_sched.parts.request.placing import lacking
from tests.unit.placing.placements import make_lease

# Two hosts of 4 vCPUs, which Nova may allocate twice.
HOSTS = [
    Host(
        uuid=name, id=name, hypervisor_hostname=name,
        inventory={'VCPU': Inventory(4, allocation_ratio=2.0)},
    )
    for name in 'ab'
]


@pytest.mark.parametrize('amount, affinity, overcommit, enough', [
    (16, None, True, True), (17, None, True, False),
    (8, None, False, True), (9, None, False, False),
    (8, True, True, True), (9, True, True, False), (5, True, False, False),
    (2, False, True, True), (3, False, True, False),
])
def test_instances(amount, affinity, overcommit, enough):
    [reservation] = make_lease('l', 'p', Window(0, 1), [(
        'flavor:instance',
        {'resources': {'VCPU': 1}, 'amount': amount, 'affinity': affinity},
    )]).reservations
    assert (lacking([(reservation, HOSTS)], overcommit) is None) is enough


@pytest.mark.parametrize('least, enough', [(2, True), (3, False)])
def test_hosts(least, enough):
    [reservation] = make_lease('l', 'p', Window(0, 1), [
        ('physical:host', {'min': least, 'max': 9}),
    ]).reservations
    assert (lacking([(reservation, HOSTS)], True) is None) is enough


@pytest.mark.parametrize('hosts, enough', [
    ((HOSTS[:1], HOSTS[:1]), False),
    ((HOSTS[:1], HOSTS[1:]), True), ((HOSTS[:1], HOSTS), True),
])
def test_hosts_of_several_reservations(hosts, enough):
    """One host is no room for two reservations of whole hosts."""
    reservations = make_lease('l', 'p', Window(0, 1), [
        ('physical:host', {'min': 1, 'max': 9}) for _ in hosts
    ]).reservations
    suitable = list(zip(reservations, hosts, strict=True))
    assert (lacking(suitable, True) is None) is enough


@pytest.mark.parametrize('amounts, hosts, enough', [
    ((8, 8), (HOSTS[:1], HOSTS[:1]), False),
    ((4, 4), (HOSTS[:1], HOSTS[:1]), True),
    ((8, 8), (HOSTS[:1], HOSTS), True), ((8, 9), (HOSTS[:1], HOSTS), False),
])
def test_instances_of_several_reservations(amounts, hosts, enough):
    reservations = make_lease('l', 'p', Window(0, 1), [
        (
            'flavor:instance',
            {'resources': {'VCPU': 1}, 'amount': amount, 'affinity': None},
        )
        for amount in amounts
    ]).reservations
    suitable = list(zip(reservations, hosts, strict=True))
    assert (lacking(suitable, True) is None) is enough
