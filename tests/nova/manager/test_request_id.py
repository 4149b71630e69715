# SPDX-License-Identifier: Apache-2.0
"""One request, found by its id in the logs of all services that act for it.

The API, the bus, the manager and Nova with its scheduler are the real ones.
"""

import json
import logging
import time

from nova import context as nova_context
from nova.api import auth
from oslo_context import context
from oslo_log import formatters
from oslo_messaging.notify import _impl_test
import pytest
import requests

from blazar_sched.service.api import deploy
from blazar_sched.service.bus import rpc
from tests import loopback
from tests.nova import clouds

pytestmark = pytest.mark.more

CLOUD = clouds.PAIR
HEADER = 'X-OpenStack-Request-ID'
REGISTER = 'req-11111111-1111-4111-8111-111111111111'
CREATE = 'req-22222222-2222-4222-8222-222222222222'


@pytest.fixture
def conf(conf):
    _impl_test.reset()
    conf.set_override('driver', ['test'], 'oslo_messaging_notifications')
    conf.set_override('auth_strategy', 'noauth', 'api')
    # A lease that starts in a minute vacates its host at once.
    conf.set_override('vacate_notice', 0, 'manager')
    yield conf
    _impl_test.reset()


@pytest.fixture(autouse=True)
def ids(monkeypatch):
    """Nova keeps the ids of a request, as it does behind a Keystone.

    Nova's fixture drops them. Nova's API also runs in the thread of its client
    here, whose context it replaces.
    """
    create = auth.NovaKeystoneContext._create_context
    send = requests.Session.send

    def create_context(env, **kwargs):
        ids = nova_context.RequestContext.from_environ(env)
        return create(env, global_request_id=ids.global_request_id, **kwargs)

    def send_and_restore(session, *args, **kwargs):
        caller = context.get_current()
        try:
            return send(session, *args, **kwargs)
        finally:
            if caller is not None:
                caller.update_store()

    monkeypatch.setattr(
        auth.NovaKeystoneContext, '_create_context',
        staticmethod(create_context),
    )
    monkeypatch.setattr(requests.Session, 'send', send_and_restore)


@pytest.fixture
def said():
    """The log lines of all services: (logger, message, context)."""
    lines = []

    class Handler(logging.Handler):
        def emit(self, record):
            line = json.loads(self.format(record))
            lines.append((line['name'], line['message'], line['context']))

    handler = Handler()
    handler.setFormatter(formatters.JSONFormatter())
    logging.getLogger().addHandler(handler)
    yield lines
    logging.getLogger().removeHandler(handler)


def found(lines, id_, logger, text):
    """Tell whether a line of this logger with this text has the id."""
    return any(
        name.startswith(logger) and text in message and id_ in (
            ids.get('request_id'), ids.get('global_request_id')
        )
        for name, message, ids in list(lines)
    )


@pytest.fixture
def post(conf, manager):
    """post(id, path, **body): a request of that id to the API."""
    bus = rpc.Client(rpc.transport(conf))
    client = loopback.client(deploy.deploy(conf, bus))

    def post(id_, path, **body):
        answer = client.simulate_post(path, json=body, headers={HEADER: id_})
        assert answer.status_code == 201, answer.text

    return post


def test_a_request_and_an_event_are_found_by_their_ids(
    cloud, manager, post, said, caplog, wait_for, host_of
):
    caplog.set_level(logging.DEBUG, 'nova.scheduler.manager')
    for name in cloud.hosts:
        post(REGISTER, '/v1/os-hosts', name=name)
    for logger, text in (
        ('blazar_sched.service.api', "asked POST '/v1/os-hosts'"),
        ('blazar_sched.service.bus', 'Done: create_host'),
        ('nova.api', 'GET /v2.1/os-hypervisors'),
    ):
        assert found(said, REGISTER, logger, text), said

    # The server has to leave its host before the lease starts; the lease is
    # placed as if the ledger had no record of the server yet.
    server = cloud.boot(cloud.flavor(), availability_zone='nova:compute-1')
    start = time.time() + 120
    with manager.instances._lock:
        for known in manager.ledger.instances():
            manager.ledger.commit(
                lambda tx, uuid=known.uuid: tx.delete_instances([uuid])
            )
        post(
            CREATE, '/v1/leases', name='night', events=[],
            start_date=minute(start), end_date=minute(start + 600),
            reservations=[{
                'resource_type': 'physical:host', 'min': 1, 'max': 1,
                'hypervisor_properties': '',
                'resource_properties':
                    '["==", "$hypervisor_hostname", "compute-1"]',
            }],
        )
    wait_for('moved', lambda: host_of(cloud.show(server)) == 'compute-2')
    [event] = {
        ids['request_id'] for _, message, ids in said
        if message.startswith('Requesting live_migrate of server')
    }
    assert event not in (None, CREATE)
    for logger, text in (
        ('nova.api', f'POST /v2.1/servers/{server["id"]}/action'),
        ('nova.scheduler', 'Starting to schedule'),
    ):
        assert found(said, event, logger, text), said

    sent = {}

    def notified():
        sent.update(
            (message['event_type'], caller)
            for caller, message, *_ in list(_impl_test.NOTIFICATIONS)
        )
        return {'lease.create', 'instance.vacate'} <= sent.keys()

    wait_for('notified', notified)
    assert sent['lease.create']['global_request_id'] == CREATE
    assert sent['instance.vacate']['request_id'] == event


def minute(at):
    return time.strftime('%Y-%m-%d %H:%M', time.gmtime(at))
