# SPDX-License-Identifier: Apache-2.0
"""The options of resource classes: read from a file, and refused."""

import pytest

from blazar_sched.conf import service


@pytest.mark.parametrize('name, value, named', [
    ('max_resources_per_lease', 'GPU:8', 'GPU is not a resource class'),
    ('max_resources_per_project', 'VCPU:8,CUSTOM_gpu:1', 'CUSTOM_gpu'),
    ('max_resources_per_project', 'VCPU:-1', '-1'),
    ('max_resources_per_project', 'VCPU:many', 'many'),
    ('max_resources_per_project', 'VCPU', 'VCPU'),
    ('max_resources_per_project', 'VCPU:1,VCPU:2', 'VCPU is named twice'),
    ('resource_weights', 'A100:1', 'A100 is not a resource class'),
    ('resource_weights', 'VCPU:-0.1', '-0.1'),
    ('resource_weights', 'VCPU:nan', 'VCPU:nan'),
    ('resource_weights', 'VCPU:inf', 'VCPU:inf'),
])
def test_wrong_limits_of_resources_are_named(tmp_path, name, value, named):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(f'[enforcement]\n{name} = {value}\n')
    with pytest.raises(ValueError) as e:
        service.load(files=[str(path)])
    assert name in str(e.value)
    assert named in str(e.value)


def test_limits_of_resources_are_read_from_a_file(tmp_path):
    path = tmp_path / 'blazar-sched.conf'
    path.write_text(
        '[enforcement]\n'
        'max_resources_per_project = CUSTOM_GPU:8, VCPU:500\n'
        'resource_weights = CUSTOM_GPU:10,VGPU:1,VCPU:0.1\n'
    )
    conf = service.load(files=[str(path)]).enforcement
    assert conf.max_resources_per_project == {'CUSTOM_GPU': 8, 'VCPU': 500}
    assert conf.resource_weights == {'CUSTOM_GPU': 10, 'VGPU': 1, 'VCPU': 0.1}
