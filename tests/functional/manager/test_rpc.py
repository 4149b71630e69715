# SPDX-License-Identifier: Apache-2.0
"""The manager as its clients on the bus see it."""

from concurrent import futures
import json
import threading
import time
from types import SimpleNamespace

from kombu import exceptions as kombu_exceptions
import oslo_messaging
from oslo_messaging._drivers import common
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.replica import puller
from blazar_sched.replica import wire
from blazar_sched.service import metrics
from blazar_sched.service import sending
from blazar_sched.service.bus import rpc
from blazar_sched.service.ledger import ledger
from blazar_sched.service.manager import manager
from tests.waiting import until


@pytest.fixture
def call(world, conf):
    world.manager.start()
    client = rpc.Client(rpc.transport(conf), timeout=20)
    yield lambda method, **kwargs: client.call({}, method, **kwargs)
    world.manager.stop()


def items(page):
    """Return the items of a list that fits into one page."""
    assert page['next'] is None
    return page['items']


def test_leases_and_hosts(world, call):
    world.add_host('a', register=False)
    host = call('create_host', name='a', values={'gpu': 'yes'})
    assert host['inventory']['VCPU']['total'] == 8
    assert host['capabilities'] == {'gpu': 'yes'}
    assert items(call('list_hosts')) == [host]
    assert call('get_host', host_id=host['id']) == host

    lease = call('create_lease', values=world.values(before_end='default'))
    id_ = lease['id']
    assert lease['status'] == 'PENDING'
    assert lease['reservations'][0]['parameters']['max'] == 1
    assert [e['event_type'] for e in lease['events']] == [
        'start_lease', 'before_end_lease', 'end_lease',
    ]
    assert json.loads(json.dumps(lease)) == lease
    assert call('get_lease', lease_id=id_, project_id='project') == lease
    assert items(call('list_leases', project_id=None)) == [lease]
    assert items(call('list_leases', project_id='other')) == []
    [allocations] = items(call('list_allocations'))
    assert allocations['host_id'] == host['id']
    assert allocations['reservations'][0]['lease_id'] == id_
    assert items(call('list_properties')) == [
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
    assert items(call('list_hosts')) == []


def test_refusals_keep_their_class_and_field(world, call):
    with pytest.raises(exception.InvalidInput) as refusal:
        call('create_lease', values={**world.values(), 'end': 1})
    assert refusal.value.field == 'end_date'
    assert refusal.value.status == 400
    with pytest.raises(exception.LeaseNotFound):
        call('get_lease', lease_id='x', project_id=None)
    with pytest.raises(exception.NotEnoughHostsAvailable):
        call('create_lease', values=world.values())


def test_refusals_survive_a_real_bus():
    """A broker carries text: the class, arguments and field of an error."""
    error = exception.InvalidInput('bad end', field='end_date')
    text = common.serialize_remote_exception(
        (type(error), error, error.__traceback__)
    )
    back = common.deserialize_remote_exception(text, [exception.__name__])
    assert isinstance(back, exception.InvalidInput)
    assert (back.field, back.status) == ('end_date', 400)


def test_replicas_are_fed(world, call):
    """Replicas are fed by a snapshot first, then by changes."""
    host = world.add_host('a')
    feed = puller.Puller(call, time.monotonic, lambda: 60)
    feed.pull(world.now)
    lease = world.create(end=window.FOREVER)
    feed.pull(world.now)
    assert feed.copy.ledger == world.ledger.id
    assert feed.copy.replica.revision == 2
    [held] = feed.copy.replica.indexes.allocations(
        lease.reservations[0].id
    ).values()
    assert (held.host, held.end) == (host, window.FOREVER)


@pytest.fixture
def call_two(conf, monkeypatch):
    """call_two(method, …): call; the first of two managers dies of the call.
    """
    client = rpc.Client(rpc.transport(conf))
    answers = iter([oslo_messaging.MessagingTimeout('dead'), 'the answer'])

    def call(ctxt, method, **kwargs):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(client, '_client', SimpleNamespace(call=call))
    return lambda method, **kwargs: client.call({}, method, **kwargs)


@pytest.mark.parametrize('method, arguments', [
    ('list_hosts', {}),
    ('get_lease', {'lease_id': 'l1', 'project_id': None}),
    ('create_lease', {'values': {}, 'idempotency_key': 'k'}),
    ('create_lease', {'values': {}, 'dry_run': True}),
])
def test_a_call_that_can_be_repeated_is_answered_by_another_manager(
    call_two, method, arguments
):
    assert call_two(method, **arguments) == 'the answer'


@pytest.mark.parametrize('method, arguments', [
    ('update_host', {'host_id': 'h1', 'values': {}}),
    ('create_lease', {'values': {}}),
    ('create_lease', {'values': {}, 'dry_run': False}),
    ('delete_host', {'host_id': 'h1'}),
])
def test_a_call_that_changes_something_is_sent_to_one_manager(
    call_two, method, arguments
):
    with pytest.raises(exception.Unavailable):
        call_two(method, **arguments)


def test_call_without_a_manager_is_unavailable(conf, monkeypatch):
    client = rpc.Client(rpc.transport(conf), timeout=0.2)
    with pytest.raises(exception.Unavailable):
        client.call({}, 'list_leases', project_id=None)
    monkeypatch.setattr(rpc, 'CHECK_TIMEOUT', 0.2)
    with pytest.raises(exception.Unavailable):
        client.check()


@pytest.mark.parametrize('trouble', [
    kombu_exceptions.OperationalError('refused'), ConnectionRefusedError(),
])
def test_the_broker_is_away_when_a_connection_is_made(
    conf, monkeypatch, trouble
):
    """oslo.messaging passes on the exceptions of its library then."""
    bus = rpc.transport(conf)

    def fail(*args, **kwargs):
        raise trouble

    monkeypatch.setattr(bus._driver, 'send', fail)
    with pytest.raises(exception.Unavailable):
        rpc.Client(bus).call({}, 'list_leases', project_id=None)


def test_a_check_looks_at_the_database_too(world, conf, monkeypatch):
    world.manager.start()
    client = rpc.Client(rpc.transport(conf), timeout=20)
    client.check()

    def away():
        raise exception.Unavailable('the database refused 1 attempts')

    monkeypatch.setattr(world.manager.ledger, 'require_writable', away)
    with pytest.raises(exception.Unavailable, match='database'):
        client.check()
    world.manager.stop()


def test_calls_over_the_bus_are_counted(world, conf, monkeypatch):
    world.manager.start()
    told = metrics.new()
    client = rpc.Client(rpc.transport(conf), timeout=20, metrics=told)
    client.check()
    with pytest.raises(exception.LeaseNotFound):
        client.call({}, 'get_lease', lease_id='none', project_id=None)

    def away():
        raise exception.Unavailable('away')

    monkeypatch.setattr(world.manager.ledger, 'require_writable', away)
    for _ in range(2):
        with pytest.raises(exception.Unavailable):
            client.check()
    world.manager.stop()
    assert [
        told.registry.get_sample_value(
            f'{metrics.BUS_CALLS.name}_total', {'outcome': outcome}
        )
        for outcome in (metrics.ANSWERED, metrics.REFUSED, metrics.FAILED)
    ] == [1, 1, 2]


def test_a_bug_is_no_refusal(world, call):
    with pytest.raises(Exception) as failure:
        call('create_lease', values={})
    assert not isinstance(failure.value, exception.BlazarSchedError)
    assert items(call('list_leases', project_id=None)) == []


def test_instances_are_watched(world, conf):
    conf.set_override('sync_interval', 0.1, 'manager')
    world.manager.start()
    world.add_host('a')
    server = world.add_server('a')
    until(world.ledger.instances)
    assert [i.uuid for i in world.ledger.instances()] == [server.uuid]
    world.manager.stop()


def test_the_first_lease_finds_servers_of_the_time_without_managers(
    world, conf, monkeypatch
):
    """Nova shows the servers slowly; a request is sent in the meantime."""
    world.add_host('a')
    world.add_server('a')
    is_asked, may_answer = threading.Event(), threading.Event()
    servers = world.nova.servers

    def slow(**filters):
        is_asked.set()
        assert may_answer.wait(20)
        return servers(**filters)

    monkeypatch.setattr(world.nova, 'servers', slow)
    client = rpc.Client(rpc.transport(conf), timeout=20)
    with futures.ThreadPoolExecutor() as pool:
        start = pool.submit(world.manager.start)
        assert is_asked.wait(20)
        lease = pool.submit(
            client.call, {}, 'create_lease', values=world.values()
        )
        may_answer.set()
        with pytest.raises(exception.NotEnoughHostsAvailable):
            lease.result(20)
        start.result(20)
    world.manager.stop()


def test_a_manager_answers_while_nova_is_away(world, conf):
    world.nova.failures = 1000
    world.manager.start()
    client = rpc.Client(rpc.transport(conf), timeout=20)
    assert items(client.call({}, 'list_leases', project_id=None)) == []
    world.manager.stop()


class Listener:
    """The listener of a replica's worker, which records revisions."""

    def __init__(self):
        self.heard = []

    def newest(self, ctxt, revision, ledger):
        self.heard.append((revision, ledger))


@pytest.fixture
def listener(conf):
    listener = Listener()
    server = oslo_messaging.get_rpc_server(
        rpc.transport(conf),
        oslo_messaging.Target(
            exchange=wire.EXCHANGE, topic=wire.NEWS_TOPIC, server='worker'
        ),
        [listener], executor='threading',
        access_policy=oslo_messaging.DefaultRPCAccessPolicy,
    )
    server.start()
    yield listener
    server.stop()
    server.wait()


def test_a_new_revision_is_told(world, call, listener):
    world.add_host('a')
    until(lambda: listener.heard[-1:] == [(1, world.ledger.id)])
    world.create(start=100)
    until(lambda: listener.heard[-1:] == [(2, world.ledger.id)])
    # Changes that no replica needs are not announced.
    world.ledger.commit(lambda tx: None)
    world.create(start=300, end=400)
    until(lambda: listener.heard[-1:] == [(3, world.ledger.id)])
    assert len(listener.heard) == 3


def test_a_bus_that_hangs_delays_no_commit(world, call, listener, monkeypatch):
    """Only the newest of the revisions since then is announced."""
    held, hold = threading.Event(), threading.Event()
    client = world.manager._fanout._client
    cast = client.cast

    def slow(*args, **kwargs):
        held.set()
        assert hold.wait(20)
        cast(*args, **kwargs)

    monkeypatch.setattr(world.manager._fanout, '_client', SimpleNamespace(
        cast=slow
    ))
    world.add_host('a')
    assert held.wait(20)
    for n in range(5):
        world.create(start=1000 * n + 100, end=1000 * n + 200)
    hold.set()
    until(lambda: len(listener.heard) == 2)
    assert [revision for revision, _ in listener.heard] == [1, 6]


def test_a_bus_that_is_away_kills_no_herald(
    world, call, listener, monkeypatch
):
    client = world.manager._fanout._client
    failures = [oslo_messaging.MessageDeliveryFailure('away')]

    def cast(*args, **kwargs):
        if failures:
            raise failures.pop()
        client.cast(*args, **kwargs)

    monkeypatch.setattr(
        world.manager._fanout, '_client', SimpleNamespace(cast=cast)
    )
    world.add_host('a')
    until(lambda: not failures)
    world.add_host('b')
    until(lambda: [r for r, _ in listener.heard] == [2])


def test_manager_prunes_old_changes(world, conf):
    conf.set_override('changes_kept', 3, 'manager')
    world.add_hosts('a', 'b', 'c', 'd', 'e', 'f')
    assert world.ledger.changes(0)['revision'] is not None
    for _ in range(2):
        world.manager._prune()
    assert world.ledger.changes(2)['revision'] is None
    assert world.ledger.changes(3)['revision'] == 6


def test_leases_are_kept_for_as_long_as_is_configured(
    world, whole, conf, monkeypatch
):
    monkeypatch.setattr(ledger, 'PURGE_SLICE', 1)
    monkeypatch.setattr(manager, 'PURGE_SLICES', 2)
    world.add_host('a')
    for n in range(3):
        world.create(whole(), start=10 * n, end=10 * n + 5)
    world.run(40)
    for seconds, left in ((0, 3), (3600, 3), (10, 1), (10, 0)):
        conf.set_override('keep_leases', seconds, 'manager')
        world.manager._prune()
        assert len(world.ledger.leases()) == left


def test_old_leases_are_deleted_by_default(world, whole):
    world.add_host('a')
    world.create(whole(), start=0, end=10)
    world.run(40)
    for days, left in ((365, 1), (2, 0)):
        world.clock.now += days * 86400
        world.manager._prune()
        assert len(world.ledger.leases()) == left


@pytest.mark.parametrize('method, kwargs', [
    ('get_lease', {}),
    ('get_lease', {'lease_id': {}, 'project_id': []}),
    ('create_lease', {'values': []}),
    ('create_lease', {'values': None, 'idempotency_key': 1}),
    ('changes', {'since': 'x', 'limit': None}),
    ('snapshot', {'after': 1, 'limit': -1}),
])
def test_unreadable_call_is_refused_without_harm(world, call, method, kwargs):
    with pytest.raises(Exception) as failure:
        call(method, **kwargs)
    assert not isinstance(failure.value, exception.Unavailable)
    assert call('ping') is None


@pytest.mark.parametrize('method, kwargs, named', [
    ('no_such_method', {}, 'no_such_method'),
    ('_answer', {}, '_answer'),
    ('list_leases', {'project_id': None, 'colour': 'red'}, 'colour'),
])
def test_a_call_of_the_next_version_is_refused_without_harm(
    world, call, method, kwargs, named
):
    with pytest.raises(
        exception.Unavailable, match=f'{named}: not all managers'
    ):
        call(method, **kwargs)
    assert call('ping') is None


def test_calls_are_refused_until_a_manager_has_answered(
    world, conf, monkeypatch
):
    monkeypatch.setattr(rpc, 'START_TIMEOUT', 0.1)
    client = rpc.Client(rpc.transport(conf), timeout=20)
    client.connect()
    with pytest.raises(exception.Unavailable, match='yet'):
        client.call({}, 'list_leases', project_id=None)
    world.manager.start()

    def answered():
        try:
            listed = client.call({}, 'list_leases', project_id=None)
        except exception.Unavailable:
            return False
        return items(listed) == []

    until(answered)
    world.manager.stop()


def test_a_bus_that_is_slower_than_heartbeats_is_connected_to(
    world, conf, monkeypatch
):
    """As a broker is whose disk is busy: every answer took five seconds."""
    world.manager.start()
    bus = rpc.transport(conf)
    send = bus._driver.send

    def slow(*args, call_monitor_timeout=None, **kwargs):
        if call_monitor_timeout is not None:
            raise oslo_messaging.MessagingTimeout
        return send(*args, **kwargs)

    monkeypatch.setattr(bus._driver, 'send', slow)
    (client := rpc.Client(bus, timeout=20)).connect()
    monkeypatch.setattr(bus._driver, 'send', send)
    assert items(client.call({}, 'list_leases', project_id=None)) == []
    world.manager.stop()


def test_a_call_under_way_is_answered_when_the_manager_stops(
    world, conf, monkeypatch
):
    world.manager.start()
    asked, hold = threading.Event(), threading.Event()
    leases = world.ledger.leases

    def slow(*args, **kwargs):
        asked.set()
        assert hold.wait(20)
        return leases(*args, **kwargs)

    monkeypatch.setattr(world.ledger, 'leases', slow)
    client = rpc.Client(rpc.transport(conf), timeout=20)
    with futures.ThreadPoolExecutor(2) as pool:
        answer = pool.submit(client.call, {}, 'list_leases', project_id=None)
        assert asked.wait(20)
        stopping = pool.submit(world.manager.stop)
        until(lambda: world.runner.stopping)
        hold.set()
        assert items(answer.result(20)) == []
        stopping.result(20)


class SlowServer:
    """A stand-in for a server whose bus is away until `broker` is set."""

    def __init__(self):
        self.broker = threading.Event()
        self.is_stopped = threading.Event()

    def start(self):
        self.broker.wait()

    def stop(self):
        self.is_stopped.set()

    def wait(self):
        pass


def test_server_that_starts_after_its_stop_stops(monkeypatch):
    """Nothing waits for the server, and it takes no message."""
    monkeypatch.setattr(rpc, 'START_TIMEOUT', 0)
    server = SlowServer()
    background = rpc.Background(server)
    background.start()
    background.stop()
    assert not server.is_stopped.is_set()
    server.broker.set()
    assert server.is_stopped.wait(20)


class TestSentAgain:
    """A call that is delivered after it was sent again, and answered."""

    @pytest.fixture
    def world(self, world):
        world.add_host('a')
        return world

    def create(self, world, number, call_id='req-1', key='k'):
        """Have the manager handle a sending; return the id, or the refusal."""
        try:
            return world.manager.endpoint.create_lease(
                {'request_id': call_id, sending.NUMBER: number},
                values=world.values(), idempotency_key=key,
            )['id']
        except oslo_messaging.ExpectedException as e:
            return type(e.exc_info[1])

    def test_what_is_refused_is_not_created_later(self, world):
        taken = self.create(world, 1, 'req-0', 'taken')
        assert self.create(world, 2) is exception.NotEnoughHostsAvailable
        world.leases.delete(taken, None)
        world.run()
        assert self.create(world, 1) is exception.Unavailable
        assert world.ledger.leases() == []
        # The client repeats the request itself, with the same key.
        made = self.create(world, 1, 'req-2')
        assert [each.id for each in world.ledger.leases()] == [made]

    def test_without_numbers_it_would_be(self, world):
        """The control: a lease that nobody knows."""
        taken = self.create(world, None, 'req-0', 'taken')
        assert self.create(world, None) is exception.NotEnoughHostsAvailable
        world.leases.delete(taken, None)
        world.run()
        assert world.ledger.lease(self.create(world, None))

    def test_what_the_first_sending_has_created_is_the_answer(self, world):
        made = self.create(world, 1)
        assert self.create(world, 2) == made
        assert self.create(world, 3) == made
        assert len(world.ledger.leases()) == 1

    def test_an_attempt_is_stopped_in_its_commit(self, world, monkeypatch):
        """The second sending is answered while the first waits to commit."""
        taken = self.create(world, 1, 'req-0', 'taken')
        once = world.manager.bookings.once

        def again():
            assert self.create(world, 2) is exception.NotEnoughHostsAvailable
            world.leases.delete(taken, None)
            world.run()

        def late(*args):
            monkeypatch.undo()
            futures.ThreadPoolExecutor(1).submit(again).result()
            return once(*args)

        monkeypatch.setattr(world.manager.bookings, 'once', late)
        assert self.create(world, 1) is exception.Unavailable
        assert world.ledger.leases() == []

    def test_each_sending_has_its_number(self, world, conf, monkeypatch):
        sent = []

        def call(ctxt, method, **kwargs):
            sent.append((method, ctxt.get(sending.NUMBER)))
            # As if a manager had died at once.
            raise oslo_messaging.MessagingTimeout

        client = rpc.Client(rpc.transport(conf), timeout=20)
        monkeypatch.setattr(client, '_client', SimpleNamespace(call=call))
        for method, kwargs in (
            ('create_lease', {'values': {}, 'idempotency_key': 'k'}),
            ('create_lease', {'values': {}}), ('get_lease', {}),
        ):
            with pytest.raises(exception.Unavailable):
                client.call({}, method, **kwargs)
        assert sent == [
            *(('create_lease', n) for n in (1, 2, 3)), ('create_lease', None),
            *3 * [('get_lease', None)],
        ]
