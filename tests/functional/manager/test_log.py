# SPDX-License-Identifier: Apache-2.0
"""The log at INFO tells the life of a lease, and who has asked for what."""

import logging
import re

from oslo_context import context
from oslo_messaging.notify import _impl_test
import pytest

from blazar_sched.domain import exception
from blazar_sched.service.bus import rpc
from tests.functional.manager.conftest import Clock
from tests.functional.manager.conftest import hosts
from tests.functional.manager.managed_cloud import NotifyingCloud

USER = context.RequestContext(
    user_id='ann', project_id='project', request_id='req-1', roles=['member'],
    auth_token='secret', overwrite=False,
).to_dict()


@pytest.fixture
def cloud(conf, caplog):
    caplog.set_level(logging.INFO, 'blazar_sched')
    cloud = NotifyingCloud(conf, Clock(), 'a', 'b')
    yield cloud
    _impl_test.reset()


@pytest.fixture
def call(cloud):
    """call(method, **kwargs) -> the answer of the manager, on the bus.

    The context is deserialized as in a thread of the server.
    """

    def call(method, **kwargs):
        ctxt = rpc._Contexts().deserialize_context(USER)
        return rpc.Local(cloud.manager.endpoint).call(ctxt, method, **kwargs)

    yield call
    context._request_store.__dict__.clear()


@pytest.fixture
def told(caplog):
    """told() -> the lines since the last call, with ids replaced."""

    def told():
        lines = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return [re.sub(r'[0-9a-f]{8}-[0-9a-f-]{27}', 'ID', x) for x in lines]

    return told


def create(cloud, call, **values):
    return call('create_lease', values={
        'name': 'night', 'project_id': 'project', 'user_id': 'ann',
        'start': cloud.now + 100, 'end': cloud.now + 200, 'before_end': None,
        'reservations': [hosts(**values)],
    })['id']


def test_the_life_of_a_lease(cloud, call, told):
    told()
    lease_id = create(cloud, call)
    of_lease = (
        'lease_id ID, name night, project_id project, user_id ann, '
        'start_date 2027-01-15T08:01:40.000000, '
        'end_date 2027-01-15T08:0{}.000000, status {}, degraded False'
    )
    assert told() == [
        'lease.create: ' + of_lease.format('3:20', 'PENDING'),
        'Done: create_lease id=ID',
    ]

    call(
        'update_lease', lease_id=lease_id, project_id='project',
        values={'end': cloud.now + 300},
    )
    assert told() == [
        'lease.update: ' + of_lease.format('5:00', 'PENDING'),
        'Done: update_lease lease_id=ID project_id=project id=ID',
    ]

    context._request_store.__dict__.clear()
    cloud.run(100)
    started, done = told()
    assert re.fullmatch(
        r'Manager \S+-\d+ has done event start_lease of lease ID in 0\.0 s, '
        r'on hosts: [ab]', done
    )
    host = done[-1]
    assert started == (
        'lease.event.start_lease: ' + of_lease.format('5:00', 'ACTIVE')
    )

    [reservation] = cloud.ledger.lease(lease_id).reservations
    cloud.cloud.add_server(host, 'project', reservation=reservation.id)
    cloud.run(200)
    assert told()[0] == (
        f'Requesting force_delete of server ID of project project on host '
        f'{host}'
    )
    cloud.cloud.settle()
    cloud.run(10)
    ended, done = told()
    assert re.search(r'done event end_lease of lease ID in 10\.0 s', done)
    assert ended == (
        'lease.event.end_lease: ' + of_lease.format('5:00', 'TERMINATED')
    )
    call('delete_lease', lease_id=lease_id, project_id='project')
    assert told() == [
        'lease.delete: ' + of_lease.format('5:00', 'TERMINATED'),
        'Done: delete_lease lease_id=ID project_id=project',
    ]


def test_a_refusal_is_told_with_its_reason(cloud, call, told):
    told()
    with pytest.raises(exception.NotEnoughHostsAvailable) as refusal:
        create(cloud, call, minimum=3, maximum=3)
    assert told() == [f'Refused: create_lease: {refusal.value}']


def test_hosts_are_told_of(cloud, call, told):
    told()
    for method in 'delete_host', 'get_host':
        try:
            call(method, host_id=cloud.hosts['a'])
        except exception.HostNotFound as e:
            gone = str(e).replace(cloud.hosts['a'], 'ID')
    assert told() == [
        'Done: delete_host host_id=ID',
        f'Refused: get_host host_id=ID: {gone}',
    ]


def test_notifications_say_who_has_asked(cloud, call):
    """The token is not sent, and what a manager does by itself has no user.
    """
    create(cloud, call)
    context._request_store.__dict__.clear()
    cloud.run(100)
    cloud.manager.notifier.step()
    asked, event = [sent[0] for sent in _impl_test.NOTIFICATIONS]
    assert asked == {
        'request_id': 'req-1', 'global_request_id': None, 'user_id': 'ann',
        'project_id': 'project', 'roles': ['member'],
        'manager': rpc.process_name(),
    }
    assert event == {**dict.fromkeys(asked), 'manager': rpc.process_name()}


def test_lines_of_an_event_name_its_lease(cloud, call, monkeypatch):
    lease_id = create(cloud, call)
    cloud.clock.now += 100
    seen = []
    monkeypatch.setattr(
        cloud.manager.runner, '_run',
        lambda *_: seen.append(context.get_current()),
    )
    [(event, claim)] = cloud.manager.runner.due()
    cloud.manager.runner._run_due(event, claim)
    assert [each.resource_uuid for each in seen] == [lease_id]
