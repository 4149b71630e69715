# SPDX-License-Identifier: Apache-2.0
"""The data that filters and weighers leave on Nova's objects."""

import re
import uuid

from nova import objects
from nova.objects.flavor import Flavor
from nova.objects.request_spec import RequestSpec
from nova.scheduler import request_filter
from nova.scheduler.host_manager import HostState
import pytest

from blazar_sched import filters
from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.replica import accounting
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.weighers import all_weighers
from blazar_sched.worker import nova_objects
from blazar_sched.worker import process

NOW = 1_800_000_000
GPU = 'CUSTOM_GPU'

objects.register_all()


@pytest.fixture(autouse=True)
def own_request_filters(monkeypatch):
    known = list(request_filter.ALL_REQUEST_FILTERS)
    monkeypatch.setattr(request_filter, 'ALL_REQUEST_FILTERS', known)


def make_host_state():
    found = HostState('c1', 'c1', str(uuid.uuid4()))
    found.uuid = str(uuid.uuid4())
    found.total_usable_ram_mb = found.free_ram_mb = 8192
    found.free_disk_mb = 100 * 1024
    found.vcpus_total = 8
    found.instances = {}
    return found


def make_spec():
    return RequestSpec(
        instance_uuid=str(uuid.uuid4()), project_id='p1', is_bfv=False,
        flavor=Flavor(
            vcpus=1, memory_mb=512, root_gb=1, ephemeral_gb=0, swap=0,
            extra_specs={f'resources:{GPU}': '1'},
        ),
        numa_topology=None, pci_requests=None, scheduler_hints={},
    )


def schedule(host_state, spec):
    """Filter, weigh and consume as nova-scheduler does, in one process."""
    replica = state.Replica(accounting.SchedulerAccounting)
    replica.advance(NOW)
    host = Host(host_state.uuid, '1', 'c1', inventory={
        inventory.VCPU: Inventory(8), inventory.MEMORY_MB: Inventory(8192),
        inventory.DISK_GB: Inventory(100), GPU: Inventory(4),
    })
    replica.load(1, [record.encode(host)])
    with process.following(replica, lambda: NOW):
        passing = [host_state]
        for each in filters.all_filters():
            passing = list(each().filter_all(passing, spec))
        assert passing == [host_state]
        for each in all_weighers():
            each().weigh_objects(
                [type('Weighed', (), {'obj': host_state})()], spec
            )
        host_state.consume_from_request(spec)
        return process.ensure_started().pending.by_host(replica)


def listed():
    return set(re.findall(r'`(_*blazar_sched\w+)`', nova_objects.__doc__))


def test_everything_left_on_the_objects_is_listed():
    host_state, spec = make_host_state(), make_spec()
    before, before_spec = set(vars(host_state)), set(vars(spec))
    pending = schedule(host_state, spec)
    [placed] = pending[host_state.uuid]
    assert placed.uuid == spec.instance_uuid
    left = set(vars(host_state)) - before | set(vars(spec)) - before_spec
    assert left == listed()


def test_a_host_state_keeps_its_own_class():
    """Its name and its base stay: Nova's drivers may test either."""
    host_state = make_host_state()
    schedule(host_state, make_spec())
    assert isinstance(host_state, HostState)
    assert type(host_state).__name__ == 'HostState'
    assert type(host_state) is not HostState


def test_the_observer_is_called_once_however_often_it_is_set():
    host_state, seen = make_host_state(), []

    def observe(*placed):
        seen.append(placed)

    for _ in range(2):
        nova_objects.observe_placements([host_state], observe)
    spec = make_spec()
    host_state.consume_from_request(spec)
    assert seen == [(host_state, spec)]
    assert host_state.num_instances == 1


def test_each_request_filter_is_registered_once():
    for _ in range(2):
        filters.all_filters()
    assert [
        each.__name__ for each in request_filter.ALL_REQUEST_FILTERS
        if each.__module__.startswith('blazar_sched')
    ] == ['leave_reservation', 'narrow_to_reservation']
