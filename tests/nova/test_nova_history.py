# SPDX-License-Identifier: Apache-2.0
"""The past of a cloud, as Nova and Placement show it."""

import time
import uuid

from openstack import connection
from openstack import service_description
import pytest
from rich import progress

from blazar_sched.parts.simulate import nova_history
from blazar_sched.parts.simulate import trace
from tests.nova import clouds

DAY = 86400
# The history of a cloud has the servers of all tests.
CLOUD = clouds.Kind('history', ('c1', 'c2'))


def make_proxy(service, sdk):
    [proxy] = service.supported_versions.values()
    return sdk.config.get_session_client(
        service.service_type, constructor=proxy
    )


@pytest.fixture
def sdk(bare_cloud, monkeypatch):
    # Nova's fixtures let the SDK make proxies that have no methods.
    monkeypatch.setattr(
        service_description.ServiceDescription, '_make_proxy', make_proxy
    )
    # Every list has several pages.
    with bare_cloud.restoring(), connection.Connection(
        session=bare_cloud.session()
    ) as sdk:
        bare_cloud.configure('api', max_limit=2)
        # No manager will answer the scheduler.
        bare_cloud.configure(start_timeout=0)
        yield sdk


@pytest.fixture
def read(sdk):
    """read(begin, end) returns the history of the cloud."""

    def read(begin, end):
        with progress.Progress(disable=True) as bar:
            return nova_history.read(sdk, begin, end, bar)

    return read


@pytest.fixture
def boot(bare_cloud):
    booted = []

    def boot(flavor, **parameters):
        booted.append(bare_cloud.boot(flavor, **parameters))
        assert booted[-1]['status'] == 'ACTIVE'
        return booted[-1]

    yield boot
    left = {server['id'] for server in bare_cloud.servers()}
    bare_cloud.delete(*(each for each in booted if each['id'] in left))


def test_hosts_have_the_capacity_that_placement_hands_out(bare_cloud, read):
    provider = f'/resource_providers/{bare_cloud.hosts["c2"]}'
    placement = bare_cloud._nova.placement.api
    child = str(uuid.uuid4())
    shown = placement.get(f'{provider}/inventories').body
    held = {**shown, 'inventories': {**shown['inventories']}}
    held['inventories']['VCPU'] = {
        **held['inventories']['VCPU'], 'allocation_ratio': 4.0
    }
    placement.put(f'{provider}/inventories', held)
    placement.post('/resource_providers', {
        'name': 'cards', 'uuid': child,
        'parent_provider_uuid': bare_cloud.hosts['c2'],
    }, version='1.20')
    placement.put(f'/resource_providers/{child}/inventories', {
        'resource_provider_generation': 0,
        'inventories': {'VGPU': {'total': 4}},
    })

    hosts = {each.name: each for each in read(0, 1).hosts}

    assert hosts == {
        'c1': trace.Host('c1', 8, 16384), 'c2': trace.Host('c2', 32, 16384, 4)
    }
    placement.delete(f'/resource_providers/{child}')


@pytest.mark.more
def test_kinds_of_servers_that_exist(bare_cloud, boot, read):
    yields = bare_cloud.flavor(extra_specs={'blazar:preemptible': 'true'})
    day = bare_cloud.flavor(2, 1024, extra_specs={'blazar:lifetime': '1d'})
    plain = bare_cloud.flavor(3)
    reserved = bare_cloud.flavor(extra_specs={
        'blazar:reservation': str(uuid.uuid4()),
    })
    now = int(time.time())
    for flavor, hints in (
        (yields, {}), (day, {}), (plain, {}), (plain, {'lifetime': '2d'}),
    ):
        boot(flavor, hints=hints, project_id='another')
    # The reservation does not exist, so no host admits the server.
    bare_cloud.boot(reserved)

    history = read(now - DAY, now + 3600)

    found = {
        (each.vcpus, each.memory_mb, each.kind, each.declared)
        for each in history.instances
    }
    assert history.servers == len(history.instances) == 4
    assert found == {
        (1, 512, trace.PREEMPTIBLE, None),
        (2, 1024, trace.BOUNDED, DAY),
        (3, 512, trace.UNBOUNDED, None),
        (3, 512, trace.BOUNDED, 2 * DAY),
    }
    for each in history.instances:
        assert each.arrival + each.lifetime == DAY + 3600
        assert DAY <= each.arrival <= DAY + 30
    # Servers that are older than the window arrive with it.
    assert {
        (each.arrival, each.lifetime)
        for each in read(now + 1800, now + 3600).instances
    } == {(0, 1800)}


@pytest.mark.row('F119')
@pytest.mark.more
def test_deleted_and_shelved_servers(bare_cloud, boot, read, monkeypatch):
    monkeypatch.setattr(nova_history, '_BUILD', 0)
    bare_cloud.configure(shelved_offload_time=0, group='DEFAULT')
    # Servers that another test has deleted have more memory.
    flavors = [bare_cloud.flavor(vcpus, 256) for vcpus in (1, 2, 3)]
    deleted, shelved, returned = map(boot, flavors)
    # Times of Nova have whole seconds.
    time.sleep(1.1)
    for server in shelved, returned:
        bare_cloud.act(server, 'shelve', 'SHELVED_OFFLOADED')
    bare_cloud.delete(deleted)
    time.sleep(2.1)
    bare_cloud.act(returned, 'unshelve')
    now = int(time.time())

    history = read(now - DAY, now + 3600)

    stays = {}
    for each in history.instances:
        if each.memory_mb == 256:
            stays.setdefault(each.vcpus, []).append(each)
    assert len(history.instances) == history.servers + 1
    assert {vcpus: len(found) for vcpus, found in stays.items()} == {
        1: 1, 2: 1, 3: 2
    }
    # Only the server that has come back is there until now.
    back, first = stays[3]
    assert back.arrival + back.lifetime == DAY + 3600
    assert first.arrival + first.lifetime + 2 <= back.arrival
    for [gone] in (stays[1], stays[2], [first]):
        assert gone.arrival + gone.lifetime <= DAY
    # A server that was deleted before the window is left out, and so is a
    # server that was shelved then.
    assert [each.vcpus for each in read(now + 60, now + 3600).instances] == [3]
