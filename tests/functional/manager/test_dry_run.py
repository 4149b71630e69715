# SPDX-License-Identifier: Apache-2.0
"""A dry run returns what the request would return, and changes nothing.

Each request is first a dry run and then a real one, through the API, with a
manager whose other services are stand-ins at the level of HTTP.
"""

import contextlib
import itertools
import json
import random
import re
import sqlite3

import pytest
import sqlalchemy as sa

from blazar_sched.domain import duration
from blazar_sched.domain import states
from blazar_sched.domain.demand import INSTANCES
from blazar_sched.replica import packing
from blazar_sched.service.api import deploy
from blazar_sched.service.bus import rpc
from blazar_sched.service.clients import placement
from tests import loopback
from tests.functional.manager.managed_cloud import NotifyingCloud
from tests.seeds import seeds

HOSTS = ('a', 'b', 'c')
HEADERS = {
    'X-Auth-Token': 'user:project', 'OpenStack-API-Version': 'reservation 1.1',
}
UUID = re.compile('[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
UNKNOWN = '00000000-0000-4000-8000-000000000000'
SLOT = {'vcpus': 2, 'memory_mb': 512, 'disk_gb': 2}


class CloudWithApi(NotifyingCloud):
    """A cloud with an API; calls to other services are in `felt`."""

    def __init__(self, conf, clock, **options):
        super().__init__(
            conf, clock, *HOSTS, wait=lambda seconds: None, **options
        )
        conf.set_override('auth_strategy', 'noauth', 'api')
        self.api = loopback.client(
            deploy.deploy(conf, rpc.Local(self.manager.endpoint))
        )
        self._file = sa.make_url(conf.database.connection).database
        self._pokes = 0
        wake = self.manager.runner.wake

        def count():
            self._pokes += 1
            wake()

        self.manager.runner.wake = count

    def tables(self):
        """Return the whole content of the database, as text."""
        with contextlib.closing(sqlite3.connect(self._file)) as database:
            return '\n'.join(database.iterdump())

    def replica(self):
        """Return the content of the ledger's replica, in any order."""

        def see(replica):
            records, allocations = packing.split(replica.items())
            held = [*records, *itertools.chain.from_iterable(
                packing.allocations(each)
                if isinstance(each, tuple)
                else [each]
                for each in allocations
            )]
            return replica.revision, sorted(map(repr, held))

        return self.ledger.read_replica(see)

    def felt(self):
        return len(self.cloud.asked), self._pokes, self.sent()

    def ask(self, method, path, body=None, key=None, dry_run=True):
        """Send a request, as a dry run or not."""
        known = set(UUID.findall(self.tables()))
        more = {} if key is None else {'Idempotency-Key': key}
        answer = self.api.request(
            method, path, json=body, headers={**HEADERS, **more},
            query_string='dry_run=true' if dry_run else '',
        )
        body = answer.text and json.loads(answer.text)
        return answer.status_code, _without_new_ids(body, known)

    def ask_and_do(self, *request, **more):
        """Send a dry run and the real request, compare, return the response.
        """
        self.sent()
        before = self.tables(), self.replica(), self.felt()
        asked = self.ask(*request, **more)
        assert (self.tables(), self.replica(), self.felt()) == before, request
        done = self.ask(*request, dry_run=False, **more)
        assert asked == done, request
        return done

    def lease_of(self, *reservations, start=None, end=10000):
        """Create a lease by both requests; return it once it is open."""
        asked = {
            'name': 'lease',
            'start_date': None if start is None else self.time(start),
            'end_date': self.time(end),
            'reservations': list(reservations),
        }
        status, body = self.ask_and_do('POST', '/v1/leases', asked)
        assert status == 201, body
        self.settle()
        return self.ledger.leases()[-1]

    def resize(self, lease, amount, **values):
        return self.ask_and_do('PUT', f'/v1/leases/{lease.id}', {
            'reservations': [
                {'id': lease.reservations[0].id, 'amount': amount},
            ],
            **values,
        })

    def time(self, seconds):
        return duration.format_time(self.now + seconds)

    def settle(self):
        """Run the events that are due, until they wait for time to pass."""
        for _ in range(5):
            self.run(5)
        self.sync()

    def boot(self, reservation, host, part=1):
        """Boot a server in a reservation, with its flavor or a smaller one.

        Only with its flavor the server takes a slot, if there is one.
        """
        id_ = self.cloud.add_server(
            host, 'project', reservation=reservation.id
        )
        self.cloud.servers[id_]['flavor'].update(
            vcpus=SLOT['vcpus'] // part, ram=SLOT['memory_mb'] // part,
            disk=SLOT['disk_gb'] // part,
        )
        if part == 1 and not self.cloud.take_slot(
            id_, host, placement.resource_class(reservation.id)
        ):
            del self.cloud.servers[id_]
        self.sync()


def _without_new_ids(body, known):
    """Replace new ids by numbers in the order of their occurrence."""
    text = json.dumps(body, sort_keys=True)
    names = {}

    def name(match):
        id_ = match[0]
        return id_ if id_ in known else names.setdefault(
            id_, f'new {len(names)}'
        )

    return json.loads(UUID.sub(name, text))


def hosts(most=1, **parameters):
    return {
        'resource_type': 'physical:host', 'min': 1, 'max': most, **parameters
    }


def slots(amount=1, **parameters):
    return {
        'resource_type': 'virtual:instance', **SLOT, 'amount': amount,
        **parameters,
    }


@pytest.fixture
def site(conf, world):
    site = CloudWithApi(conf, world.clock)
    yield site
    site.ledger.close()


class Walk:
    """Random requests, some of which are refused."""

    def __init__(self, site, rng):
        self._site = site
        self.rng = rng
        self._made = 0

    def step(self):
        acts = {
            self.create: 5, self.update: 12, self.delete: 1, self.boot: 4,
            self.pass_time: 4, self.again: 1,
        }
        [act] = self.rng.choices([*acts], acts.values())
        return act()

    def create(self):
        rng = self.rng
        start = rng.choice([*[None] * 9, 0, 300, 600, -500])
        body = {
            'name': 'lease',
            'start_date': start and self._site.time(start),
            'end_date': self._site.time(rng.choice([700, 1500, 9000])),
            'reservations': [
                self._reservation() for _ in range(rng.randint(1, 2))
            ],
        }
        key = rng.choice([*[None] * 9, 'one'])
        return self._site.ask_and_do('POST', '/v1/leases', body, key=key)

    def again(self):
        """A key that may have created a lease, always with the same request.
        """
        body = {
            'name': 'again', 'end_date': '2030-01-01 00:00',
            'start_date': '2029-01-01 00:00', 'reservations': [hosts()],
        }
        return self._site.ask_and_do('POST', '/v1/leases', body, key='again')

    def update(self):
        rng, lease = self.rng, self._lease()
        body = rng.choice([{}, {'name': 'other'}])
        if rng.random() < 0.15:
            body['end_date'] = rng.choice(
                ['now', None, *[self._site.time(rng.randint(-50, 2000))] * 4]
            )
        if rng.random() < 0.1:
            body['start_date'] = self._site.time(rng.randint(-50, 500))
        if lease is not None and rng.random() < 0.8:
            body['reservations'] = [
                self._change(r) for r in lease.reservations
            ] + [self._reservation()] * rng.choice([0, 0, 0, 1])
        id_ = UNKNOWN if lease is None else lease.id
        return self._site.ask_and_do('PUT', f'/v1/leases/{id_}', body)

    def delete(self):
        lease = self._lease()
        id_ = UNKNOWN if lease is None else lease.id
        return self._site.ask_and_do('DELETE', f'/v1/leases/{id_}')

    def boot(self):
        active = [
            r
            for lease in self._site.ledger.leases(status=states.LEASE_ACTIVE)
            for r in lease.reservations
            if r.resource_type in INSTANCES
            and r.status == states.RESERVATION_ACTIVE
        ]
        for _ in range(4 if active else 0):
            self._site.boot(
                self.rng.choice(active), self.rng.choice(HOSTS),
                self.rng.choice([1, 1, 1, 2]),
            )

    def pass_time(self):
        if self.rng.random() < 0.5:
            self._site.run(self.rng.choice([1, 100, 400]))
        self._site.settle()

    def _lease(self):
        """Return an existing lease, or now and then None."""
        leases = self._site.ledger.leases()
        if not leases or self.rng.random() < 0.05:
            return None
        return self.rng.choice(leases)

    def _others(self):
        """Return what may be reserved beside hosts and instances."""
        return []

    def _reservation(self):
        rng = self.rng
        affinity = rng.choice([None, None, True, False])
        return rng.choice([
            hosts(rng.randint(1, 2)),
            *[slots(rng.randint(3, 9))] * 5,
            *[slots(rng.randint(1, 3), affinity=affinity)] * 3,
            *self._others(),
            slots(rng.choice([0, 20])),
        ])

    def _change(self, reservation):
        """Change the largest amount of a reservation."""
        rng = self.rng
        if rng.random() < 0.1:
            return {'id': reservation.id, 'remove': True}
        name = 'max' if reservation.demand.whole else 'amount'
        return {'id': reservation.id, name: rng.randint(1, 6)}


@pytest.fixture
def walk_of():
    """The cloud and the walk of a test."""
    return CloudWithApi, Walk


@pytest.mark.row('F35', 'F36')
@pytest.mark.parametrize('seed', seeds(5))
def test_dry_run_is_answered_as_the_request_right_after_and_changes_nothing(
    conf, world, walk_of, seed
):
    for name, value in (
        ('enabled_filters', ['MaxResourcesFilter']),
        ('max_percent_per_project', 80),
    ):
        conf.set_override(name, value, 'enforcement')
    cloud, kind = walk_of
    site = cloud(conf, world.clock)
    walk = kind(site, random.Random(seed))
    answers = [walk.step() for _ in range(60)]
    statuses = {answer[0] for answer in answers if answer is not None}
    # Some requests have succeeded.
    assert statuses >= {200, 201, 409}
    assert site.ledger.check(site.now) == []
    site.ledger.close()


class TestShrink:
    """An active reservation of instances, shrunk by the ledger's knowledge."""

    def test_which_slots_would_go(self, site):
        """The slots to be given up are left out: another lease takes them."""
        lease = site.lease_of(slots(10), slots(2))
        for host in ('a', 'b'):
            site.boot(lease.reservations[0], host)
        for more, status in ((6, 409), (5, 200)):
            body = {'reservations': [
                {'id': lease.reservations[1].id, 'amount': more},
                {'id': lease.reservations[0].id, 'amount': 7},
            ]}
            path = f'/v1/leases/{lease.id}'
            assert site.ask_and_do('PUT', path, body)[0] == status
            site.settle()

    def test_dry_run_refuses_fewer_slots_than_are_in_use(self, site):
        lease = site.lease_of(slots(6))
        for host in HOSTS:
            for part in (2, 2, 1):
                site.boot(lease.reservations[0], host, part)
        used = _slots_in_use(site, lease)
        assert used > 2
        status, refusal = site.resize(lease, used - 1)
        assert status == 409
        assert refusal['error_name'] == 'CantUpdateParameter'
        assert 'amount' in refusal['error_message']
        site.settle()
        assert site.resize(lease, used)[0] == 200

    @pytest.mark.parametrize('seed', range(4))
    def test_dry_run_shrinks_and_is_refused_as_the_request_is(
        self, site, seed
    ):
        rng = random.Random(seed)
        lease = site.lease_of(slots(11))
        statuses = []
        for amount in (9, 1, 8, 6, 4, 2):
            for _ in range(rng.randint(0, 3)):
                site.boot(
                    lease.reservations[0], rng.choice(HOSTS),
                    rng.choice([1, 2]),
                )
            statuses.append(site.resize(lease, amount)[0])
            site.settle()
        assert set(statuses) == {200, 409}

    def test_dry_run_counts_only_servers_with_a_record(self, site):
        """A dry run does not call Nova."""
        lease = site.lease_of(slots(2))
        for host in HOSTS:
            site.boot(lease.reservations[0], host)
            site.boot(lease.reservations[0], host)
        for known in list(site.ledger.instances()):
            site.ledger.commit(
                lambda tx, known=known: tx.delete_instances([known.uuid])
            )
        body = {
            'reservations': [{'id': lease.reservations[0].id, 'amount': 1}]
        }
        path = f'/v1/leases/{lease.id}'
        assert site.ask('PUT', path, body)[0] == 200
        assert site.ask('PUT', path, body, dry_run=False)[0] == 409


def _slots_in_use(site, lease):
    """Return the number of slots in use, from Nova's servers of each host."""
    held = {a.host for a, _ in site.ledger.allocations(lease_id=lease.id)}
    by_host = {host: 0 for host in HOSTS if site.hosts[host] in held}
    for server in site.cloud.servers.values():
        host = server['OS-EXT-SRV-ATTR:hypervisor_hostname']
        if host in by_host:
            by_host[host] += server['flavor']['vcpus']
    return sum(-(-vcpus // SLOT['vcpus']) for vcpus in by_host.values())


def test_a_key_that_has_made_a_lease_is_answered_with_that(site):
    body = {
        'name': 'lease', 'end_date': site.time(900),
        'reservations': [hosts(3)],
    }
    request = 'POST', '/v1/leases', body
    assert site.ask_and_do(*request, key='k')[0] == 201
    [lease] = site.ledger.leases()
    for dry_run in (True, False):
        status, shown = site.ask(*request, key='k', dry_run=dry_run)
        assert (status, shown['lease']['id']) == (201, lease.id)
    other = 'POST', '/v1/leases', {**body, 'name': 'other'}
    status, refusal = site.ask_and_do(*other, key='k')
    assert status == 409
    assert refusal['error_name'] == 'IdempotencyKeyReused'


def test_a_lease_in_the_midst_of_an_event(site):
    lease = site.lease_of(hosts())
    site.ledger.commit(lambda tx: site.manager.runner.claim_start(tx, lease))
    for method, body in (('PUT', {'name': 'other'}), ('DELETE', None)):
        status, refusal = site.ask_and_do(
            method, f'/v1/leases/{lease.id}', body
        )
        assert (status, refusal['error_name']) == (409, 'InvalidStatus')


def test_another_projects_lease_is_not_there(site):
    lease = site.lease_of(hosts())
    foreign = {**HEADERS, 'X-Auth-Token': 'other:other'}
    for method, body in (('PUT', {'name': 'other'}), ('DELETE', None)):
        answer = site.api.request(
            method, f'/v1/leases/{lease.id}', json=body, headers=foreign,
            query_string='dry_run=true',
        )
        assert answer.status_code == 404
        assert answer.json['error_name'] == 'LeaseNotFound'


def test_control_a_commit_in_place_of_the_dry_run_is_found(site, monkeypatch):
    """The control: a commit in place of the dry run is detected."""
    monkeypatch.setattr(site.ledger, 'dry_run', site.ledger.commit)
    with pytest.raises(AssertionError):
        site.lease_of(hosts())
