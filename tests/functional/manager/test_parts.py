# SPDX-License-Identifier: Apache-2.0
"""Clouds that run without a part, and what is refused about parts."""

import pathlib
import re

from oslo_config import cfg
import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.service import database
from blazar_sched.service import parts
from blazar_sched.service.api import deploy
from blazar_sched.service.api import routes
from blazar_sched.service.bus import rpc
from tests import loopback
from tests import tables

V1_1 = {'OpenStack-API-Version': 'reservation 1.1', 'X-Auth-Token': 'alice:p1'}
PARTS = sorted(parts.installed())
PAGE = pathlib.Path(__file__).parents[3] / 'doc/source/admin/operate.rst'

# The parts that do something in a manager.
WORKING = [p for p in PARTS if any(parts.each('manager', 'start', [p]))]


def in_part(part, module, name):
    """Return what a part has under a name in one of its modules."""
    return [each for found in parts.each(module, name, [part])
            for each in found]


@pytest.fixture
def without(conf, world):
    """without(names) -> a client of a service that runs no such part."""

    def make(*names):
        conf.set_override('auth_strategy', 'noauth', 'api')
        conf.set_override('parts', [p for p in PARTS if p not in names])
        manager = world.begin(conf)
        return loopback.client(
            deploy.deploy(conf, rpc.Local(manager.endpoint))
        )

    return make


@pytest.mark.row('F127')
@pytest.mark.parametrize('part', PARTS)
def test_a_part_that_does_not_run_has_no_routes_and_no_limits(without, part):
    api = without(part)
    shown = api.get('/openapi', headers=V1_1).json['paths']
    of_core = {(each.method, each.path) for each in routes.of([])}
    for route in in_part(part, 'api', 'ROUTES'):
        if (route.method, route.path) in of_core:
            continue
        path = route.path.format_map(tables.of('VARIABLES'))
        answer = api.request(route.method, path, headers=V1_1)
        assert answer.status_code in (404, 405), (route.method, path)
        assert route.method.lower() not in shown.get(route.path, {})
    for layer in in_part(part, 'api', 'LAYERS'):
        for path in layer.paths:
            answer = api.get(path, token='')
            assert answer.status_code in (401, 404), path
    limits = api.get('/v1/limits', headers=V1_1).json['limits']
    gone = {each.name for each in in_part(part, 'models', 'NUMBERS')}
    assert not gone & {each['name'] for each in limits}


@pytest.mark.parametrize('part', WORKING)
def test_a_part_that_does_not_run_has_no_loops_and_no_calls(
    without, conf, world, part
):
    for (group, name), value in tables.of('BUSY').items():
        conf.set_override(name, value, group)
    world.begin(conf)
    everything = {each.name for each in world.manager._loops}
    answered = vars(world.manager.endpoint._endpoint).keys()
    without(part)
    there = {each.name for each in world.manager._loops}
    calls = vars(world.manager.endpoint._endpoint).keys()
    assert (there, calls) != (everything, answered)
    assert there <= everything and calls <= answered


@pytest.mark.row('F127')
def test_a_lease_starts_and_ends_in_a_cloud_without_parts(without, world):
    api = without(*PARTS)
    world.add_host('a')
    lease = world.create(project_id='p1', start=100, end=200)
    world.run(150)
    shown = api.get(f'/v1/leases/{lease.id}', headers=V1_1)
    assert shown.json['lease']['status'] == 'ACTIVE'
    world.run(100)
    assert world.ledger.lease(lease.id).status == 'TERMINATED'


@pytest.mark.parametrize('part', PARTS)
def test_tables_of_a_part_are_made_once_the_part_runs(conf, tmp_path, part):
    url = f'sqlite:///{tmp_path}/new.sqlite'
    conf.set_override('connection', url, 'database')
    conf.set_override('parts', [p for p in PARTS if p != part])
    names = {each.__tablename__ for each in in_part(part, 'models', 'TABLES')}
    ledger = database.open_ledger(conf)
    ledger.upgrade()
    ledger.require_current()
    ledger.close()
    there = sa.inspect(sa.create_engine(url)).get_table_names()
    assert not names & set(there)
    conf.set_override('parts', PARTS)
    ledger = database.open_ledger(conf)
    if names:
        with pytest.raises(exception.NotUpgraded, match='db upgrade'):
            ledger.require_current()
    ledger.upgrade()
    ledger.require_current()
    ledger.close()
    there = sa.inspect(sa.create_engine(url)).get_table_names()
    assert names <= set(there)


def test_a_part_that_is_not_installed_is_refused(conf):
    conf.set_override('parts', ['calender'])
    with pytest.raises(cfg.Error, match='parts: calender is not installed'):
        database.open_ledger(conf)


@tables.EVERY
def test_the_guide_says_what_each_part_brings():
    section = PAGE.read_text().split('\nParts\n', 1)[1].split('\nClocks\n')[0]
    named = re.findall(r'^   \* - ``([a-z_]+)``$', section, re.M)
    assert named == PARTS
