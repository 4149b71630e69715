# SPDX-License-Identifier: Apache-2.0
"""How the unified limits of Keystone are read."""

from types import SimpleNamespace

import pytest

from blazar_sched.parts.limit import manager


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
