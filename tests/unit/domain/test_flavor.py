# SPDX-License-Identifier: Apache-2.0
"""The resources that a flavor requests; tests/nova compares with Nova."""

import pytest

from blazar_sched.domain import flavor


def resources(**extra_specs):
    """Return the resources of a flavor of 4 vCPUs, 1024 MiB and 10 GB."""
    return flavor.resources(
        4, 1024, 10,
        {key.replace('__', ':'): text for key, text in extra_specs.items()},
    )


PLAIN = {'VCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 10}


class TestResources:
    def test_of_a_plain_flavor(self):
        assert resources() == PLAIN
        assert resources(hw__numa_nodes='2') == PLAIN
        assert flavor.resources(1, 64, 0, {}) == {'VCPU': 1, 'MEMORY_MB': 64}

    def test_a_custom_class_is_asked_for_beside_the_figures(self):
        assert resources(resources__CUSTOM_GPU='2') == {
            **PLAIN, 'CUSTOM_GPU': 2
        }

    def test_groups_are_added_up(self):
        assert resources(
            resources__CUSTOM_GPU='1', resources1__CUSTOM_GPU='2',
            resources_NIC__CUSTOM_GPU='4',
        ) == {**PLAIN, 'CUSTOM_GPU': 7}

    def test_a_figure_is_overridden_even_by_nothing(self):
        assert resources(
            resources__VCPU='0', resources__MEMORY_MB='0',
            resources1__DISK_GB='3', resources__CUSTOM_BAREMETAL='1',
        ) == {'DISK_GB': 3, 'CUSTOM_BAREMETAL': 1}

    @pytest.mark.row('F3')
    def test_pcpu_takes_the_place_of_vcpu(self):
        assert resources(resources__PCPU='3') == {
            'PCPU': 3, 'MEMORY_MB': 1024, 'DISK_GB': 10
        }
        assert resources(hw__cpu_policy='dedicated') == {
            'PCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 10
        }

    def test_the_emulator_takes_a_cpu_of_its_own(self):
        asked = resources(
            hw__cpu_policy='dedicated', hw__emulator_threads_policy='isolate'
        )
        assert asked['PCPU'] == 5 and 'VCPU' not in asked
        assert resources(hw__emulator_threads_policy='isolate') == PLAIN

    @pytest.mark.parametrize('mask, pinned', [
        ('0-1', 2),
        ('3', 1),
        ('^0', 3),
        (' 0-3, ^1-2', 2),
        ('0-99999999999', 4),
        ('', 0),
        ('x', 0),
        ('2-x', 0),
    ])
    def test_a_mixed_flavor_pins_those_of_its_mask(self, mask, pinned):
        asked = resources(hw__cpu_policy='mixed', hw__cpu_dedicated_mask=mask)
        assert asked.get('VCPU', 0) == 4 - pinned
        assert asked.get('PCPU', 0) == pinned

    @pytest.mark.parametrize('key, text', [
        ('resources:CUSTOM_GPU', 'many'),
        ('resources:CUSTOM_GPU', '-1'),
        ('resources:CUSTOM_GPU', '1.5'),
        ('resources:GRAPHICS', '1'),
        ('resources', '1'),
        ('xresources:CUSTOM_GPU', '1'),
        ('resources:CUSTOM_RESERVATION_1234', '1'),
    ])
    def test_what_asks_nothing_of_a_host_is_left_out(self, key, text):
        assert flavor.resources(4, 1024, 10, {key: text}) == PLAIN


def test_traits_of_every_group():
    assert flavor.traits({
        'trait:HW_CPU_X86_AVX2': 'required', 'trait1:CUSTOM_FAST': 'required',
        'trait:CUSTOM_OLD': 'forbidden', 'trait:CUSTOM_ODD': 'wanted',
        'resources:CUSTOM_GPU': '1',
    }) == (('CUSTOM_FAST', 'HW_CPU_X86_AVX2'), ('CUSTOM_OLD',))
    assert flavor.traits({}) == ((), ())


@pytest.mark.row('F108')
@pytest.mark.parametrize('extra_specs, preemptible', [
    ({}, False),
    ({'blazar:preemptible': 'true'}, True),
    ({'lifecycle:preemptable': 'True'}, True),
    ({'lifecycle:preemptable': 'no'}, False),
    ({'blazar:preemptible': 'no', 'lifecycle:preemptable': 'yes'}, False),
])
def test_which_flavors_are_preemptible(extra_specs, preemptible):
    assert flavor.is_preemptible(extra_specs) is preemptible


@pytest.mark.parametrize('policy', ['shelve', 'delete', 'sell', None])
def test_unknown_preempt_policy_is_none(policy):
    specs = {} if policy is None else {'lifecycle:preempt_policy': policy}
    known = policy if policy in ('shelve', 'delete') else None
    assert flavor.preempt_policy(specs) == known


@pytest.mark.parametrize('extra_specs, reservation_id', [
    ({}, None),
    ({'blazar:reservation': 'a'}, 'a'),
    # The form in servers that were booted under Blazar.
    ({'aggregate_instance_extra_specs:reservation': 'a'}, 'a'),
])
def test_which_reservation_a_flavor_is_of(extra_specs, reservation_id):
    assert flavor.reservation_id(extra_specs) == reservation_id
