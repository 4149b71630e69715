# SPDX-License-Identifier: Apache-2.0
"""How the unified limits of Keystone are read."""

from types import SimpleNamespace

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.parts.limit import manager
from tests.standins.keystone import KeystoneServer


class Limited:
    """An identity API with unified limits, also of regions."""

    region_name = 'north'

    def __init__(self, **lists):
        self._lists = {
            'services': [{'id': 's1'}], 'registered_limits': [], 'limits': [],
            **lists,
        }

    def get(self, url):
        plural = url.split('?')[0].removeprefix('/')
        return SimpleNamespace(json=lambda: {plural: self._lists[plural]})


@pytest.mark.parametrize('order', [1, -1])
def test_a_limit_of_the_region_overrules_that_of_all_regions(order):
    registered = [
        {'region_id': region, 'resource_name': 'max_hosts', 'default_limit': n}
        for region, n in ((None, 1), ('north', 2), ('south', 3))
    ][::order]
    limits = [
        {
            'region_id': region, 'project_id': 'p1',
            'resource_name': 'max_hosts', 'resource_limit': n,
        }
        for region, n in ((None, 4), ('north', 5), ('south', 6))
    ][::order]
    found = manager.read(Limited(registered_limits=registered, limits=limits))
    assert found == {None: {'max_hosts': 2}, 'p1': {'max_hosts': 5}}


class TestInSystem:
    """The loop asks Keystone as the service's user in the system scope."""

    @pytest.fixture
    def cloud(self):
        cloud = KeystoneServer()
        cloud.limits['services'].append({'id': 's1'})
        cloud.limits['registered_limits'].append({
            'region_id': None, 'resource_name': 'max_leases_per_project',
            'default_limit': 3,
        })
        yield cloud
        cloud.stop()

    @pytest.fixture
    def unified(self, cloud, tmp_path):
        path = tmp_path / 'blazar-sched.conf'
        path.write_text(cloud.configuration())
        conf = service_conf.load(files=[str(path)])
        return manager.UnifiedLimits(conf, 60)

    def test_the_limits_are_read(self, unified):
        with pytest.raises(exception.Unavailable, match='not read'):
            unified.of('p1')
        unified.step()
        assert unified.of('p1') == {'max_leases_per_project': 3}

    def test_the_last_limits_apply_while_keystone_is_away(
        self, cloud, unified
    ):
        unified.step()
        cloud.broken = True
        with pytest.raises(exception.Unavailable):
            unified.step()
        assert unified.of('p1') == {'max_leases_per_project': 3}

    def test_without_one_service_there_are_no_limits(self, cloud, unified):
        cloud.limits['services'].clear()
        with pytest.raises(exception.Unavailable, match='0 services'):
            unified.step()
