# SPDX-License-Identifier: Apache-2.0
"""Announcements of leases, with real SMTP and HTTP servers."""

import hashlib
import hmac
import json
import subprocess

from aiosmtpd import smtp
from oslo_context import context
from oslo_context import fixture
from oslo_messaging.notify import _impl_test
import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.service.manager.manager import Manager
from tests import told
from tests.functional.manager.test_before_end import active
from tests.functional.manager.test_before_end import assert_failed
from tests.functional.manager.test_before_end import furnish
from tests.functional.manager.test_before_end import status
from tests.standins.keystone import KeystoneServer

pytestmark = pytest.mark.row('F58')

ALICE = 'alice@example.org'
SECRET = 'hush'


@pytest.fixture
def keystone():
    keystone = KeystoneServer()
    keystone.add_user('user')
    keystone.emails['user'] = ALICE
    yield keystone
    keystone.stop()


@pytest.fixture
def mail():
    mail = told.Mail()
    yield mail
    mail.stop()


@pytest.fixture
def hook():
    hook = told.Hook()
    yield hook
    hook.stop()


@pytest.fixture
def bare(conf, keystone, tmp_path):
    """A configuration with a cloud, and without any receiver."""
    path = tmp_path / 'keystone.conf'
    path.write_text(keystone.configuration())
    conf([], default_config_files=[str(path)])
    return conf


@pytest.fixture
def told_conf(bare, mail, hook):
    bare.set_override('smtp_host', '127.0.0.1', 'email')
    bare.set_override('smtp_port', mail.port, 'email')
    bare.set_override('timeout', 5.0, 'email')
    bare.set_override('url', hook.url, 'webhook')
    bare.set_override('secret', SECRET, 'webhook')
    return bare


@pytest.fixture
def world(told_conf, request):
    world = request.getfixturevalue('world')
    furnish(world)
    return world


class TestEmail:
    def test_the_creator_is_written_to_once_for_a_lease(
        self, world, mail, whole, slots
    ):
        lease = active(
            world, whole(before_end='email', on_end='shelve'),
            slots(2, before_end='email'), name='nächtlicher Lauf',
        )
        world.run(50)
        world.run(10)
        [(recipients, message)] = mail.messages
        assert recipients == [ALICE]
        assert message['To'] == ALICE
        assert message['From'] == 'blazar-sched@localhost'
        assert message['Subject'] == (
            'Lease nächtlicher Lauf ends at 2027-01-15T08:03:20Z'
        )
        assert message['Auto-Submitted'] == 'auto-generated'
        assert message.get_content_type() == 'text/plain'
        hosts, instances = lease.reservations
        assert message.get_content().splitlines() == [
            'The lease nächtlicher Lauf ends at 2027-01-15T08:03:20Z.',
            '',
            f'Lease:   {lease.id}',
            'Project: project',
            '',
            'Its reservations:',
            '',
            f'- physical:host {hosts.id}: 1 to 1 hosts; its servers are '
            'shelved then',
            f'- virtual:instance {instances.id}: 2; its servers are deleted '
            'then',
        ]

    @pytest.mark.parametrize('word', [
        '=?utf-8?q?x=0d=0aReply-To:=20m@evil=0d=0aX:?=',
        '=?utf-8?q?x=0d=0a=0d=0aYour=20password=20expired:=20http://evil/?=',
        '==?utf-8?b?eA0KUmVwbHktVG86IG1AZXZpbA0KWDo=?=',
        '=?utf-8?q?x=0aX:=20y?=', '=?utf-8?q?x=00?= y',
    ])
    def test_a_name_writes_no_header(self, world, mail, slots, word):
        lease = active(world, slots(before_end='email'), name=word)
        world.run(50)
        [(recipients, message)] = mail.messages
        assert recipients == [ALICE]
        assert sorted(message.keys()) == [
            'Auto-Submitted', 'Content-Transfer-Encoding', 'Content-Type',
            'Date', 'From', 'MIME-Version', 'Message-ID', 'Subject', 'To',
        ]
        assert message['Subject'] == (
            f'Lease {word.replace("=?", "= ?")} ends at 2027-01-15T08:03:20Z'
        )
        assert message.get_content().startswith(f'The lease {word} ends at')
        assert lease.id in message.get_content()

    def test_email_is_sent_again_when_the_end_moves(self, world, mail, slots):
        lease = active(world, slots(before_end='email'))
        world.run(50)
        world.leases.update(lease.id, None, {'end': world.now + 500})
        world.run(400)
        subjects = [message['Subject'][-20:] for _, message in mail.messages]
        assert subjects == ['2027-01-15T08:03:20Z', '2027-01-15T08:09:10Z']
        ids = {message['Message-ID'] for _, message in mail.messages}
        assert len(ids) == 2

    def test_a_server_that_is_away_is_tried_again(
        self, world, mail, slots, told_conf
    ):
        told_conf.set_override('smtp_port', 1, 'email')
        lease = active(world, slots(before_end='email'))
        world.run(50)
        assert status(world, lease) == 'UNDONE'
        told_conf.set_override('smtp_port', mail.port, 'email')
        world.run(10)
        assert status(world, lease) == 'DONE'
        assert len(mail.messages) == 1

    def test_a_server_that_never_takes_it_keeps_no_lease_from_its_end(
        self, told_conf, world, mail, slots, caplog
    ):
        _impl_test.reset()
        told_conf.set_override(
            'driver', ['test'], 'oslo_messaging_notifications'
        )
        told_conf.set_override('event_max_retries', 1, 'manager')
        told_conf.set_override('event_retry_interval', 0.25, 'manager')
        world.begin(told_conf)
        mail.answers = ['550 no such user'] * 5
        lease = active(world, slots(before_end='email'))
        world.run(50)
        world.run(10)
        assert len(mail.answers) == 3
        assert_failed(world, lease, 'no such user')
        assert 'no such user' in caplog.text
        world.manager.notifier.step()
        types = [m['event_type'] for _, m, *_ in _impl_test.NOTIFICATIONS]
        _impl_test.reset()
        assert 'lease.event.before_end_lease.error' in types
        world.run(140)
        assert world.lease(lease).status == 'TERMINATED'

    @pytest.mark.parametrize('address', [
        None, '', 'alice', 'alice@example.org\nBcc: eve@example.org',
        'alice@example.org, eve@example.org', 'Alice <alice@example.org>',
    ])
    def test_owner_without_address_gets_no_email(
        self, world, keystone, mail, slots, caplog, address
    ):
        keystone.emails['user'] = address
        lease = active(world, slots(before_end='email'))
        world.run(50)
        assert mail.messages == []
        assert_failed(world, lease, 'has no e-mail address')
        assert 'has no e-mail address' in caplog.text

    @pytest.mark.parametrize(
        'name', ['x\r\nBcc: eve@example.org\r\n\r\nPay', 'x\u2028y\x00\x85z']
    )
    def test_no_name_of_a_lease_adds_a_header(self, world, mail, slots, name):
        active(world, slots(before_end='email'), name=name)
        world.run(50)
        [(recipients, message)] = mail.messages
        assert recipients == [ALICE]
        assert set(message) == {
            'From', 'To', 'Subject', 'Date', 'Message-ID', 'Auto-Submitted',
            'Content-Type', 'Content-Transfer-Encoding', 'MIME-Version',
        }
        first, empty, *_ = message.get_content().splitlines()
        assert first.startswith('The lease x')
        assert (first[-1], empty) == ('.', '')

    def test_by_tls_and_with_a_password(
        self, told_conf, world, slots, tmp_path, monkeypatch
    ):
        key, certificate = tmp_path / 'key.pem', tmp_path / 'certificate.pem'
        subprocess.run(
            [
                'openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes',
                '-subj', '/CN=mail', '-addext', 'subjectAltName=IP:127.0.0.1',
                '-keyout', key, '-out', certificate,
            ],
            check=True, capture_output=True,
        )
        context = told.tls(certificate, key)
        known = []

        def authenticate(server, session, envelope, mechanism, data):
            known.append((data.login, data.password))
            return smtp.AuthResult(success=data.password == b'hush')

        mail = told.Mail(
            tls_context=context, require_starttls=True, auth_required=True,
            authenticator=authenticate,
        )
        try:
            for name, value in {
                'smtp_port': mail.port, 'starttls': True, 'username': 'us',
                'password': 'hush',
            }.items():
                told_conf.set_override(name, value, 'email')
            lease = active(world, slots(before_end='email'))
            world.run(50)
            # This certificate is not trusted yet.
            assert status(world, lease) == 'UNDONE'
            assert known == mail.messages == []
            monkeypatch.setenv('SSL_CERT_FILE', str(certificate))
            world.run(10)
            assert known == [(b'us', b'hush')]
            assert len(mail.messages) == 1
        finally:
            mail.stop()

    def test_a_server_without_tls_hears_nothing_where_it_is_wanted(
        self, told_conf, world, mail, slots
    ):
        told_conf.set_override('starttls', True, 'email')
        lease = active(world, slots(before_end='email'))
        world.run(50)
        assert status(world, lease) == 'UNDONE'
        assert mail.messages == []


class TestWebhook:
    def test_webhook_gets_the_signed_notification(
        self, told_conf, world, hook, slots
    ):
        _impl_test.reset()
        told_conf.set_override(
            'driver', ['test'], 'oslo_messaging_notifications'
        )
        world.begin(told_conf)
        lease = active(
            world, slots(before_end='webhook'), slots(before_end='webhook')
        )
        with fixture.ClearRequestContext():
            context.RequestContext(request_id='req-1')
            world.run(50)
        world.manager.notifier.step()
        [notified] = [
            message['payload'] for _, message, *_ in _impl_test.NOTIFICATIONS
            if message['event_type'] == 'lease.event.before_end_lease'
        ]
        _impl_test.reset()
        [(path, headers, body)] = hook.requests()
        assert path == '/soon'
        assert headers['Content-Type'] == 'application/json'
        assert headers['X-OpenStack-Request-ID'] == 'req-1'
        assert headers['X-Signature'] == hmac.new(
            SECRET.encode(), body, hashlib.sha256
        ).hexdigest()
        posted = json.loads(body)
        assert posted.pop('event_type') == 'lease.event.before_end_lease'
        assert posted.keys() == notified.keys()
        same = posted.keys() - {'events', 'reservations'}
        assert {k: posted[k] for k in same} == {k: notified[k] for k in same}
        assert posted['lease_id'] == lease.id
        assert [r['id'] for r in posted['reservations']] == [
            r.id for r in lease.reservations
        ]
        assert [(e['event_type'], e['time']) for e in posted['events']] == [
            (e['event_type'], e['time']) for e in notified['events']
        ]

    def test_without_a_secret_it_is_not_signed(
        self, told_conf, world, hook, slots
    ):
        told_conf.set_override('secret', '', 'webhook')
        active(world, slots(before_end='webhook'))
        world.run(50)
        [(_, headers, _)] = hook.requests()
        assert 'X-Signature' not in headers

    @pytest.mark.parametrize('answer', [500, 404, 302, 307])
    def test_failed_webhook_request_is_repeated_with_the_same_key(
        self, world, hook, slots, answer
    ):
        hook.answers = [answer]
        lease = active(world, slots(before_end='webhook'))
        world.run(50)
        assert status(world, lease) == 'UNDONE'
        world.run(10)
        assert status(world, lease) == 'DONE'
        [first, again] = hook.requests()
        assert first[1]['Idempotency-Key'] == again[1]['Idempotency-Key']
        # The message of another lease has another key.
        active(world, slots(before_end='webhook'))
        world.run(50)
        [(_, headers, _)] = hook.requests()
        assert headers['Idempotency-Key'] != first[1]['Idempotency-Key']


@pytest.mark.parametrize('action', ['email', 'webhook'])
def test_each_end_has_its_own_key(world, mail, hook, slots, action):
    """This holds also for an end announced at the same time as the last one.
    """
    lease = active(world, slots(before_end=action))
    world.run(50)
    world.leases.update(
        lease.id, None, {'end': lease.end + 1, 'before_end': lease.before_end}
    )
    world.run(1)
    assert world.lease(lease).before_end == lease.before_end
    keys = [message['Message-ID'] for _, message in mail.messages] + [
        headers['Idempotency-Key'] for _, headers, _ in hook.requests()
    ]
    assert len(keys) == len(set(keys)) == 2


@pytest.mark.row('F59')
class TestOnStart:
    def started(self, world, lease):
        return status(world, lease, 'after_start_lease')

    def test_the_webhook_is_told_once_the_lease_has_started(
        self, world, hook, ask, slots
    ):
        lease = world.create(
            ask(on_start='webhook'), slots(on_start='webhook'), start=100,
            end=500,
        )
        world.run(50)
        assert hook.requests() == []
        world.run(50)
        [(_, headers, body)] = hook.requests()
        posted = json.loads(body)
        assert posted['event_type'] == 'lease.event.after_start_lease'
        assert posted['status'] == 'ACTIVE'
        assert posted['lease_id'] == lease.id
        assert self.started(world, lease) == 'DONE'
        world.run(100)
        assert hook.requests() == []

    def test_it_is_told_of_the_start_and_of_the_end(self, world, hook, slots):
        lease = active(world, slots(on_start='webhook', before_end='webhook'))
        world.run(50)
        keys = [h['Idempotency-Key'] for _, h, _ in hook.requests()]
        assert len(keys) == len(set(keys)) == 2
        world.run(150)
        assert world.lease(lease).status == 'TERMINATED'

    def test_nothing_is_the_default(self, world, hook, ask):
        lease = active(world, ask())
        assert hook.requests() == []
        assert 'after_start_lease' not in {e.event_type for e in lease.events}

    def test_a_failure_is_repeated_and_keeps_no_lease_from_its_start(
        self, world, hook, slots
    ):
        hook.answers = [500]
        lease = active(world, slots(on_start='webhook'))
        assert lease.status == 'ACTIVE'
        assert self.started(world, lease) == 'UNDONE'
        world.leases.update(lease.id, None, {'end': lease.end + 100})
        world.run(10)
        assert self.started(world, lease) == 'DONE'
        [first, again] = hook.requests()
        assert first[1]['Idempotency-Key'] == again[1]['Idempotency-Key']

    def test_a_failure_for_too_long_is_told_by_the_lease(
        self, told_conf, world, hook, slots
    ):
        told_conf.set_override('event_max_retries', 1, 'manager')
        told_conf.set_override('event_retry_interval', 0.25, 'manager')
        world.begin(told_conf)
        hook.answers = [500] * 5
        lease = active(world, slots(on_start='webhook'))
        world.run(10)
        lease = world.lease(lease)
        assert self.started(world, lease) == 'ERROR'
        assert (lease.status, lease.degraded) == ('ACTIVE', True)
        assert '500' in lease.reservations[0].made['on_start_failed']
        world.run(300)
        assert world.lease(lease).status == 'TERMINATED'

    def test_the_start_done_again_is_not_told_again(self, world, hook, slots):
        lease = active(world, slots(on_start='webhook'))
        assert len(hook.requests()) == 1
        world.leases.update(lease.id, None, {
            'reservations': [slots(1, on_start='webhook')]
        })
        world.run(10)
        assert hook.requests() == []
        assert self.started(world, lease) == 'DONE'

    def test_it_moves_with_the_start(self, world, hook, slots):
        lease = world.create(slots(on_start='webhook'), start=100, end=500)
        world.leases.update(lease.id, None, {'start': world.now + 200})
        world.run(100)
        assert hook.requests() == []
        world.run(100)
        assert len(hook.requests()) == 1

    def test_it_can_be_changed_until_the_start(self, world, hook, slots):
        lease = world.create(slots(), start=100, end=500)
        id_ = lease.reservations[0].id

        def change(action):
            world.leases.update(lease.id, None, {
                'reservations': [{'id': id_, 'on_start': action}]
            })

        change('webhook')
        change('')
        change('webhook')
        world.run(100)
        assert len(hook.requests()) == 1
        with pytest.raises(exception.CantUpdateParameter) as refused:
            change('')
        assert refused.value.field == 'on_start'
        change('webhook')

    @pytest.mark.parametrize('action', ['email', 'snapshot', 'default', 5])
    def test_an_action_that_none_has_is_refused(self, world, ask, action):
        with pytest.raises(exception.InvalidInput) as refused:
            world.create(ask(on_start=action))
        assert refused.value.field == 'on_start'
        assert world.ledger.leases() == []

    def test_a_webhook_that_is_not_configured_is_refused(
        self, bare, request, slots
    ):
        world = request.getfixturevalue('world')
        bare.set_override('url', None, 'webhook')
        with pytest.raises(exception.InvalidInput) as refused:
            world.create(slots(on_start='webhook'))
        assert refused.value.field == 'on_start'


class TestOnce:
    """An announced end is not announced again because another step failed."""

    @pytest.fixture
    def failing(self, world, hook, whole, slots):
        """A lease whose webhook has failed, after its e-mail was sent."""
        hook.answers = [500]
        lease = active(
            world, whole(before_end='webhook'), slots(before_end='email')
        )
        world.run(50)
        assert status(world, lease) == 'UNDONE'
        return lease

    def test_in_one_process(self, world, failing, mail, hook):
        assert len(mail.messages) == 1
        world.run(10)
        assert status(world, failing) == 'DONE'
        assert (len(mail.messages), len(hook.requests())) == (1, 2)

    def test_by_the_next_manager(self, told_conf, world, failing, mail, hook):
        world.begin(told_conf)
        world.run(10)
        assert status(world, failing) == 'DONE'
        assert (len(mail.messages), len(hook.requests())) == (1, 2)

    def test_email_is_sent_once_although_the_start_is_done_again(
        self, world, failing, mail, hook, slots
    ):
        world.leases.update(failing.id, None, {'reservations': [slots(1)]})
        assert status(world, failing, 'start_lease') == 'UNDONE'
        world.run(10)
        assert status(world, failing) == 'DONE'
        assert (len(mail.messages), len(hook.requests())) == (1, 2)


class TestShort:
    """Leases that are announced at their start, or are too short."""

    @pytest.mark.parametrize('action', ['email', 'webhook'])
    @pytest.mark.parametrize('length', [1, 3599, 3600, 3601])
    def test_owner_of_a_short_lease_is_notified(
        self, world, mail, hook, slots, action, length
    ):
        lease = world.create(
            slots(before_end=action), start=100, end=100 + length,
            before_end='default',
        )
        world.run(100)
        for _ in range(3):
            world.run(max(1, length // 2))
        told = len(mail.messages) + len(hook.requests())
        assert (told, status(world, lease)) == (1, 'DONE')
        assert world.lease(lease).status == 'TERMINATED'

    def test_notice_comes_before_the_end_at_one_instant(
        self, world, mail, slots
    ):
        lease = active(
            world, slots(before_end='email'), end=100,
            before_end=world.now + 100,
        )
        world.run(100)
        assert len(mail.messages) == 1
        assert world.lease(lease).status == 'TERMINATED'


class TestLate:
    """A reservation is added after the end was announced."""

    def add(self, world, lease, reservation):
        return world.leases.update(
            lease.id, None, {'reservations': [reservation]}
        )

    @pytest.mark.parametrize('action', ['email', 'webhook'])
    def test_added_reservation_notifies_its_owner_once(
        self, world, mail, hook, slots, action
    ):
        lease = active(world, slots(before_end=action), end=1000)
        world.run(50)
        for reservation in (slots(before_end=action), slots()):
            self.add(world, lease, reservation)
            world.run()
        world.run(500)
        assert status(world, lease) == 'DONE'
        assert len(mail.messages) + len(hook.requests()) == 1

    def test_action_waits_for_the_start_of_the_added_reservation(
        self, world, conf, mail, hook, slots
    ):
        """The action is done once the added reservation is started at last."""
        lease = active(
            world, slots(before_end='email'), end=5000,
            before_end=world.now + 100,
        )
        conf.set_override('event_max_retries', 0, 'manager')
        self.add(world, lease, slots(before_end='webhook'))
        world.nova.failures, world.nova.refuses = 1, True
        world.run()
        assert status(world, lease, 'start_lease') == 'ERROR'
        world.run(100)
        assert (len(mail.messages), len(hook.requests())) == (1, 0)
        assert status(world, lease) == 'UNDONE'
        for _ in range(10):
            world.run(100)
        assert status(world, lease, 'start_lease') == 'DONE'
        assert status(world, lease) == 'DONE'
        assert (len(mail.messages), len(hook.requests())) == (1, 1)

    def test_a_start_that_never_succeeds_is_reported(
        self, world, conf, hook, slots
    ):
        lease = active(world, slots(), end=5000, before_end=world.now + 100)
        conf.set_override('event_max_retries', 0, 'manager')
        late = self.add(world, lease, slots(before_end='webhook'))
        world.nova.failures, world.nova.refuses = 10**6, True
        for _ in range(48):
            world.run(100)
        world.nova.failures = 0
        shown = world.lease(lease).reservations[1]
        assert shown.id == late.reservations[1].id
        assert shown.made['before_end_failed'] == 'the start is not done'
        world.run(500)
        assert world.lease(lease).status == 'TERMINATED'
        assert not hook.requests()

    def test_added_reservation_has_an_action_of_its_own(
        self, world, mail, hook, slots
    ):
        lease = active(world, slots(before_end='email'), end=1000)
        world.run(50)
        self.add(world, lease, slots(before_end='webhook'))
        world.run()
        world.run(500)
        assert (len(mail.messages), len(hook.requests())) == (1, 1)

    def test_reservation_added_in_the_last_second_notifies_its_owner(
        self, world, mail, slots
    ):
        lease = active(
            world, slots(before_end='webhook'), end=100,
            before_end=world.now + 99,
        )
        world.run(99)
        self.add(world, lease, slots(before_end='email'))
        assert status(world, lease) == 'UNDONE'
        for _ in range(2):
            world.run(1)
        assert len(mail.messages) == 1
        assert world.lease(lease).status == 'TERMINATED'


class TestDefault:
    def test_no_action_is_done_without_a_default(
        self, world, mail, hook, whole, slots
    ):
        lease = active(world, whole(), slots())
        asked = [r.demand.before_end for r in lease.reservations]
        assert asked == ['default'] * 2
        world.run(50)
        assert status(world, lease) == 'DONE'
        assert not mail.messages
        assert not hook.requests()
        assert world.nova.images == []

    def test_default_action_is_that_of_the_operator(
        self, told_conf, world, mail, hook, whole, slots
    ):
        told_conf.set_override('before_end', 'email', 'manager')
        lease = active(
            world, whole(before_end=''), slots(), slots(before_end='email')
        )
        world.run(50)
        assert status(world, lease) == 'DONE'
        assert len(mail.messages) == 1

    def test_empty_action_of_a_reservation_overrides_the_default(
        self, told_conf, world, mail, slots
    ):
        told_conf.set_override('before_end', 'email', 'manager')
        active(world, slots(before_end=''))
        world.run(50)
        assert not mail.messages

    def test_a_servers_own_lifetime_has_none(self, told_conf, world, mail):
        told_conf.set_override('before_end', 'email', 'manager')
        world.add_server('a', created=world.now, end=world.now + 7200)
        world.manager.instances.sync()
        [lease] = world.ledger.leases()
        world.run(3600)
        assert status(world, lease) == 'DONE'
        assert not mail.messages

    @pytest.mark.parametrize('action', ['email', 'webhook', 'migrate'])
    def test_no_manager_starts_with_one_that_cannot_be_done(
        self, bare, action
    ):
        bare.set_override('before_end', action, 'manager')
        with pytest.raises(ValueError, match=rf'before_end = {action}'):
            Manager(bare)

    def test_reservation_of_an_older_version_has_the_default_action(
        self, world, slots, told_conf, mail
    ):
        lease = active(world, slots())
        written = 'before_end'
        with sa.create_engine(told_conf.database.connection).begin() as sql:
            [text] = sql.scalars(sa.text('SELECT parameters FROM reservation'))
            parameters = json.loads(text)
            assert parameters.pop(written) == 'default'
            sql.execute(
                sa.text('UPDATE reservation SET parameters = :parameters'),
                {'parameters': json.dumps(parameters)},
            )
        assert world.lease(lease) == lease
        id_ = lease.reservations[0].id
        # The request is for the existing value.
        world.leases.update(
            lease.id, None, {'reservations': [{'id': id_, 'amount': 1}]}
        )
        assert world.lease(lease) == lease
        told_conf.set_override('before_end', 'email', 'manager')
        world.run(50)
        assert len(mail.messages) == 1


class TestAsked:
    @pytest.fixture
    def unset(self, bare, request):
        """A world without any receiver."""
        world = request.getfixturevalue('world')
        world.begin(bare)
        bare.clear_override('smtp_host', 'email')
        bare.clear_override('url', 'webhook')
        return world

    def change(self, world, lease, **changes):
        id_ = lease.reservations[0].id
        return world.leases.update(
            lease.id, None, {'reservations': [{'id': id_, **changes}]}
        )

    @pytest.mark.parametrize('action', ['email', 'webhook'])
    def test_action_that_is_not_configured_is_refused(
        self, unset, ask, action
    ):
        with pytest.raises(exception.InvalidInput) as refusal:
            unset.create(ask(before_end=action))
        assert refusal.value.field == 'before_end'
        lease = unset.create(ask())
        with pytest.raises(exception.InvalidInput) as refusal:
            self.change(unset, lease, before_end=action)
        assert refusal.value.field == 'before_end'
        assert unset.lease(lease) == lease

    @pytest.mark.parametrize(
        'action', ['migrate', 'Email', 'email ', None, 1, ['email'], {}]
    )
    def test_unknown_action_is_refused(self, world, whole, slots, action):
        for ask in (whole, slots):
            with pytest.raises(exception.InvalidInput) as refusal:
                world.create(ask(before_end=action))
            assert refusal.value.field == 'before_end'
            assert "'webhook'" in str(refusal.value)

    def test_other_changes_are_possible_if_the_action_is_no_longer_configured(
        self, world, slots, told_conf, caplog
    ):
        lease = active(world, slots(2, before_end='email'))
        told_conf.clear_override('smtp_host', 'email')
        new = self.change(world, lease, amount=1)
        assert new.reservations[0].demand.amount == 1
        world.run(50)
        assert '[email] smtp_host is not set' in caplog.text

    def test_action_can_be_changed_until_it_is_done(self, world, mail, ask):
        lease = active(world, ask())
        new = self.change(world, lease, before_end='email')
        assert new.reservations[0].demand.before_end == 'email'
        world.run(50)
        assert len(mail.messages) == 1
        with pytest.raises(exception.CantUpdateParameter) as refusal:
            self.change(world, lease, before_end='')
        assert refusal.value.field == 'before_end'
        # The value stays the same.
        done = world.lease(lease)
        self.change(world, lease, before_end='email')
        assert world.lease(lease) == done
        # The action is to be done again.
        world.leases.update(lease.id, None, {
            'end': world.now + 500,
            'reservations': [
                {'id': lease.reservations[0].id, 'before_end': ''},
            ],
        })
        world.run(450)
        assert status(world, lease) == 'DONE'
        assert len(mail.messages) == 1

    def test_a_change_needs_neither_room_nor_a_start(self, world, slots):
        lease = active(world, *[slots(4)] * 3, end=1000)
        for name in 'abc':
            # The request exceeds the capacity beside the existing
            # reservations.
            world.add_server(name, vcpus=8)
        world.manager.instances.sync()
        held = world.held(lease)
        self.change(world, lease, before_end='webhook')
        assert status(world, lease, 'start_lease') == 'DONE'
        assert world.held(lease) == held
        world.check()


class TestWithoutThePart:
    @pytest.fixture
    def lone(self, bare, request):
        """A world without parts."""
        bare.set_override('parts', [])
        world = request.getfixturevalue('world')
        world.begin(bare)
        return world

    @pytest.mark.parametrize(('when', 'action'), [
        ('before_end', 'email'), ('before_end', 'webhook'),
        ('on_start', 'webhook'),
    ])
    def test_its_actions_are_unknown(self, lone, slots, when, action):
        with pytest.raises(exception.InvalidInput) as refused:
            lone.create(slots(**{when: action}))
        assert refused.value.field == when
        assert f"'{action}'" not in str(refused.value)

    def test_a_lease_of_before_ends_and_says_what_was_not_done(
        self, bare, world, slots
    ):
        lease = active(world, slots(before_end='email'))
        bare.set_override('parts', [])
        bare.set_override('event_max_retries', 0, 'manager')
        world.begin(bare)
        world.run(50)
        assert_failed(world, lease, "'email': the actions are snapshot")
        world.run(150)
        assert world.lease(lease).status == 'TERMINATED'
