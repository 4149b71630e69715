# SPDX-License-Identifier: Apache-2.0
"""The resources that a flavor requests of Placement, as Nova reports them."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from nova import objects
from nova.scheduler import utils
import pytest

from blazar_sched.domain import flavor

VCPUS = 4
MEMORY_MB = 1024
GROUPS = st.sampled_from(['', '1', '2', '_NIC'])
CLASSES = st.sampled_from([
    'VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_GPU', 'VGPU', 'GRAPHICS',
])
AMOUNTS = st.sampled_from(['0', '1', '3', '-1', 'many', ''])
TRAITS = st.sampled_from(['CUSTOM_FAST', 'HW_CPU_X86_AVX2'])
POLICIES = st.sampled_from([
    {},
    {'hw:cpu_policy': 'shared'},
    {'hw:cpu_policy': 'dedicated'},
    {'hw:cpu_policy': 'dedicated', 'hw:emulator_threads_policy': 'isolate'},
    {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '0-1'},
    {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0'},
    {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '1-3,^2'},
    {
        'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '2',
        'hw:emulator_threads_policy': 'isolate',
    },
    {
        'hw:cpu_policy': 'mixed', 'hw:cpu_realtime': 'yes',
        'hw:cpu_realtime_mask': '^0-1',
    },
])


@st.composite
def extra_specs(draw):
    specs = draw(POLICIES).copy()
    for group, name, amount in draw(
        st.lists(st.tuples(GROUPS, CLASSES, AMOUNTS), max_size=5)
    ):
        specs[f'resources{group}:{name}'] = amount
    for group, name, how in draw(
        st.lists(
            st.tuples(
                GROUPS, TRAITS,
                st.sampled_from(['required', 'forbidden', 'wanted']),
            ),
            max_size=3,
        )
    ):
        specs[f'trait{group}:{name}'] = how
    return specs


@pytest.fixture(scope='module', autouse=True)
def registered():
    objects.register_all()


@given(extra_specs(), st.integers(0, 2), st.integers(0, 1500))
@settings(max_examples=300, deadline=None)
def test_asks_what_nova_asks(specs, ephemeral_gb, swap_mb):
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            vcpus=VCPUS, memory_mb=MEMORY_MB, root_gb=10,
            ephemeral_gb=ephemeral_gb, swap=swap_mb, extra_specs=specs,
        ),
        is_bfv=False,
        request_level_params=objects.RequestLevelParams(),
    )
    asked = utils.ResourceRequest.from_request_spec(spec)
    disk_gb = 10 + ephemeral_gb + -(-swap_mb // 1024)

    assert flavor.resources(VCPUS, MEMORY_MB, disk_gb, specs) == (
        asked.merged_resources()
    )
    required, forbidden = flavor.traits(specs)
    assert set(required) == asked.all_required_traits
    assert set(forbidden) == {
        name
        for group in asked._rg_by_id.values()
        for name in group.forbidden_traits
    }
