# SPDX-License-Identifier: Apache-2.0
"""Which instances are moved, and how much headroom they leave."""

import dataclasses

import pytest

from blazar_sched.domain.instance import Instance
from blazar_sched.domain.instance import Stay
from blazar_sched.domain.relocation import Features
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.relocation import way

PLAIN = Features({}, {}, None, memory_mb=4096, local_disk=False, devices=False)
SAID = {'blazar:movable': 'true'}


def way_of(rules=None, **fields):
    return way(rules or Rules(), dataclasses.replace(PLAIN, **fields))


def movable(rules=None, **fields):
    return way_of(rules, **fields) == 'live'


def test_an_instance_on_a_volume_is_moved():
    assert movable()


@pytest.mark.parametrize('fields', [
    {'devices': True}, {'local_disk': True},
    {'extra_specs': {'hw:cpu_policy': 'dedicated'}},
    {'extra_specs': {'hw:cpu_policy': 'mixed'}},
    {'extra_specs': {'hw:cpu_realtime': 'yes'}},
    {'extra_specs': {'hw:mem_encryption': 'True'}},
    {'extra_specs': {'resources:PCPU': '2'}},
    {'extra_specs': {'resources1:PCPU': '2'}},
    {'extra_specs': {'resources:VGPU': '1'}},
    {'extra_specs': {'resources_card:CUSTOM_GPU': '1'}},
    {'image_properties': {'hw_cpu_policy': 'dedicated'}},
    {'image_properties': {'hw_mem_encryption': True}},
])
@pytest.mark.parametrize('hint', [None, 'true', 'maybe'])
def test_what_cannot_be_live_migrated_is_moved_only_if_its_flavor_says_so(
    fields, hint
):
    assert way_of(**fields, hint=hint) == ''
    specs = fields.get('extra_specs', {}) | SAID
    assert movable(**{**fields, 'extra_specs': specs})


@pytest.mark.parametrize('fields', [
    {'extra_specs': {'hw:cpu_policy': 'shared'}},
    {'image_properties': {'hw_mem_encryption': False}},
    {'extra_specs': {'resources:VCPU': '2'}},
    {'extra_specs': {'resources:VGPU': '0', 'resources:NO_CLASS': '1'}},
])
def test_instance_with_harmless_extra_specs_is_movable(fields):
    assert movable(**fields)


WAYS = {
    'disk': 'live', 'device': 'cold', 'cpu': 'cold', 'VGPU': 'cold',
    'CUSTOM_GPU': 'live', 'PCPU': 'live',
}


@pytest.mark.parametrize('fields, expected', [
    ({'local_disk': True}, 'live'),
    ({'devices': True}, 'cold'),
    ({'devices': True, 'local_disk': True}, 'cold'),
    ({'extra_specs': {'resources:CUSTOM_GPU': '1'}}, 'live'),
    ({'extra_specs': {'resources:VGPU': '1'}}, 'cold'),
    ({'extra_specs': {'resources:VGPU': '1', 'resources:FPGA': '1'}}, ''),
    ({'extra_specs': {'hw:cpu_policy': 'dedicated'}}, 'cold'),
    ({'extra_specs': {'hw:mem_encryption': 'true'}}, ''),
    ({'memory_mb': 4097}, ''),
])
def test_the_kind_that_allows_least_decides(fields, expected):
    assert way_of(Rules(ways=WAYS, most_memory_mb=4096), **fields) == expected


def test_what_is_too_large_for_a_live_migration_may_be_moved_cold():
    rules = Rules(ways={'memory': 'cold'}, most_memory_mb=8192)
    assert way_of(rules, memory_mb=8193) == 'cold'
    assert way_of(rules, memory_mb=8193, extra_specs=SAID) == 'cold'
    assert way_of(rules, memory_mb=8192) == 'live'


@pytest.mark.parametrize('hint, live, cold', [
    ('true', 'live', 'cold'), ('live', 'live', 'cold'),
    ('cold', 'cold', 'cold'), ('false', '', ''), ('maybe', 'live', 'cold'),
])
def test_the_hint_can_only_forbid(hint, live, cold):
    rules = Rules(ways=WAYS)
    assert way_of(rules, hint=hint) == live
    assert way_of(rules, hint=hint, devices=True) == cold
    assert way_of(rules, hint=hint, extra_specs={
        'hw:mem_encryption': 'true',
    }) == ''


@pytest.mark.parametrize('said, expected', [
    ('cold', 'cold'), ('Live', 'live'), ('yes', 'live'), ('no', ''),
    ('perhaps', 'cold'),
])
def test_the_flavor_says_how_its_instances_are_moved(said, expected):
    assert way_of(
        Rules(ways=WAYS), devices=True, extra_specs={'blazar:movable': said}
    ) == expected


def test_the_owner_has_time_to_choose_when_a_cold_move_begins():
    rules = Rules(lead=600, cold_notice=7200, shortest_stay=900)
    assert (rules.lead_of('live'), rules.lead_of('cold')) == (600, 7800)
    assert rules.least_stay('live') == 900
    assert rules.least_stay('cold') == 7800


def test_the_flavor_overrides_the_hint():
    assert not movable(hint='true', extra_specs={'blazar:movable': 'false'})
    assert movable(hint='false', extra_specs=SAID)
    assert not movable(hint='false')
    assert movable(hint='true')


@pytest.mark.parametrize('memory_mb, moved', [(8192, True), (8193, False)])
def test_the_limit_of_memory_holds_for_all(memory_mb, moved):
    rules = Rules(most_memory_mb=8192)
    assert movable(rules, memory_mb=memory_mb) is moved
    assert movable(rules, memory_mb=memory_mb, extra_specs=SAID) is moved


@pytest.mark.parametrize('end, expected', [
    (250, [(0, 100), (90, 200), (190, 250)]),
    (195, [(0, 100), (90, 195)]),
    (95, []),
    (400, []),
])
def test_an_instance_with_another_end_keeps_its_path_until_then(end, expected):
    path = (Stay('a', 0, 100), Stay('b', 90, 200), Stay('c', 190, 300))
    instance = Instance('i', 'a', 'p', {'VCPU': 1}, end=300, path=path)
    new = instance.ending_at(end)
    assert new.end == end
    assert [(stay.start, stay.end) for stay in new.path] == expected
