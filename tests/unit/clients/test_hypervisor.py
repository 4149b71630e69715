# SPDX-License-Identifier: Apache-2.0
"""Hypervisors, in the forms of Nova's versions and virt drivers."""

import json

from novaclient.v2 import hypervisors
import pytest

from blazar_sched.domain import way
from blazar_sched.service.clients.nova import hypervisor

CPU = {'arch': 'x86_64', 'features': ["it's"], 'topology': {'cores': 2}}


@pytest.mark.parametrize('shown, read', [
    # An object from 2.28 on, a text before.
    ({'cpu_info': CPU}, CPU),
    ({'cpu_info': json.dumps(CPU)}, CPU),
    ({'cpu_info': {}}, {}),
])
def test_what_a_cpu_is_like_is_json(shown, read):
    assert json.loads(_read(shown).cpu_info) == read


@pytest.mark.parametrize('shown', [{}, {'cpu_info': None}, {'cpu_info': ''}])
def test_a_driver_may_say_nothing(shown):
    assert _read(shown).cpu_info == ''


@pytest.mark.parametrize('type_, movable', [
    ('QEMU', way.COLD), ('ironic', way.NOT),
])
def test_no_server_is_moved_from_a_node_of_ironic(type_, movable):
    found = _read({'hypervisor_type': type_}, {'compute-1': way.COLD})
    assert found.movable == movable


def _read(shown, ways=None):
    return hypervisor._hypervisor(
        hypervisors.Hypervisor(None, {
            'id': 'b1f5d6c4-0000-4000-8000-000000000000',
            'hypervisor_hostname': 'compute-1', 'hypervisor_type': 'QEMU',
            'hypervisor_version': 8002000, 'service': {'host': 'compute-1'},
            'state': 'up', 'status': 'enabled', **shown,
        }, loaded=True),
        {}, ways or {}
    )
