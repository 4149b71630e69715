# SPDX-License-Identifier: Apache-2.0
"""The manager as a caller on the bus sees it."""

import json
import time

from oslo_messaging._drivers import common
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.replica import wire
from blazar_sched.service.manager import rpc


@pytest.fixture
def call(world, conf):
    world.manager.start()
    client = rpc.Client(rpc.transport(conf), timeout=20)
    yield lambda method, **kwargs: client.call({}, method, **kwargs)
    world.manager.stop()


def lease_values(world, **values):
    return {
        'name': 'n',
        'project_id': 'project',
        'user_id': 'user',
        'start': world.now + 100,
        'end': world.now + 200,
        'before_end': 'default',
        'reservations': [
            {'resource_type': 'physical:host', 'min': 1, 'max': 1}
        ],
        **values,
    }


def test_leases_and_hosts(world, call):
    world.add_host('a', register=False)
    host = call('create_host', name='a', values={'gpu': 'yes'})
    assert host['inventory']['VCPU']['total'] == 8
    assert host['capabilities'] == {'gpu': 'yes'}
    assert call('list_hosts') == [host]
    assert call('get_host', host_id=host['id']) == host

    lease = call('create_lease', values=lease_values(world))
    id_ = lease['id']
    assert lease['status'] == 'PENDING'
    assert lease['reservations'][0]['parameters']['max'] == 1
    assert [e['event_type'] for e in lease['events']] == [
        'start_lease', 'before_end_lease', 'end_lease',
    ]
    assert json.loads(json.dumps(lease)) == lease
    assert call('get_lease', lease_id=id_, project_id='project') == lease
    assert call('list_leases', project_id=None) == [lease]
    assert call('list_leases', project_id='other') == []
    [allocations] = call('list_allocations')
    assert allocations['host_id'] == host['id']
    assert allocations['reservations'][0]['lease_id'] == id_
    assert call('list_properties') == [
        {'property': 'gpu', 'private': False, 'values': ['yes']}
    ]
    assert call('update_property', name='gpu', private=True)['private']

    renamed = call(
        'update_lease', lease_id=id_, project_id=None, values={'name': 'm'}
    )
    assert renamed['name'] == 'm'
    assert call('delete_lease', lease_id=id_, project_id=None) is None
    updated = call('update_host', host_id=host['id'], values={'gpu': None})
    assert updated['capabilities'] == {}
    assert call('delete_host', host_id=host['id']) is None
    assert call('list_hosts') == []


def test_refusals_keep_their_class_and_field(world, call):
    with pytest.raises(exception.InvalidInput) as refusal:
        call('create_lease', values=lease_values(world, end=1))
    assert refusal.value.field == 'end_date'
    assert refusal.value.status == 400
    with pytest.raises(exception.LeaseNotFound):
        call('get_lease', lease_id='x', project_id=None)
    with pytest.raises(exception.NotEnoughHostsAvailable):
        call('create_lease', values=lease_values(world))


def test_refusals_survive_a_real_bus():
    """What a broker carries is text: class, arguments and field."""
    error = exception.InvalidInput('bad end', field='end_date')
    text = common.serialize_remote_exception(
        (type(error), error, error.__traceback__)
    )
    back = common.deserialize_remote_exception(text, [exception.__name__])
    assert isinstance(back, exception.InvalidInput)
    assert (back.field, back.status) == ('end_date', 400)


def test_replicas_are_fed(world, call):
    world.add_host('a')
    world.create(end=window.FOREVER)
    changes = wire.parse_changes(call('changes', since=0, limit=100))
    snapshot = wire.parse_snapshot(call('snapshot', after=None, limit=100))
    assert changes.ledger == snapshot.ledger == world.ledger.id
    assert changes.revision == snapshot.revision == 2
    kinds = {kind for kind, _, _ in snapshot.records}
    assert kinds == {'host', 'reservation', 'allocation'}


def test_nobody_answers(conf):
    client = rpc.Client(rpc.transport(conf), timeout=0.2)
    with pytest.raises(exception.Unavailable):
        client.call({}, 'list_leases', project_id=None)


def test_a_bug_is_no_refusal(world, call):
    with pytest.raises(Exception) as failure:
        call('create_lease', values={})
    assert not isinstance(failure.value, exception.BlazarSchedError)
    assert call('list_leases', project_id=None) == []


def test_instances_are_watched(world, conf):
    conf.set_override('sync_interval', 0.1, 'manager')
    world.manager.start()
    world.add_host('a')
    server = world.add_server('a')
    deadline = time.monotonic() + 20
    while not world.ledger.instances() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [i.uuid for i in world.ledger.instances()] == [server.uuid]
    world.manager.stop()
