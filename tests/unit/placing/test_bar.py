# SPDX-License-Identifier: Apache-2.0
"""The share of a host that a bar says."""

import pytest

from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.placing import bar


@pytest.mark.parametrize('amounts, whole, share', [
    ({'VCPU': 2, 'MEMORY_MB': 1}, False, 0.5),
    ({'VCPU': 1, 'MEMORY_MB': 3}, False, 0.75),
    ({'CUSTOM_GPU': 1}, False, 1),
    ({'CUSTOM_FPGA': 1, 'VCPU': 1}, False, 0.25),
    ({'VCPU': 9}, False, 1),
    ({}, True, 1),
    ({}, False, 0),
])
def test_the_share_is_that_of_the_class_with_the_most(amounts, whole, share):
    host = Host(uuid='a', id='1', hypervisor_hostname='a', inventory={
        name: Inventory(n) for name, n in
        {'VCPU': 4, 'MEMORY_MB': 4, 'CUSTOM_GPU': 1}.items()
    })
    assert bar.share(host, amounts, whole) == share
