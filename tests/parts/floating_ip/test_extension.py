# SPDX-License-Identifier: Apache-2.0
"""How far a lease of floating IPs can be prolonged."""

import pytest

from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.floating_ip import models
from blazar_sched.parts.floating_ip.floating_ip import FloatingIP
from tests.functional.manager import test_extension
from tests.functional.manager.test_extension import extension
from tests.functional.manager.test_extension import prolong

conf = test_extension.conf
test_extension_is_the_last_end = (
    test_extension.test_extension_is_the_last_end_that_an_update_accepts
)
NETWORK = 'net'
ADDRESS = {
    'resource_type': 'virtual:floatingip', 'network_id': NETWORK, 'amount': 1,
}


@pytest.fixture
def world(world):
    """A cloud with two hosts of 8 VCPUs and two floating IPs."""
    for name in 'ab':
        world.add_host(name)
    for n in (1, 2):
        world.ledger.commit(
            lambda tx, n=n: tx.run(models.add, FloatingIP(
                f'00000000-0000-4000-8000-00000000000{n}', NETWORK, 'subnet',
                f'203.0.113.{n}',
            ))
        )
    return world


@pytest.fixture
def others():
    return [ADDRESS]


def test_floating_ips_limit_it(world):
    lease = world.create({**ADDRESS, 'amount': 2})
    rival = world.create(ADDRESS, start=300, end=400)

    found = extension(world, lease)

    assert (found['end'], found['limited_by']) == (rival.start, 'capacity')
    assert (found['reservation'], found['available']) == (None, None)
    assert prolong(world, lease, FOREVER).end == rival.start
    world.check()
