# SPDX-License-Identifier: Apache-2.0
"""Maintenances of hosts with GPUs."""

from tests.functional.manager.test_devices import add  # noqa: F401
from tests.functional.manager.test_devices import flavors  # noqa: F401
from tests.functional.manager.test_devices import gpus
from tests.functional.manager.test_devices import look
from tests.functional.manager.test_devices import places
from tests.functional.manager.test_devices import world  # noqa: F401


def test_a_host_that_will_be_closed_is_given_up_first(
    world, close, add, flavors  # noqa: F811
):
    add('a', 2)
    add('b', 2)
    lease = world.create(gpus(4), start='now', end=300)
    world.run()
    close('a', force=True)
    assert world.lease(lease).degraded
    change = {'id': lease.reservations[0].id, 'amount': 2}
    world.leases.update(lease.id, None, {'reservations': [change]})
    assert places(world, lease) == {'b': 2}
    world.run()
    look(world)
    assert not world.lease(lease).degraded
