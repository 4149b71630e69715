# SPDX-License-Identifier: Apache-2.0
"""The timeline of hosts with GPUs."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.timeline.manager import Query
from blazar_sched.parts.timeline.manager import Timeline
from tests.functional.manager.test_devices import add  # noqa: F401
from tests.functional.manager.test_devices import flavors  # noqa: F401
from tests.functional.manager.test_devices import GPU
from tests.functional.manager.test_devices import gpus
from tests.functional.manager.test_devices import world  # noqa: F401


def test_the_timeline_of_a_class(
    world, add, flavors  # noqa: F811
):
    flavors(one={'pci_passthrough:alias': 'a100:1'}, plain={})
    add('a', 2)
    world.add_host('c')
    gpu = world.create(gpus(1))
    world.create(gpus(15, 'plain'))
    whole = world.create(
        {'resource_type': 'physical:host', 'min': 1, 'max': 1,
         'hypervisor_properties': '', 'resource_properties':
         f'[">=", "$resources:{GPU}", "1"]'},
        start=300, end=400,
    )

    def rows(resource_class=None, **values):
        return Timeline(world.manager).get(Query(
            'project', True, start=world.now, end=world.now + 600,
            resource_class=resource_class, **values,
        ))['timeline']['rows']

    [row] = rows(GPU, parts=3)
    assert row['name'] == 'a'
    assert {b['lease_id']: b['share'] for b in row['bars']} == {
        gpu.id: 0.5, whole.id: 1,
    }
    assert row['free'] == [0.5, 0, 1]
    assert len(rows()) == 2
    [zone] = rows(GPU, group_by='zone', parts=3)
    assert zone['free'] == [0.5, 0, 1]
    # Without a class, the class with the least counts: the eight VCPUs
    # are taken.
    assert rows(parts=3)[0]['free'][0] == 0
    for wrong in ({'group_by': 'flavor'}, {'resource_class': 'CUSTOM_X'}):
        with pytest.raises(exception.InvalidInput) as refusal:
            rows(**{'resource_class': GPU, **wrong})
        assert refusal.value.field == 'resource_class'
