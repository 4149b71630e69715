# SPDX-License-Identifier: Apache-2.0
"""Managers, APIs and tables of several versions on one bus and database."""


import oslo_messaging
import pytest
import sqlalchemy as sa

from blazar_sched.cmd import main
from blazar_sched.cmd import worker_query
from blazar_sched.domain import exception
from blazar_sched.replica import wire
from blazar_sched.service.api import deploy
from blazar_sched.service.bus import rpc
from blazar_sched.service.bus import schedulers
from blazar_sched.service.ledger import migrations
from tests import loopback
from tests import released
from tests import tables


@tables.EVERY
def test_the_calls_of_the_last_release_are_answered():
    """Calls and answers only grow within a major version."""
    if rpc.VERSION.split('.')[0] != released.RELEASE['rpc'].split('.')[0]:
        return
    calls, answers = released.calls(), released.answers()
    for name, names in released.RELEASE['calls'].items():
        assert name in calls, f'{name} is gone: raise rpc.VERSION'
        assert {*names} - {'self'} <= calls[name].keys(), name
        for more in calls[name].keys() - {*names}:
            assert calls[name][more].default is None, (
                f'{more} of {name} is not in the last release: its default '
                'must be None, or rpc.VERSION be raised'
            )
    for name, names in released.RELEASE['answers'].items():
        assert {*names} <= {*answers[name]}, name


def test_an_argument_of_the_next_version_without_a_value_is_left_out(
    running, conf
):
    client = rpc.Client(rpc.transport(conf), timeout=20)
    answer = client.call({}, 'list_leases', project_id='project', colour=None)
    assert answer == {'items': [], 'next': None}


@pytest.fixture
def running(world):
    world.manager.start()
    yield world
    world.manager.stop()


class OldEndpoint:
    """The endpoint of a manager of version 1.0."""

    target = oslo_messaging.Target(version='1.0')

    def list_leases(self, ctxt, project_id):
        return []

    def ping(self, ctxt):
        pass


@pytest.fixture
def old_manager(conf):
    bus = rpc.transport(conf)
    server = oslo_messaging.get_rpc_server(
        bus,
        oslo_messaging.Target(
            exchange=rpc.EXCHANGE, topic=rpc.TOPIC, server='old'
        ),
        [OldEndpoint()], executor='threading',
        access_policy=oslo_messaging.DefaultRPCAccessPolicy,
    )
    server.start()
    yield
    server.stop()
    server.wait()


def test_an_older_api_is_refused_by_name(running, conf, monkeypatch):
    monkeypatch.setattr(rpc, 'VERSION', '1.0')
    client = rpc.Client(rpc.transport(conf), timeout=20)
    monkeypatch.undo()
    for method, values in ('list_leases', {}), ('create_lease', {}):
        with pytest.raises(exception.Unavailable) as refusal:
            client.call({}, method, **values)
        assert str(refusal.value) == (
            'the manager is of another version (3.0) than this API (1.0)'
        )


def test_a_manager_of_an_older_version_is_refused_by_name(old_manager, conf):
    conf.set_override('auth_strategy', 'noauth', 'api')
    client = rpc.Client(rpc.transport(conf), timeout=20)
    client.connect()
    api = loopback.client(deploy.deploy(conf, client))
    for answer in (
        api.get('/v1/leases'), api.post('/v1/os-hosts', json={'name': 'a'}),
        api.get('/healthcheck'),
    ):
        assert answer.status_code == 503
        assert 'another version than this API (3.0)' in answer.text


@pytest.mark.parametrize('name, refusal', [
    ('UnsupportedVersion', exception.Unavailable),
    ('ValueError', oslo_messaging.RemoteError),
])
def test_a_broker_carries_text(conf, monkeypatch, name, refusal):
    """Over a broker, an error of oslo.messaging is a RemoteError."""
    client = rpc.Client(rpc.transport(conf))

    def call(*args, **kwargs):
        raise oslo_messaging.RemoteError(name, 'on purpose', [])

    monkeypatch.setattr(client, '_client', type('', (), {'call': call})())
    with pytest.raises(refusal):
        client.call({}, 'list_leases')


@pytest.mark.parametrize('method', sorted(wire.MANAGER_METHODS))
def test_workers_are_not_refused(running, conf, method):
    """The wire version is in the pages of workers, not in their calls."""
    client = oslo_messaging.get_rpc_client(
        rpc.transport(conf),
        oslo_messaging.Target(
            exchange=wire.EXCHANGE, topic=wire.TOPIC, version=wire.RPC_VERSION
        ),
        timeout=20,
    )
    client.call({}, method, **{
        'changes': {'since': 0, 'limit': 1},
        'snapshot': {'after': None, 'limit': 1},
        wire.BOOK_METHOD: {'page': None, 'placed_at': 0},
    }[method])


class TestTables:
    @pytest.fixture
    def newer(self, world):
        """A manager whose tables another manager has upgraded."""
        world.add_host('a')
        world.ledger.require_current()
        with world.ledger._to_write.begin() as connection:
            connection.execute(
                sa.text("UPDATE alembic_version SET version_num = '9999'")
            )
        return world

    def test_manager_with_older_tables_commits_nothing(self, newer):
        revision = newer.ledger.newest()[1]
        for refused in (
            newer.create, newer.runner.step,
            lambda: rpc.Local(newer.manager.endpoint).check(),
            lambda: newer.ledger.write(lambda tx: None),
        ):
            with pytest.raises(exception.NotUpgraded) as refusal:
                refused()
            assert 'the tables are at migration 9999' in str(refusal.value)
        assert newer.ledger.newest()[1] == revision
        assert newer.ledger.leases(None) == []

    def test_a_manager_goes_on_with_newer_tables_that_only_grew(self, world):
        """The migration has this manager's number as the oldest."""
        world.add_host('a')
        world.ledger.require_current()
        number = migrations.number(migrations._known()[0])
        for newer, oldest, works in (
            (1, 0, True), (2, 0, True), (2, -1, True), (3, 1, False),
        ):
            name = f'{number + newer:04}_{number + oldest:04}_next'
            with world.ledger._to_write.begin() as connection:
                connection.execute(sa.text(
                    f"UPDATE alembic_version SET version_num = '{name}'"
                ))
            if works:
                lease = world.create()
                world.ledger.require_current()
                assert world.ledger.upgrade() == (name, name)
                world.run(10 ** 5)
                assert world.lease(lease).status == 'TERMINATED'
            else:
                for refused in (
                    world.create, world.ledger.require_current,
                    world.ledger.upgrade,
                ):
                    with pytest.raises(exception.NotUpgraded):
                        refused()

    def test_tables_of_this_version_are_no_trouble(self, world):
        world.ledger.require_current()
        world.add_host('a')
        world.create()
        world.run(100)
        assert len(world.ledger.leases(None)) == 1


@tables.EVERY
def test_replicas_name_managers_and_apis(running, conf, monkeypatch, capsys):
    bus = rpc.transport(conf)
    rpc.Client(bus, timeout=20).connect()
    answers = schedulers.query(bus, 3, wire.REPORT_METHOD)
    assert sorted(body['part'] for _, body in answers) == ['api', 'manager']
    for _, body in answers:
        assert body['rpc'] == rpc.VERSION
        assert body['wire'] == wire.WIRE_VERSION
        assert body['version']
    monkeypatch.setattr(worker_query, 'query', lambda args, method: answers)
    monkeypatch.setenv('COLUMNS', '200')
    # No worker of nova-scheduler has answered.
    assert main.main(['replicas']) == 1
    printed = capsys.readouterr().out
    assert ' manager ' in printed and ' api ' in printed


def test_the_version_has_a_name(capsys):
    with pytest.raises(SystemExit):
        main.main(['--version'])
    assert capsys.readouterr().out.startswith('blazar-sched 0.')
