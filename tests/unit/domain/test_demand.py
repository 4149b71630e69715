# SPDX-License-Identifier: Apache-2.0
"""Demands are read and written as parameters, and say what a change means."""


import pytest

from blazar_sched.domain import demand
from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.demand import Lifetime
from blazar_sched.domain.demand import Other
from blazar_sched.domain.demand import Slots

HOSTS = {
    'min': 1, 'max': 3, 'hypervisor_properties': '[">", "$vcpus", "1"]',
    'resource_properties': '', 'before_end': 'snapshot',
}
SLOTS = {
    'vcpus': 2, 'memory_mb': 512, 'disk_gb': 0, 'amount': 3, 'affinity': False,
    'resource_properties': '["==", "$rack", "7"]', 'before_end': '',
}
FLAVOR = {
    'flavor_id': 'id', 'amount': 2, 'affinity': None,
    'resource_properties': '["and", ["==", "$trait:T", "true"]]',
    'before_end': 'default', 'asked_properties': '', 'name': 'gold',
    'vcpus': 2, 'memory_mb': 512, 'disk_gb': 1, 'ephemeral_gb': 3,
    'swap_mb': 4, 'extra_specs': {'trait:T': 'required'}, 'is_public': False,
    'resources': {'VCPU': 2, 'CUSTOM_GPU': 1},
}
GROUPS = {
    'isolate': False,
    'groups': [['', {'VCPU': 2}, [], []], ['1', {'CUSTOM_GPU': 1}, ['T'], []]],
}
LIFETIME = {
    'instance_id': 'i', 'resources': {'VCPU': 2}, 'amount': 1,
    'affinity': None, 'on_end': 'delete',
}
DEFAULT = requirements.parse('["==", "$kind", "cheap"]', 'x')


@pytest.mark.parametrize('resource_type, parameters', [
    ('physical:host', HOSTS),
    ('virtual:instance', SLOTS),
    (
        'virtual:instance',
        {**SLOTS, 'ephemeral_gb': 3, 'extra_specs': {'hw:a': 'b'}},
    ),
    ('virtual:instance', {**SLOTS, 'extra_specs': {'hw:a': 'b'}}),
    ('flavor:instance', FLAVOR),
    ('flavor:instance', {**FLAVOR, 'groups': GROUPS}),
    ('instance:lifetime', LIFETIME),
    (
        'instance:lifetime',
        {**LIFETIME, 'resource_properties': '["x"]', 'groups': GROUPS},
    ),
    ('acme:licence', {'seats': 3}),
])
def test_a_demand_is_written_as_it_was_read(resource_type, parameters):
    found = demand.decode(resource_type, parameters)
    assert found.resource_type == resource_type
    assert found.encode() == parameters


def test_a_demand_of_before_the_action_leaves_it_to_the_operator():
    old = {k: v for k, v in HOSTS.items() if k != 'before_end'}
    assert demand.decode('physical:host', old).before_end == 'default'


def test_the_slot_of_a_demand_is_what_one_instance_takes():
    found = demand.decode('virtual:instance', SLOTS)
    assert found.slot == {'VCPU': 2, 'MEMORY_MB': 512, 'DISK_GB': 0}
    assert found.slots_in({'VCPU': 7, 'MEMORY_MB': 9999}) == 3
    found = demand.decode(
        'virtual:instance', {**SLOTS, 'disk_gb': 5, 'ephemeral_gb': 3}
    )
    assert found.slot['DISK_GB'] == 8
    assert demand.decode('flavor:instance', FLAVOR).slot == {
        'VCPU': 2, 'CUSTOM_GPU': 1,
    }
    assert Hosts(1, 1).slot == Other('x', {}).slot == {}


def test_allocations_count_as_hosts_or_as_slots():
    held = [
        Allocation(n, 'r', n, 0, 1, {'VCPU': vcpus})
        for n, vcpus in (('a', 4), ('b', 2))
    ]
    assert Slots({'VCPU': 2, 'DISK_GB': 0}, 9).count(held) == 3
    assert Hosts(1, 9).count(held) == 2
    # What another package has is not on hosts.
    assert Other('x', {'amount': 5}).count([]) == 5


def test_a_lifetime_is_on_a_host_until_it_begins():
    lifetime = demand.decode('instance:lifetime', LIFETIME)
    assert lifetime.is_on_hosts(active=False)
    assert not lifetime.is_on_hosts(active=True)
    for on_hosts in (Hosts(1, 1), Slots({})):
        assert on_hosts.is_on_hosts(active=True)
    assert not Other('x', {}).is_on_hosts(active=False)


@pytest.mark.parametrize('asked, applies', [
    (Hosts(1, 1), True),
    (Hosts(1, 1, '["==", "$rack", "7"]'), True),
    (Hosts(1, 1, '', '["==", "$rack", "7"]'), False),
    (demand.decode('virtual:instance', SLOTS), False),
    (demand.decode('flavor:instance', FLAVOR), True),
    (Lifetime({}, 1, None, '["x"]', instance_id='i', on_end=''), True),
    (Other('x', {'amount': 1}), False),
])
def test_a_default_requirement_applies_if_none_is_asked(asked, applies):
    found = asked.default_of(DEFAULT)
    assert found == (DEFAULT if applies else requirements.ANY)
    assert asked.default_of(requirements.ANY) == requirements.ANY


def test_the_requirements_of_hosts_both_count():
    both = Hosts(1, 1, '["==", "$rack", "7"]', '["==", "$kind", "a"]')
    assert both.requirement().names() == {'rack', 'kind'}


SLOT = {'VCPU': 2}


@pytest.mark.parametrize('old, new, shrinks', [
    (Hosts(1, 3), Hosts(1, 2), True),
    (Hosts(1, 3), Hosts(2, 2, before_end=''), True),
    (Hosts(1, 3), Hosts(1, 3), False),
    (Hosts(1, 3), Hosts(1, 2, '["==", "$rack", "7"]'), False),
    (Slots(SLOT, 3), Slots(SLOT, 2, before_end=''), True),
    (Slots(SLOT, 3), Slots(SLOT, 3), False),
    (Slots(SLOT, 3), Slots({'VCPU': 1}, 2), False),
    (Slots(SLOT, 3), Slots(SLOT, 2, True), False),
    (Other('x', {'amount': 3}), Other('x', {'amount': 2}), False),
])
def test_a_smaller_amount_alone_shrinks_a_demand(old, new, shrinks):
    assert new.shrinks(old) is shrinks


@pytest.mark.parametrize('old, new, left, no_more', [
    (Hosts(2, 3), Hosts(2, 3, before_end=''), None, True),
    (Hosts(2, 3), Hosts(1, 3), None, True),
    (Hosts(2, 3), Hosts(3, 3), None, False),
    (Hosts(2, 3), Hosts(1, 4), None, False),
    # The least number of hosts may rise to what is left.
    (Hosts(1, 3), Hosts(2, 2), 2, True),
    (Hosts(1, 3), Hosts(2, 2), 1, False),
    (Slots(SLOT, 3), Slots(SLOT, 3, before_end=''), None, True),
    (Slots(SLOT, 3), Slots(SLOT, 2), None, False),
    (Slots(SLOT, 3), Slots(SLOT, 2), 1, True),
    (Other('x', {'amount': 1}), Other('x', {'amount': 1}), None, True),
    (Other('x', {'amount': 1}), Other('x', {'amount': 2}), None, False),
])
def test_a_demand_that_asks_for_no_more_needs_no_room(old, new, left, no_more):
    held = left and [Allocation('a', 'r', 'a', 0, 1)] * left
    assert new.asks_no_more(old, held) is no_more


def test_requirements_are_limited_together_as_they_were_asked():
    long = f'["==", "$rack", "{"x" * 16000}"]'
    demand.check_size([Hosts(1, 1, long), Slots(SLOT, 1, None, long)])
    with pytest.raises(exception.InvalidInput):
        demand.check_size([Hosts(1, 1, long, '["==", "$a", "y"]' * 99)])


def test_a_demand_of_another_kind_is_an_error():
    with pytest.raises(TypeError):
        Hosts(1, 1).of_kind(Slots)
    assert Hosts(1, 1).of_kind(Hosts) == Hosts(1, 1)
