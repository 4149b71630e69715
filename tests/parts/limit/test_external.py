# SPDX-License-Identifier: Apache-2.0
"""The external service, over real HTTP: its requests and its decisions."""

import contextlib
from http import server
import json
import queue
import threading

from keystoneauth1 import loading
from oslo_context import context
from oslo_context import fixture
import pytest

from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.lease import Lease
from blazar_sched.parts.limit import exception as refusals
from blazar_sched.parts.limit import external
from blazar_sched.service.enforcement import base
from blazar_sched.service.enforcement.admission import Enforcement
from blazar_sched.service.enforcement.admission import TRIES

ENDED = 5


class Service:
    """A service that responds with `answers` in turn, then 204; see `asked`.

    An answer has a status, and the body or a function that writes the body.
    `ids` has the id of the request that has caused each request.
    """

    def __init__(self):
        self.answers = []
        self.ids = []
        self.asked = queue.Queue()
        self.before_answer = lambda question: None
        self._server = server.ThreadingHTTPServer(
            ('127.0.0.1', 0), type('Handler', (_Handler,), {'service': self})
        )
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        ).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def questions(self):
        """Return (path, document, token) of all requests so far."""
        return [self.asked.get() for _ in range(self.asked.qsize())]

    def next(self):
        return self.asked.get(timeout=ENDED)


class _Handler(server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        question = (
            self.path, json.loads(body),
            self.headers.get('X-Auth-Token', self.headers['Authorization']),
        )
        self.service.ids.append(self.headers['X-OpenStack-Request-ID'])
        self.service.before_answer(question)
        self.service.asked.put(question)
        answers = self.service.answers
        status, text = answers.pop(0) if answers else (204, '')
        self.send_response(status)
        self.send_header('Location', self.service.url)
        self.end_headers()
        with contextlib.suppress(OSError):
            text(self.wfile) if callable(text) else (
                self.wfile.write(text.encode())
            )

    def log_message(self, *args):
        pass


@pytest.fixture
def service():
    service = Service()
    yield service
    service.stop()


@pytest.fixture
def conf(conf, service):
    def set_(name, value):
        conf.set_override(name, value, 'enforcement')

    set_('enabled_filters', ['ExternalServiceFilter'])
    set_('external_service_base_endpoint', service.url + '/policy/')
    set_('external_service_token', 'secret')
    return conf


@pytest.fixture
def world(world):
    world.add_host('compute-1', gpu='a100')
    return world


ALLOCATION = {
    'id': '1',
    'hypervisor_hostname': 'compute-1',
    'service_name': 'compute-1',
    'hypervisor_type': 'QEMU',
    'hypervisor_version': 8002000,
    'cpu_info': '{}',
    'availability_zone': 'nova',
    'vcpus': 8,
    'memory_mb': 8192,
    'local_gb': 80,
    'reservable': True,
    'gpu': 'a100',
    'extra': {'gpu': 'a100'},
}


@pytest.mark.row('F78', 'F107')
def test_a_new_lease_is_asked_about_in_blazars_words(world, service, whole):
    world.clock.now = 1_800_000_000
    lease = world.create(whole(), trust_id='t1')
    [(path, document, token)] = service.questions()
    assert (path, token) == ('/policy/check-create', 'secret')
    [reservation] = document['lease'].pop('reservations')
    [allocation] = reservation.pop('allocations')
    assert ALLOCATION.items() <= allocation.items()
    assert reservation == {
        'id': lease.reservations[0].id,
        'lease_id': lease.id,
        'resource_type': 'physical:host',
        'min': 1,
        'max': 1,
        'hypervisor_properties': '',
        'resource_properties': '',
        'before_end': 'default',
    }
    assert document == {
        'context': {
            'user_id': 'user',
            'project_id': 'project',
            'auth_url': None,
            'region_name': None,
        },
        'lease': {
            'id': lease.id,
            'name': 'lease',
            'user_id': 'user',
            'project_id': 'project',
            'trust_id': 't1',
            'status': 'PENDING',
            'start_date': '2027-01-15T08:01:40',
            'end_date': '2027-01-15T08:03:20',
            'before_end_date': None,
            # All of the inventory of a whole host.
            'resource_requests': {'VCPU': 8, 'MEMORY_MB': 8192, 'DISK_GB': 80},
        },
    }


def test_external_service_gets_the_address_of_keystone(conf, service):
    conf.set_override('region_name', 'RegionOne', 'keystone')
    # The client of Keystone does the same.
    password = loading.get_auth_plugin_conf_options('password')
    conf.register_opts(password, 'keystone')
    conf.set_override('auth_url', 'http://k.example/v3', 'keystone')
    filter_ = external.ExternalServiceFilter(conf)
    filter_.check_external(_asked(), {}, {})
    [(_, document, _)] = service.questions()
    assert document['context']['auth_url'] == 'http://k.example/v3'
    assert document['context']['region_name'] == 'RegionOne'


@pytest.mark.row('F107')
def test_a_slot_is_an_allocation(world, service, slots):
    world.add_host('compute-2')
    world.create(slots(5, 2))
    [(_, document, _)] = service.questions()
    [reservation] = document['lease']['reservations']
    assert document['lease']['resource_requests'] == {
        'VCPU': 10, 'MEMORY_MB': 5 * 512, 'DISK_GB': 5,
    }
    hosts = [a['hypervisor_hostname'] for a in reservation['allocations']]
    assert len(hosts) == 5
    assert set(hosts) == {'compute-1', 'compute-2'}


@pytest.mark.row('F78')
def test_check_update_has_the_current_lease(world, service, whole):
    world.add_host('compute-2')
    lease = world.create(whole(1, 1))
    service.questions()
    world.leases.update(
        lease.id, None,
        {
            'end': world.now + 900,
            'reservations': [
                {'id': lease.reservations[0].id, 'min': 2, 'max': 2}
            ],
        },
    )
    [(path, document, _)] = service.questions()
    assert path == '/policy/check-update'
    assert set(document) == {'context', 'current_lease', 'lease'}
    old, new = document['current_lease'], document['lease']
    assert old['end_date'] < new['end_date']
    for shown, count in ((old, 1), (new, 2)):
        [reservation] = shown['reservations']
        assert reservation['max'] == count
        assert len(reservation['allocations']) == count


class TestCommits:
    """A service that is notified of what was created and updated."""

    @pytest.fixture
    def conf(self, conf, service):
        conf.set_override('external_service_commits', True, 'enforcement')
        return conf

    def test_a_lease_is_told_after_its_commit_and_before_its_end(
        self, world, service
    ):
        lease = world.create()
        world.leases.update(lease.id, None, {'name': 'other'})
        world.leases.update(lease.id, None, {'end': world.now + 900})
        world.leases.delete(lease.id, None)
        told = {}
        while '/policy/on-end' not in told:
            path, document, _ = service.next()
            told[path] = document
        assert [path for path in told if 'check' not in path] == [
            '/policy/create', '/policy/update', '/policy/on-end'
        ]
        assert told['/policy/create'] == told['/policy/check-create']
        assert told['/policy/update'] == told['/policy/check-update']
        ended, updated = told['/policy/on-end'], told['/policy/update']
        assert ended['lease']['resource_requests'] == (
            updated['current_lease']['resource_requests']
        )

    def test_the_service_is_told_which_request_has_caused_its_request(
        self, world, service
    ):
        with fixture.ClearRequestContext():
            context.RequestContext(request_id='req-1')
            lease = world.create()
            context.RequestContext(request_id='req-2', global_request_id='all')
            world.leases.update(lease.id, None, {'end': world.now + 900})
            context.RequestContext(request_id='req-3')
            world.leases.delete(lease.id, None)
        world.manager.enforcement._pool.shutdown()
        asked = [path for path, _, _ in service.questions()]
        assert sorted(zip(asked, service.ids, strict=True)) == [
            ('/policy/check-create', 'req-1'),
            ('/policy/check-update', 'all'),
            ('/policy/create', 'req-1'),
            ('/policy/on-end', 'req-3'),
            ('/policy/update', 'all'),
        ]

    def test_what_is_not_written_is_not_told(self, world, service):
        values = request(world)
        world.leases.create(values, dry_run=True)
        service.answers.append((403, '{"message": "no"}'))
        with pytest.raises(refusals.ExternalServiceFilter):
            world.create()
        first = world.leases.create(values, 'k')
        assert world.leases.create(values, 'k') == first
        world.manager.enforcement._pool.shutdown()
        assert [path for path, _, _ in service.questions()] == (
            ['/policy/check-create'] * 3 + ['/policy/create']
        )

    def test_a_service_that_fails_then_keeps_the_lease(
        self, world, service, caplog
    ):
        service.answers += [(204, ''), (403, ''), (500, '')]
        lease = world.create()
        assert [service.next()[0] for _ in range(3)] == [
            '/policy/check-create', '/policy/create', '/policy/create'
        ]
        world.manager.enforcement._pool.shutdown()
        assert world.ledger.leases() == [lease]
        assert f'on_commit for lease {lease.id}' in caplog.text


def test_an_open_end_is_null(world, service):
    world.create(end=2**63 - 1)
    [(_, document, _)] = service.questions()
    assert document['lease']['end_date'] is None


def test_another_name_is_no_question(world, service):
    lease = world.create()
    service.questions()
    world.leases.update(lease.id, None, {'name': 'other'})
    assert service.questions() == []


@pytest.mark.row('F78')
@pytest.mark.parametrize(
    'status, text, message',
    [
        (403, '{"message": "Not on Sundays."}', 'Not on Sundays.'),
        (403, '{"reason": "secret"}', external.DENIED),
        (403, '["secret"]', external.DENIED),
        (403, 'secret', external.DENIED),
        (200, '{"message": "secret"}', external.DENIED),
        (302, 'secret', external.DENIED),
        (500, '{"message": "secret"}', external.DENIED),
    ],
)
def test_only_status_204_allows_a_lease(world, service, status, text, message):
    service.answers.append((status, text))
    with pytest.raises(refusals.ExternalServiceFilter) as e:
        world.create()
    assert (e.value.status, str(e.value)) == (400, message)
    assert world.ledger.leases() == []
    world.check()


def test_refused_update_leaves_the_lease_as_it_was(world, service):
    lease = world.create()
    service.answers.append((403, '{"message": "no"}'))
    with pytest.raises(refusals.ExternalServiceFilter):
        world.leases.update(lease.id, None, {'end': world.now + 900})
    assert world.lease(lease) == lease
    world.check()


def test_a_service_that_is_away_lets_nobody_in(world, service):
    service.stop()
    with pytest.raises(exception.Unavailable):
        world.create()
    assert world.ledger.leases() == []


def test_a_service_that_is_silent_is_not_waited_for(
    world, service, monkeypatch
):
    monkeypatch.setattr(external, 'TIMEOUT', 0.1)
    answer = threading.Event()
    service.before_answer = lambda question: answer.wait(ENDED)
    with pytest.raises(exception.Unavailable):
        world.create()
    answer.set()


def test_a_lease_without_room_is_not_asked_about(world, service, whole):
    with pytest.raises(exception.NotEnoughHostsAvailable):
        world.create(whole(2, 2))
    assert service.questions() == []


def test_no_commit_waits_for_the_external_service(world, service):
    """During a request to the service other commits are possible."""

    def write(question):
        service.before_answer = lambda question: None
        world.hosts.update('1', {'gpu': 'h100'})

    service.before_answer = write
    world.create()
    assert world.ledger.host('1').capabilities == {'gpu': 'h100'}


def test_room_that_is_gone_meanwhile_is_a_refusal(world, service, whole):
    def write(question):
        service.before_answer = lambda question: None
        world.create(whole())

    service.before_answer = write
    with pytest.raises(exception.NotEnoughHostsAvailable):
        world.create(whole())
    assert len(world.ledger.leases()) == 1
    world.check()


def test_a_lease_that_changed_meanwhile_is_asked_about_again(world, service):
    lease = world.create()
    service.questions()

    def write(question):
        service.before_answer = lambda question: None
        world.leases.update(lease.id, None, {'name': 'other'})

    service.before_answer = write
    changed = world.leases.update(lease.id, None, {'end': world.now + 900})
    assert (changed.name, changed.end) == ('other', world.now + 900)
    names = [d['current_lease']['name'] for _, d, _ in service.questions()]
    assert names == ['lease', 'other']


def test_no_alternative_is_approved_in_place_of_another(world, service, whole):
    world.add_host('compute-2')
    gpu = whole(resource_properties='["==", "$gpu", "a100"]')
    first = world.create(gpu)
    service.questions()

    def write(question):
        service.before_answer = lambda question: None
        world.leases.delete(first.id, None)

    service.before_answer = write
    world.create(gpu, alternatives=[[whole()]])
    asked = [
        document['lease']['reservations'][0]['resource_properties']
        for path, document, _ in service.questions()
        if path == '/policy/check-create'
    ]
    assert asked == ['', gpu['resource_properties']]


def test_a_lease_that_never_rests_is_given_up(world, service):
    lease = world.create()
    names = iter(range(1000))

    def write(question):
        world.leases.update(lease.id, None, {'name': str(next(names))})

    service.before_answer = write
    with pytest.raises(exception.Unavailable, match='changed during each'):
        world.leases.update(lease.id, None, {'end': world.now + 900})
    assert world.lease(lease).end == lease.end
    assert len(service.questions()) == 1 + TRIES


def test_a_dry_run_is_a_question_and_tells_of_no_end(world, service):
    service.answers.append((403, '{"message": "Not on Sundays."}'))
    with pytest.raises(refusals.ExternalServiceFilter, match='Sundays'):
        world.leases.create(request(world), dry_run=True)
    asked = world.leases.create(request(world), dry_run=True)
    assert asked.status == 'PENDING'
    assert world.ledger.leases() == []
    lease = world.create()
    later = {'end': world.now + 900}
    changed = world.leases.update(lease.id, None, later, dry_run=True)
    assert changed.end == later['end']
    world.leases.delete(lease.id, None, dry_run=True)
    assert world.ledger.leases() == [lease]
    asked = [path for path, _, _ in service.questions()]
    assert asked == ['/policy/check-create'] * 3 + ['/policy/check-update']


def test_an_extension_is_no_question_until_it_is_made(world, service, whole):
    lease = world.create()
    rival = world.create(whole(), start=300, end=400)
    service.questions()
    asked = {'end': window.FOREVER}
    extensions = world.manager.extensions
    found = extensions.get(lease.id, None, window.FOREVER)
    assert (found['end'], service.questions()) == (rival.start, [])
    service.answers.append((403, '{"message": "no"}'))
    with pytest.raises(refusals.ExternalServiceFilter):
        extensions.update(lease.id, None, asked)
    assert world.lease(lease) == lease
    assert extensions.update(lease.id, None, asked).end == rival.start
    ends = [d['lease']['end_date'] for _, d, _ in service.questions()]
    assert ends == ['2027-01-15T08:05:00'] * 2


def test_the_end_that_is_booked_is_the_end_that_was_approved(
    world, service, whole
):
    lease = world.create()
    starts = iter(range(1000, 500, -100))

    def write(question):
        start = next(starts, None)
        if start is not None:
            service.before_answer = lambda question: None
            world.create(whole(), start=start, end=start + 1)
            service.before_answer = write

    service.before_answer = write
    changed = world.manager.extensions.update(
        lease.id, None, {'end': window.FOREVER}
    )
    assert changed.end == world.now + 600
    approved = [
        document['lease']['end_date']
        for path, document, _ in service.questions()
        if path == '/policy/check-update'
    ]
    assert approved == [
        None, '2027-01-15T08:16:40', '2027-01-15T08:15:00',
        '2027-01-15T08:13:20', '2027-01-15T08:11:40', '2027-01-15T08:10:00',
    ]


def request(world):
    return {
        'name': 'lease',
        'project_id': 'project',
        'user_id': 'user',
        'start': world.now + 100,
        'end': world.now + 200,
        'before_end': None,
        'reservations': [
            {'resource_type': 'physical:host', 'min': 1, 'max': 1}
        ],
    }


def test_a_request_made_again_is_no_question(world, service):
    values = request(world)
    first = world.leases.create(values, 'k')
    assert world.leases.create(values, 'k') == first
    assert len(service.questions()) == 1


class TestOnEnd:
    @pytest.mark.row('F78')
    def test_the_end_is_told_with_what_the_lease_had(self, world, service):
        lease = world.create(start='now', end=100)
        service.next()
        world.run()
        world.run(101)
        path, document, token = service.next()
        assert (path, token) == ('/policy/on-end', 'secret')
        assert set(document) == {'context', 'lease'}
        assert document['lease']['id'] == lease.id
        [reservation] = document['lease']['reservations']
        [allocation] = reservation['allocations']
        assert allocation['hypervisor_hostname'] == 'compute-1'
        assert world.lease(lease).status == 'TERMINATED'
        world.leases.delete(lease.id, None)
        assert service.questions() == []

    @pytest.mark.parametrize('started', [False, True])
    def test_a_lease_that_is_deleted_has_ended(self, world, service, started):
        lease = world.create(start='now' if started else 50, end=100)
        service.next()
        if started:
            world.run()
        world.leases.delete(lease.id, None)
        path, document, _ = service.next()
        assert path == '/policy/on-end'
        assert document['lease']['id'] == lease.id
        [reservation] = document['lease']['reservations']
        assert len(reservation['allocations']) == 1

    def test_a_service_that_fails_is_told_once_more(
        self, world, service, caplog
    ):
        lease = world.create()
        service.next()
        service.answers += [(500, ''), (500, '')]
        world.leases.delete(lease.id, None)
        assert [service.next()[0] for _ in range(2)] == (
            ['/policy/on-end'] * 2
        )
        assert world.ledger.leases() == []
        world.manager.enforcement._pool.shutdown()
        assert service.questions() == []
        assert 'ExternalServiceFilter' in caplog.text

    def test_a_manager_that_stops_tells_nobody(self, world, service):
        lease = world.create()
        service.next()
        world.manager.enforcement.stop()
        world.leases.delete(lease.id, None)
        assert world.ledger.leases() == []
        assert service.questions() == []


class TestEndpoints:
    @pytest.fixture
    def set_(self, conf):
        conf.clear_override('external_service_base_endpoint', 'enforcement')

        def set_(name, value):
            conf.set_override(f'external_service_{name}', value, 'enforcement')
            return external.ExternalServiceFilter(conf)

        return set_

    def test_without_any_the_manager_does_not_start(self, conf, set_):
        with pytest.raises(ValueError, match='base_endpoint'):
            Enforcement(conf, None)

    @pytest.mark.parametrize('url', ['example.com', 'ftp://example.com/'])
    def test_another_scheme_is_refused(self, conf, url):
        with pytest.raises(ValueError):
            conf.set_override(
                'external_service_base_endpoint', url, 'enforcement'
            )

    def test_without_a_token_none_is_sent(self, set_, service):
        set_('base_endpoint', service.url)
        set_('token', '').check_external(_asked(), {}, {})
        [(_, _, token)] = service.questions()
        assert token is None

    def test_a_bearer_token_is_sent_in_its_header(self, set_, service):
        set_('base_endpoint', service.url)
        set_('token', '')
        set_('bearer_token', 'b').check_external(_asked(), {}, {})
        [(_, _, token)] = service.questions()
        assert token == 'Bearer b'


def _asked():
    lease = Lease('l1', 'lease', 'p1', 'u1', 0, 1, 'PENDING')
    return base.LeaseChange(lease, None, 0)


def test_an_answer_that_takes_for_ever_is_given_up(
    world, service, whole, monkeypatch
):
    """A byte now and then does not make the time longer."""
    monkeypatch.setattr(external, 'TIMEOUT', 0.5)
    over = threading.Event()

    def drip(body):
        while not over.wait(0.05):
            body.write(b'x')

    service.answers = [(403, drip)]
    with pytest.raises(exception.Unavailable, match='unreachable'):
        world.create(whole())
    over.set()
    assert world.ledger.leases() == []


def test_the_end_of_a_large_answer_is_not_read(world, service, whole):
    sent = queue.Queue()

    def send(body):
        body.write(b'{"message": "')
        for number in range(1000):
            body.write(bytes(1_000_000))
            sent.put(number)

    service.answers = [(403, send)]
    with pytest.raises(refusals.ExternalServiceFilter) as refused:
        world.create(whole())
    assert str(refused.value) == external.DENIED
    assert sent.qsize() < 1000


def test_a_long_reason_is_cut(world, service, whole):
    service.answers = [(403, json.dumps({'message': 'x' * 60_000}))]
    with pytest.raises(refusals.ExternalServiceFilter) as refused:
        world.create(whole())
    assert str(refused.value) == 'x' * 500


def test_the_service_is_no_filter_that_an_administrator_lifts(conf, world):
    conf.set_override(
        'approval_filters', ['ExternalServiceFilter'], 'enforcement'
    )
    with pytest.raises(
        ValueError, match='approval_filters: ExternalServiceFilter'
    ):
        Enforcement(conf, world.ledger)


def test_without_the_part_there_is_no_such_filter(conf):
    conf.set_override('parts', [], None)
    with pytest.raises(ValueError, match='no filter ExternalServiceFilter'):
        Enforcement(conf, None)
