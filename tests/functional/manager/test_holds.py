# SPDX-License-Identifier: Apache-2.0
"""The benchmark of holds measures each route and each loop."""

from benchmarks import holds
from blazar_sched.service.api import routes
from tests import tables


@tables.EVERY
def test_each_route_is_measured():
    assert set(holds.ROUTES) == {
        f'{each.method} {each.path}' for each in routes.ROUTES
    }


@tables.EVERY
def test_each_loop_is_measured(world, conf):
    for (group, name), value in tables.of('BUSY').items():
        conf.set_override(name, value, group)
    world.begin(conf)
    assert set(holds.LOOPS) == {each.name for each in world.manager._loops}
