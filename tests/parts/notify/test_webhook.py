# SPDX-License-Identifier: Apache-2.0
"""Webhooks of projects, with real receivers on loopback."""

import base64
import contextlib
import dataclasses
import hashlib
import hmac
import json
import socket
import threading

import futurist
import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.parts.notify import manager as notify
from blazar_sched.parts.notify import models
from blazar_sched.parts.notify import webhook as rules
from blazar_sched.parts.notify.exception import WebhookNotFound
from blazar_sched.service import faults
from tests import told
from tests import waiting
from tests.functional.manager.conftest import hosts
from tests.parts.notify.sender import webhooks

# A time, and 8 seconds later as in a header.
NOON = 1_800_014_400
DATE = 'Fri, 15 Jan 2027 12:00:08 GMT'


@pytest.fixture
def near(conf, request):
    """A world whose webhooks may send to loopback."""
    conf.set_override('allowed_networks', ['127.0.0.0/8'], 'webhook')
    conf.set_override('timeout', 5, 'webhook')
    world = request.getfixturevalue('world')
    world.add_host('a')
    world.add_host('b')
    in_turn(world.manager)
    return world


def in_turn(manager):
    """Have a manager send in the thread of the step."""
    webhooks(manager)._pool = futurist.SynchronousExecutor()
    return manager


def waiting_bytes(world, made):
    """Return the bytes that wait for a webhook, counted in two ways."""
    with world.ledger._to_read.connect() as connection:
        [(count, size)] = connection.exec_driver_sql(
            'SELECT waiting, waiting_bytes FROM webhook '
            f"WHERE id = '{made['id']}'"
        )
        [found] = connection.exec_driver_sql(
            'SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0) '
            f"FROM webhook_delivery WHERE webhook_id = '{made['id']}'"
        )
    assert (count, size) == tuple(found)
    return size


@contextlib.contextmanager
def statements(world):
    """Yield the list of the SQL statements of the block."""
    found = []

    def note(connection, cursor, statement, *_):
        found.append(statement)

    engine = world.ledger._to_write
    sa.event.listen(engine, 'before_cursor_execute', note)
    yield found
    sa.event.remove(engine, 'before_cursor_execute', note)


@contextlib.contextmanager
def deletions(world):
    """Yield how many notifications each statement deletes."""
    found = []

    @sa.event.listens_for(world.ledger._to_write, 'after_cursor_execute')
    def note(_conn, cursor, statement, _parameters, _context, _many):
        if statement.startswith('DELETE FROM webhook_delivery'):
            found.append(cursor.rowcount)

    yield found
    sa.event.remove(world.ledger._to_write, 'after_cursor_execute', note)


@pytest.fixture
def hook():
    hook = told.Hook()
    yield hook
    hook.stop()


@pytest.fixture
def crash():
    """crash(name) -> end the work at this point, as a kill would."""

    def crash(name):
        def end(at):
            if at == name:
                faults.arm(None)
                raise RuntimeError('killed')

        faults.arm(end)

    yield crash
    faults.arm(None)


def register(world, url, *events, project='project'):
    return webhooks(world.manager).create({
        'project_id': project, 'url': url, 'events': events or ['lease.*'],
    })


def send(world, manager=None, seconds=0):
    world.clock.now += seconds
    webhooks(manager or world.manager).step()


def told_to(hook):
    """Return what was posted since the last call: (type, id of the lease)."""
    bodies = [json.loads(body) for _, _, body in hook.requests()]
    return [(b['type'], b['data']['lease_id']) for b in bodies]


def shown(world, webhook):
    return webhooks(world.manager).get(webhook['id'], 'project')


@pytest.mark.row('F90')
def test_a_lease_from_its_creation_to_its_end(near, hook):
    made = register(near, hook.url)
    lease = near.create(before_end=near.now + 150)
    for _ in range(5):
        near.run()
        near.clock.now += 50
    near.leases.delete(lease.id, None)
    near.leases.update(near.create(end=900).id, None, {'name': 'other'})
    send(near)
    posted = told_to(hook)
    assert [t for t, id_ in posted if id_ == lease.id] == [
        'lease.create', 'lease.event.start_lease',
        'lease.event.before_end_lease', 'lease.event.end_lease',
        'lease.delete',
    ]
    assert [t for t, _ in posted[5:]] == ['lease.create', 'lease.update']
    send(near)
    assert hook.requests() == []
    assert shown(near, made)['error'] is None


def test_servers_of_other_projects_are_not_named(near, conf, hook):
    conf.set_override('vacate_order', [], 'manager')
    server = near.add_server('a')
    near.create(hosts(2, 2))
    register(near, hook.url, 'lease.degraded')
    near.run(100)
    send(near)
    [(_, _, body)] = hook.requests()
    assert server.uuid not in body.decode()


def test_a_request_is_signed(near, hook):
    made = register(near, hook.url)
    near.create()
    send(near)
    [(path, headers, body)] = hook.requests()
    id_, at = headers['webhook-id'], headers['webhook-timestamp']
    key = base64.b64decode(made['secret'].removeprefix('whsec_'))
    signed = hmac.new(key, f'{id_}.{at}.'.encode() + body, hashlib.sha256)
    assert headers['webhook-signature'] == (
        f'v1,{base64.b64encode(signed.digest()).decode()}'
    )
    assert (path, int(at)) == ('/soon', near.now)
    content = json.loads(body)
    assert content.keys() == {'type', 'timestamp', 'data'}
    assert content['data']['status'] == 'PENDING'
    assert shown(near, made)['secret'] is None


def test_an_error_of_the_database_has_no_secret(world):
    made = rules.Webhook('id', 'project', 'https://x', (), 'whsec_', 0)
    with pytest.raises(Exception, match='UNIQUE') as failed:
        world.ledger.write(
            lambda tx: (tx.run(models.put, made), tx.run(models.put, made))
        )
    assert 'whsec_' not in str(failed.value)


def test_the_signature_is_that_of_standard_webhooks():
    assert rules.sign(
        'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
        'msg_p5jXN8AQM9LWM0D4loKWxJek', 1614265330, '{"test": 2432232314}',
    ) == 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='


@pytest.mark.parametrize('status', [500, 302, 429])
def test_each_notification_waits_for_the_one_before(near, hook, status):
    made = register(near, hook.url)
    hook.answers = [204, status, status]
    lease = near.create()
    for name in 'ab':
        near.leases.update(lease.id, None, {'name': name})
    send(near)
    first, failed = hook.requests()
    assert shown(near, made)['failures'] == 1
    assert str(status) in shown(near, made)['error']
    send(near)
    assert hook.requests() == []
    send(near, seconds=1)
    [again] = hook.requests()
    assert again[1]['webhook-id'] == failed[1]['webhook-id']
    send(near, seconds=1)
    assert hook.requests() == []
    send(near, seconds=1)
    names = [json.loads(b)['data']['name'] for *_, b in hook.requests()]
    assert names == ['a', 'b']
    assert shown(near, made)['failures'] == 0
    # The redirect was not followed.
    assert {first[0], failed[0], again[0]} == {'/soon'}


def test_a_refused_notification_holds_up_its_own_lease_alone(near, hook):
    """And is given up after a day, while the receiver accepts others."""
    made = register(near, hook.url)
    leases = [near.create(start=s, end=s + 100) for s in (200_000, 300_000)]
    near.leases.update(leases[0].id, None, {'name': 'other'})
    hook.answers = [400]
    send(near)
    first, second = told_to(hook)
    assert (first[1], second[1]) == (leases[0].id, leases[1].id)
    assert '400' in shown(near, made)['error']
    for hour in range(24):
        hook.answers = [500, 204]
        near.leases.update(leases[1].id, None, {'name': f'{hour}'})
        send(near, seconds=3600)
        assert told_to(hook) == [first, ('lease.update', leases[1].id)]
        assert shown(near, made)['disabled'] is None
    send(near, seconds=60)
    assert told_to(hook) == [('lease.update', leases[0].id)]
    assert shown(near, made)['error'] is None


def test_the_leases_of_which_one_is_refused_are_retried_in_a_minute(
    near, hook
):
    """However long the receiver has refused; ten at a time."""
    register(near, hook.url)
    for n in range(12):
        near.create(start=1000 * n + 200_000, end=1000 * n + 201_000)
    for seconds in (0, 1, 2, 4, 8, 16, 32, 60, 60):
        hook.answers = [500] * 12
        send(near, seconds=seconds)
        assert len(hook.requests()) == 10
    hook.answers = []
    send(near, seconds=60)
    assert len(told_to(hook)) == 12


@pytest.mark.parametrize('status', [429, 503])
def test_a_receiver_that_is_busy_gets_one_request(near, hook, status):
    register(near, hook.url)
    for n in range(3):
        near.create(start=1000 * n + 1000, end=1000 * n + 2000)
    hook.answers = [status]
    send(near)
    assert len(hook.requests()) == 1


@pytest.mark.parametrize('status, asked, seconds', [
    (429, '8', 8), (503, '8', 8), (429, None, 1), (429, 'soon', 1),
    (429, '-8', 1), (429, '99999999999', 3600), (429, '0', 1), (500, '8', 1),
    (503, DATE, 8), (503, 'Thu, 01 Jan 1970 00:00:00 GMT', 1),
])
def test_a_receiver_says_when_it_wants_the_next_request(
    near, hook, status, asked, seconds
):
    near.clock.now = NOON
    register(near, hook.url)
    near.create()
    hook.answers = [status]
    hook.headers = {} if asked is None else {'Retry-After': asked}
    send(near)
    send(near, seconds=seconds - 1)
    assert len(hook.requests()) == 1
    send(near, seconds=1)
    assert len(hook.requests()) == 1


def test_only_the_project_is_told(near, hook):
    other = register(near, hook.url, project='other')
    mine = register(near, hook.url, 'lease.update')
    lease = near.create()
    near.leases.update(lease.id, None, {'name': 'other'})
    send(near)
    assert told_to(hook) == [('lease.update', lease.id)]
    for call in (webhooks(near.manager).get, webhooks(near.manager).delete):
        with pytest.raises(WebhookNotFound):
            call(other['id'], 'project')
    assert [w['id'] for w in webhooks(near.manager).list('project')] == [
        mine['id']
    ]


def test_a_refused_change_and_a_dry_run_are_not_told(near, hook):
    register(near, hook.url)
    near.create(start='now')
    with pytest.raises(exception.NotEnoughHostsAvailable):
        near.create(*[{'resource_type': 'physical:host', 'min': 2, 'max': 2}])
    near.leases.create({
        'name': 'dry', 'project_id': 'project', 'user_id': 'user',
        'start': near.now + 1000, 'end': near.now + 2000, 'before_end': None,
        'reservations': [],
    }, dry_run=True)
    send(near)
    assert [t for t, _ in told_to(hook)] == ['lease.create']


def test_what_was_committed_is_sent_by_another_manager(near, hook, crash):
    register(near, hook.url)
    crash('commit:after')
    with contextlib.suppress(Exception):
        near.create()
    near.manager.stop()
    other = in_turn(near.begin(near.manager.conf))
    send(near, other)
    [(event_type, _)] = told_to(hook)
    assert event_type == 'lease.create'


def test_a_manager_that_ends_after_the_request_repeats(near, hook, crash):
    register(near, hook.url)
    lease = near.create()
    near.leases.update(lease.id, None, {'name': 'other'})
    crash('webhook:sent')
    send(near)
    assert [t for t, _ in told_to(hook)] == ['lease.create']
    other = in_turn(near.another(near.manager.conf))
    send(near, other)
    assert hook.requests() == []
    send(near, other, seconds=200)
    assert [t for t, _ in told_to(hook)] == ['lease.create', 'lease.update']
    other.stop()


@pytest.mark.parametrize('seconds, times', [(0, 1), (200, 2)])
def test_one_of_two_managers_sends(near, hook, seconds, times):
    """Unless the claim is over, which shows that the managers do overlap."""
    register(near, hook.url)
    near.create()
    other = in_turn(near.another(near.manager.conf))
    faults.arm(lambda at: (
        faults.arm(None), send(near, other, seconds)
    ) if at == 'webhook:sent' else None)
    try:
        send(near)
    finally:
        faults.arm(None)
    assert len(hook.requests()) == times
    other.stop()


def test_nothing_is_sent_to_a_deleted_webhook(near, hook):
    made = register(near, hook.url)
    for each in range(3):
        near.create(start=1000 * each + 1000, end=1000 * each + 2000)
    faults.arm(lambda at: (
        faults.arm(None),
        webhooks(near.manager).delete(made['id'], 'project'),
    ) if at == 'webhook:sent' else None)
    try:
        send(near)
    finally:
        faults.arm(None)
    assert len(hook.requests()) == 1
    send(near, seconds=1000)
    assert hook.requests() == []


class TestDisabled:
    def test_by_410(self, near, hook):
        made = register(near, hook.url)
        hook.answers = [410]
        near.create()
        send(near)
        near.create(start=1000, end=2000)
        send(near, seconds=5000)
        assert len(hook.requests()) == 1
        assert shown(near, made)['disabled'] == 'gone'

    def test_by_failing_for_a_day(self, near, hook):
        made = register(near, hook.url)
        hook.answers = [500] * 100
        near.create(start=200_000, end=300_000)
        pauses = 0
        while shown(near, made)['disabled'] is None:
            send(near, seconds=3600)
            pauses += 1
        assert (pauses, shown(near, made)['disabled']) == (25, 'failing')

    def test_by_too_many_that_wait(self, near, hook, monkeypatch):
        monkeypatch.setattr(rules, 'MAX_WAITING', 2)
        made = register(near, hook.url)
        for name in 'abc':
            near.create(start=1000, end=2000, name=name, project_id='project')
            near.leases.delete(near.ledger.leases()[0].id, None)
        send(near)
        assert hook.requests() == []
        assert shown(near, made)['disabled'] == 'full'

    def test_by_too_many_bytes_of_the_project(self, near, hook, monkeypatch):
        """The receiver for which most waits is given up, not the others."""
        slow, good = register(near, hook.url), register(near, hook.url)
        monkeypatch.setattr(rules, 'MAX_BYTES', 2**20)
        lease = near.create()
        found = near.ledger.run(models.get, slow['id'], None)
        late = dataclasses.replace(found, due_at=near.now + 10**6)
        near.ledger.write(lambda tx: tx.run(models.change, found, late))
        hook.answers = [204] * 1000
        for number in range(20):
            near.leases.update(
                lease.id, None, {'name': 'x', 'labels': {'n': 'y' * 255}}
            )
            near.leases.update(lease.id, None, {'name': str(number)})
            send(near)
        size = waiting_bytes(near, slow)
        assert 0 < size <= 2**20 and waiting_bytes(near, good) == 0
        monkeypatch.setattr(rules, 'MAX_BYTES', size)
        near.leases.delete(lease.id, None)
        assert shown(near, slow)['disabled'] == 'full'
        assert shown(near, good)['disabled'] is None
        send(near)
        assert waiting_bytes(near, slow) == waiting_bytes(near, good) == 0

    def test_not_by_the_updates_of_a_lease(self, near, hook, monkeypatch):
        """Where much waits, a lease has its last update waiting, in order."""
        monkeypatch.setattr(rules, 'MAX_WAITING', 6)
        made = register(near, hook.url)
        lease, other = near.create(), near.create(start=300, end=400)
        for number in range(100):
            near.leases.update(lease.id, None, {'name': f'n{number}'})
        near.leases.update(other.id, None, {'name': 'o'})
        near.leases.update(lease.id, None, {'name': 'last'})
        assert shown(near, made)['disabled'] is None
        send(near)
        told = [json.loads(body) for *_, body in hook.requests()]
        assert [(t['type'], t['data']['name']) for t in told] == [
            ('lease.create', 'lease'), ('lease.create', 'lease'),
            ('lease.update', 'n0'), ('lease.update', 'o'),
            ('lease.update', 'last'),
        ]
        near.leases.update(lease.id, None, {'name': 'a'})
        near.leases.delete(lease.id, None)
        assert shown(near, made)['disabled'] is None

    @pytest.mark.parametrize('way', ['disabled', 'deleted'])
    def test_what_waits_is_deleted_in_slices(
        self, near, hook, monkeypatch, way
    ):
        """No other commit waits until all that has waited is deleted."""
        monkeypatch.setattr(models, 'MAX_FORGOTTEN', 3)
        made = register(near, hook.url)
        for number in range(7):
            near.create(start=1000 + number, end=1001 + number)
        with deletions(near) as found:
            if way == 'deleted':
                webhooks(near.manager).delete(made['id'], 'project')
            else:
                monkeypatch.setattr(rules, 'MAX_WAITING', 7)
                near.create(start=3000, end=4000)
                assert found == []
                send(near)
        assert found == [3, 3, 1 if way == 'deleted' else 2]
        assert hook.requests() == []

    def test_a_commit_costs_no_more_the_more_wait(self, near, hook):
        register(near, hook.url)
        lease = near.create()
        costs = []
        for count in (10, 100):
            for number in range(count):
                near.leases.update(lease.id, None, {'name': str(number)})
            with statements(near) as found:
                near.leases.update(lease.id, None, {'name': 'z'})
            assert not [
                s for s in found
                if 'webhook_delivery' in s and 'count(' in s.lower()
            ]
            costs.append(len(found))
        assert costs[0] == costs[1]

    def test_while_it_is_sent_to(self, near, hook, monkeypatch):
        monkeypatch.setattr(rules, 'MAX_WAITING', 2)
        made = register(near, hook.url)
        near.create()

        def fill(at):
            if at == 'webhook:sent':
                faults.arm(None)
                for start in (300, 500):
                    near.create(start=start, end=start + 100)

        faults.arm(fill)
        try:
            send(near)
        finally:
            faults.arm(None)
        assert len(hook.requests()) == 1
        assert shown(near, made)['disabled'] == 'full'


@pytest.fixture
def letters(near, conf):
    """A mail server, to whose addresses at example.org messages are sent."""
    server = told.Mail()
    for name, value in {
        'smtp_host': '127.0.0.1', 'smtp_port': server.port, 'timeout': 5.0,
        'allowed_domains': ['Example.org', 'example.net'],
    }.items():
        conf.set_override(name, value, 'email')
    yield server
    server.stop()


class TestMail:
    def test_a_person_is_told_of_a_lease(self, near, letters):
        made = register(
            near, 'mailto:alice@example.org', 'lease.event.start_lease',
            'lease.degraded', 'lease.update',
        )
        lease = near.create(name='night=?utf-8?q?=0d=0aX:=20y?=')
        near.run(100)
        send(near)
        [(recipients, message)] = letters.messages
        assert recipients == ['alice@example.org']
        assert message['Subject'] == (
            'night= ?utf-8?q?=0d=0aX:=20y?=: the lease has started'
        )
        assert message['Auto-Submitted'] == 'auto-generated'
        text = message.get_content().splitlines()
        assert f'lease_id: {lease.id}' in text
        assert 'status: ACTIVE' in text
        assert made['id'] in text[-1]
        assert shown(near, made)['error'] is None

    def test_a_message_that_is_refused_is_sent_again(self, near, letters):
        made = register(near, 'mailto:alice@example.org')
        letters.answers = ['451 ' + 'later ' * 60]
        near.create()
        send(near)
        assert letters.messages == []
        assert 'later' in shown(near, made)['error']
        assert shown(near, made)['failures'] == 1
        send(near, seconds=1)
        assert len(letters.messages) == 1

    def test_a_mail_server_that_takes_for_ever_is_given_up(
        self, near, letters, conf
    ):
        conf.set_override('timeout', 0.5, 'email')
        made = register(near, 'mailto:alice@example.org')
        near.create()
        over.clear()
        with receiver(dripping) as url:
            port = int(url.rstrip('/').rpartition(':')[2])
            conf.set_override('smtp_port', port, 'email')
            send(near)
            over.set()
        assert 'mail server' in shown(near, made)['error']

    def test_the_next_manager_repeats_with_the_same_id(
        self, near, letters, crash
    ):
        register(near, 'mailto:alice@example.org')
        near.create()
        crash('webhook:sent')
        send(near)
        send(near, seconds=200)
        [first, again] = [m['Message-ID'] for _, m in letters.messages]
        assert first == again

    def test_many_changes_send_few_messages(self, near, letters):
        """Ten in a row, and one a minute on average."""
        register(near, 'mailto:alice@example.org')
        lease = near.create()
        for name in range(30):
            near.leases.update(lease.id, None, {'name': str(name)})
        send(near)
        send(near, seconds=599)
        assert len(letters.messages) == 10
        send(near, seconds=1)
        assert len(letters.messages) == 20
        assert [m['Subject'].split(':')[0] for _, m in letters.messages] == [
            'lease', *map(str, range(19))
        ]

    def test_the_operator_takes_a_domain_back(self, near, letters, conf):
        made = register(near, 'mailto:alice@example.net')
        conf.set_override('allowed_domains', ['example.org'], 'email')
        near.create()
        send(near)
        assert letters.messages == []
        assert 'sends nothing' in shown(near, made)['error']

    @pytest.mark.parametrize('url', [
        'mailto:alice@example.com', 'mailto:alice@sub.example.org',
        'mailto:alice@example.org,bob@example.com', 'mailto:',
        'mailto:alice@example.org?bcc=bob@example.com', 'mailto:alice',
        'mailto:alice@example.org\nBcc: bob@example.com',
        'mailto:alice@example.com@example.org', 'mailto: alice@example.org',
        'mailto:alice%40example.com@example.org ', 'mailto:@example.org',
        'mailto:\u00e4@example.org', 'mailto:a(b)@example.org',
        'mailto:<alice@example.org>', 'MAILTO:alice@example.org',
    ])
    def test_an_address_is_refused(self, near, letters, url):
        with pytest.raises(exception.InvalidInput) as refused:
            register(near, url)
        assert refused.value.field == 'url'
        assert webhooks(near.manager).list(None) == []

    @pytest.mark.parametrize('option', ['smtp_host', 'allowed_domains'])
    def test_nothing_is_sent_unless_the_operator_says_so(
        self, near, letters, conf, option
    ):
        conf.clear_override(option, 'email')
        with pytest.raises(exception.InvalidInput) as refused:
            register(near, 'mailto:alice@example.org')
        assert refused.value.field == 'url'


class TestRefused:
    @pytest.mark.parametrize('url', [
        'http://127.0.0.1/', 'http://[::1]:8774/', 'http://10.0.0.1/x',
        'https://169.254.169.254/latest', 'http://[::ffff:127.0.0.1]/',
        'http://[64:ff9b::7f00:1]/', 'http://[2002:7f00:1::]/',
        'http://[fe80::1]/', 'http://0.0.0.0/', 'http://224.0.0.1/',
        'http://100.64.0.1/', 'http://192.0.2.1/', 'ftp://example.org/',
        'http://user:word@example.org/', 'http://example.org/#part',
        'http:///nowhere', 'http://example.org:99999/', 'https://[::1/',
        'http://[fec0::1]/', 'http://[::7f00:1]/', 'http://[::ffff:0:7f00:1]/',
        'http://example.org:0/', 'http://example.org/a b',
        'http://ex\u00e4mple.org/', 'example.org',
    ])
    def test_a_url(self, world, url):
        with pytest.raises(exception.InvalidInput) as refused:
            register(world, url)
        assert refused.value.field == 'url'

    def test_a_name_of_a_private_address(self, world, hook):
        """The name is looked up for each request."""
        in_turn(world.manager)
        made = register(world, hook.url.replace('127.0.0.1', 'localhost'))
        world.add_host('a')
        world.create()
        send(world)
        assert hook.requests() == []
        assert shown(world, made)['error'] == (
            'the receiver has no public address'
        )

    def test_an_unknown_type(self, world):
        with pytest.raises(exception.InvalidInput) as refused:
            register(world, 'https://example.org', 'lease.*', 'lease.creat')
        assert refused.value.field == 'events'

    def test_too_many(self, world):
        for _ in range(rules.MAX_WEBHOOKS):
            register(world, 'https://example.org')
        with pytest.raises(notify.MaxWebhooks):
            register(world, 'https://example.org')
        register(world, 'https://example.org', project='other')


@contextlib.contextmanager
def receiver(serve):
    """Yield the URL of a server that calls serve(socket) for a connection."""
    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, contextlib.suppress(OSError):
                    serve(connection)

    with socket.create_server(('127.0.0.1', 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f'http://127.0.0.1:{listening.getsockname()[1]}/'
        listening.shutdown(socket.SHUT_RDWR)


def endless(connection):
    """Answer with 1 GB, of which a manager must not read much."""
    connection.recv(100_000)
    connection.sendall(
        b'HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n'
    )
    for _ in range(1000):
        connection.sendall(bytes(1_000_000))
    raise AssertionError('all of the body was read')


def dripping(connection):
    """Send a byte of an endless status line now and then."""
    while True:
        connection.sendall(b'HTTP/1.1')
        if over.wait(0.05):
            return


over = threading.Event()


def test_the_body_of_a_response_is_not_read(near):
    with receiver(endless) as url:
        made = register(near, url)
        near.create()
        send(near)
    assert shown(near, made)['error'] is None


def test_a_response_that_takes_for_ever_is_given_up(near, conf):
    conf.set_override('timeout', 0.5, 'webhook')
    over.clear()
    with receiver(dripping) as url:
        made = register(near, url)
        near.create()
        send(near)
        over.set()
    assert shown(near, made)['error'] == 'the receiver is unreachable'


@pytest.mark.parametrize('response, accepts', [
    (b'HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No\r\n', True),
    (b'HTTP/1.1 100 Continue\r\n\r\n' * 10_000, False),
    (b'X' * 10_000_000, False),
    (b'HTTP/1.1 20', False),
    (b'220 mail.internal ESMTP\r\n', False),
    (b'', False),
])
def test_a_response_has_a_status_near_its_beginning(near, response, accepts):
    def respond(connection):
        connection.recv(100_000)
        connection.sendall(response)
        # A socket that is closed with a body unread resets the connection.
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(100_000):
            pass

    with receiver(respond) as url:
        made = register(near, url)
        near.create()
        send(near)
    # The project does not learn what another service has answered.
    assert shown(near, made)['error'] == (
        None if accepts else 'the receiver is unreachable'
    )


def test_a_url_may_have_a_query_without_a_path(near, hook):
    register(near, hook.url.replace('/soon', '?key=1'))
    near.create()
    send(near)
    assert [path for path, *_ in hook.requests()] == ['/?key=1']


@pytest.mark.parametrize('host', [
    '2130706433', '0x7f.1', '0177.0.0.1', '127.1', '127.0.0.1.', 'LOCALHOST',
    'localhost.', '[::ffff:7f00:1]', '[::1]', '0', '[::]',
])
def test_no_form_of_a_local_address_is_sent_to(world, hook, host):
    port = hook.url.rpartition(':')[2]
    with contextlib.suppress(exception.InvalidInput):
        register(world, f'http://{host}:{port}')
    in_turn(world.manager)
    world.add_host('a')
    world.create()
    send(world)
    assert hook.requests() == []


def test_a_receiver_that_hangs_delays_no_other_project(near, conf, hook):
    hang = threading.Event()
    conf.set_override('timeout', waiting.PATIENCE, 'webhook')
    webhooks(near.manager)._pool = futurist.ThreadPoolExecutor(4)
    with receiver(lambda connection: hang.wait()) as url:
        for _ in range(3):
            register(near, url)
        register(near, hook.url, project='other')
        near.create()
        near.create(project_id='other')
        webhooks(near.manager).step()
        hook.asked.get(timeout=waiting.PATIENCE)
        # The manager itself goes on.
        near.run(150)
        hang.set()
    waiting.until(lambda: not webhooks(near.manager)._busy)
