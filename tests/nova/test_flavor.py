# SPDX-License-Identifier: Apache-2.0
"""The resources that a flavor requests of Placement, as Nova reports them."""

import json

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from nova import conf as nova_conf
from nova import objects
from nova.pci import request as pci_request
from nova.scheduler import utils
from oslo_config import fixture
import pytest

from blazar_sched.domain import flavor
from blazar_sched.domain import pci_alias
from blazar_sched.worker import request

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

# What Nova translates into groups, and an image that has what that needs.
TRANSLATED = st.sampled_from([
    {}, {'hw:pmem': '4GB'}, {'hw:pmem': '4GB, fast-1 ,4GB,'},
    {'hw:mem_encryption': 'true'}, {'hw:mem_encryption': 'no'},
    {'hw:mem_encryption': '1', 'hw:mem_encryption_model': 'amd-sev-es'},
])
IMAGE = {'hw_firmware_type': 'uefi', 'hw_machine_type': 'q35'}


@st.composite
def extra_specs(draw):
    specs = draw(POLICIES) | draw(TRANSLATED)
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


def same_groups(asked, specs, disk_gb):
    """Tell whether Nova has the same groups; its own suffixes may differ."""
    amounts = flavor.resources(VCPUS, MEMORY_MB, disk_gb, specs)
    ours = [
        (
            bool(group.suffix), dict(group.resources), set(group.required),
            set(group.forbidden),
        )
        for group in flavor.groups(amounts, specs).groups
    ]
    theirs = [
        (
            bool(suffix), group.resources, group.required_traits,
            group.forbidden_traits,
        )
        for suffix, group in asked._rg_by_id.items()
    ]
    # Nova keeps groups that ask for nothing.
    return _shown(ours) == _shown(theirs)


def _shown(groups):
    return sorted(
        (suffix, sorted(resources.items()), sorted(required),
         sorted(forbidden))
        for suffix, resources, required, forbidden in groups
        if resources or required or forbidden
    )


@given(extra_specs(), st.integers(0, 2), st.integers(0, 1500))
@settings(max_examples=300, deadline=None)
def test_asks_what_nova_asks(specs, ephemeral_gb, swap_mb):
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            vcpus=VCPUS, memory_mb=MEMORY_MB, root_gb=10,
            ephemeral_gb=ephemeral_gb, swap=swap_mb, extra_specs=specs,
            name='f',
        ),
        is_bfv=False, request_level_params=objects.RequestLevelParams(),
        image=objects.ImageMeta(properties=objects.ImageMetaProps(**IMAGE)),
    )
    asked = utils.ResourceRequest.from_request_spec(spec)
    disk_gb = 10 + ephemeral_gb + -(-swap_mb // 1024)

    assert flavor.resources(VCPUS, MEMORY_MB, disk_gb, specs) == (
        asked.merged_resources()
    )
    assert same_groups(asked, specs, disk_gb)
    required, forbidden = flavor.traits(specs)
    assert set(required) == asked.all_required_traits
    assert set(forbidden) == {
        name
        for group in asked._rg_by_id.values()
        for name in group.forbidden_traits
    }


@pytest.fixture
def aliases():
    lines = [
        json.dumps(each) for each in (
            {'name': 'gpu', 'vendor_id': '10de', 'product_id': '20b0',
             'device_type': 'type-PF', 'numa_policy': 'preferred'},
            {'name': 'nic', 'resource_class': 'fast nic-1',
             'traits': 'hw_nic_sriov, Very Fast,CUSTOM_OLD'},
            {'name': 'fpga', 'resource_class': 'fpga'},
        )
    ]
    used = fixture.Config(nova_conf.CONF)
    used.setUp()
    used.config(alias=lines, group='pci')
    used.config(pci_in_placement=True, group='filter_scheduler')
    pci_request.get_alias_from_config.cache_clear()
    yield pci_alias.read(lines)
    used.cleanUp()
    pci_request.get_alias_from_config.cache_clear()


@pytest.mark.parametrize(
    'asked', ['gpu:1', 'gpu:2,nic:1', 'nic:1, gpu:1', 'fpga:3']
)
def test_asks_for_the_devices_of_an_alias(aliases, asked):
    specs = {'pci_passthrough:alias': asked, 'resources:CUSTOM_GPU': '1'}
    of_nova = objects.Flavor(
        vcpus=VCPUS, memory_mb=MEMORY_MB, root_gb=10, ephemeral_gb=0, swap=0,
        extra_specs=specs,
    )
    requests = pci_request.get_pci_requests_from_flavor(of_nova)
    spec = objects.RequestSpec(
        flavor=of_nova, is_bfv=False, pci_requests=requests,
        requested_resources=[], instance_uuid='i', project_id='p',
        request_level_params=objects.RequestLevelParams(),
    )
    spec.generate_request_groups_from_pci_requests()
    in_placement = utils.ResourceRequest.from_request_spec(spec)

    expanded = pci_alias.expanded(specs, aliases)
    amounts = flavor.resources(VCPUS, MEMORY_MB, 10, expanded)
    assert amounts == in_placement.merged_resources()
    assert same_groups(in_placement, expanded, 10)
    read = request.read_request(spec, None, 0, nova_conf.CONF.blazar_sched)
    assert read.by_class == amounts


def test_of_an_alias_without_placement_there_is_nothing(aliases):
    specs = {'pci_passthrough:alias': 'gpu:2'}
    assert pci_alias.expanded(specs, {}) == specs


@pytest.mark.parametrize('line', ['', '[]', '{}', '{"name": "x"}', '7'])
def test_an_alias_that_cannot_be_read(line):
    with pytest.raises(ValueError, match='PCI alias'):
        pci_alias.read([line])


def test_an_alias_has_one_meaning():
    line = '{"name": "x", "vendor_id": "1", "product_id": "2"}'
    with pytest.raises(ValueError, match='more than one'):
        pci_alias.read([line, line])
