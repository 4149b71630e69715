# SPDX-License-Identifier: Apache-2.0
"""A cloud that is played for a year: the real service, with Nova in memory.

The API, the manager with all of its loops, and the ledger in SQL are real.
Nova and Placement are in memory. Time passes in steps of an hour, in which
every loop of the manager takes a step. Nothing fails but receivers of
webhooks: what the service does with failures is for `world`.
"""

import collections
import contextlib
import datetime
import json
import random
from unittest import mock
import uuid

import sqlalchemy as sa

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import window
from blazar_sched.service import metrics
from blazar_sched.service.api import deploy
from blazar_sched.service.clients import receiver
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger import clock
from blazar_sched.service.manager.manager import Manager
from tests import loopback
from tests.simulation import looks
from tests.simulation import members
from tests.simulation import outside
from tests.standins import processor
from tests.standins.clients import add_compute_node
from tests.standins.clients import Nova
from tests.standins.clients import Placement
from tests.standins.neutron import NeutronApi

EPOCH = 1_900_000_000 // 86400 * 86400
HOUR, DAY = 3600, 86400
# Loops that take a step every so many hours; the others every hour.
RARE = {
    'host sync': 24, 'flavor sync': 24, 'instance sync': 6, 'host monitor': 6,
    'usage': 3, 'pruner': 6,
}
# Loops that only wait for the bus or the clock of the machine.
LEFT_OUT = {'fanout', 'notifier', 'gauges'}
HOOKS = '192.0.2.0/28'
# The most series that have no end.
MAX_ENDLESS = 10


class Bus:
    """Calls of the API, answered by the manager in this thread."""

    def __init__(self, manager):
        self._manager = manager

    def call(self, ctxt, method, **kwargs):
        sent = json.loads(json.dumps(kwargs))
        answer = members.answer_of(self._manager.endpoint, method, sent)
        return json.loads(json.dumps(answer))


class Year:
    """A cloud whose time passes by the hour.

    :param url: a database with the ledger's tables
    :param leases: how many leases are created each day
    :param options: values of the group [manager]
    :ivar ahead: the most hours from the creation of a lease to its start
    :ivar lengths: the hours that a lease lasts
    :ivar endless: the rule of the series that have no end
    :ivar finite: the rule of the other series
    """

    ahead = 72
    lengths = 2, 4, 8, 24, 72
    endless = 'FREQ=WEEKLY'
    finite = 'FREQ=DAILY;COUNT=4'

    def __init__(self, url, hosts=1000, leases=140, seed=1, **options):
        self.time = EPOCH
        self.random = random.Random(seed)
        self.leases_a_day = leases
        self.hours = 0
        # The newest leases that may be changed: a list that grows would be
        # what grows here.
        self._open = collections.deque(maxlen=500)
        # By the hour of its start, what servers are booted in.
        self._starting = collections.defaultdict(list)
        # By the hour, the servers that their owners delete.
        self._going = collections.defaultdict(list)
        self._numbers = iter(range(2**63))
        self.conf = service_conf.load(files=[])
        for group, name, value in (
            ('database', 'connection', url),
            (None, 'transport_url', 'fake://'),
            ('api', 'auth_strategy', 'noauth'),
            ('webhook', 'allowed_networks', [HOOKS]),
            ('enforcement', 'enabled_filters', []),
            ('manager', 'relocate_instances', False),
            *(('manager', *each) for each in options.items()),
        ):
            self.conf.set_override(name, value, group)
        self.nova, self.placement = Nova(), Placement()
        self.metrics = metrics.new()
        self.manager = Manager(
            self.conf, self.nova, self.placement, lambda: float(self.time),
            lambda: float(self.time - EPOCH), self._wait, members.Inline(),
            {'neutron': NeutronApi()}.get, outside.Keystone(),
            thread_time=processor.ticking(),
        )
        self.api = loopback.client(
            deploy.deploy(self.conf, Bus(self.manager), self.metrics)
        )
        # SQLite has no clock of its own, and that of a server is not ours.
        now = sa.bindparam(
            'time', callable_=lambda: float(self.time), type_=sa.Float
        )
        self._patches = [
            mock.patch.dict(clock._NOW, dict.fromkeys(clock._NOW, now)),
            mock.patch.object(receiver, 'post', self._post),
        ]
        self.uuids = {}
        self.names = [f'compute-{n:04d}' for n in range(hosts)]

    @contextlib.contextmanager
    def playing(self):
        """Register the hosts; everything else has to be in this context."""
        with contextlib.ExitStack() as stack:
            for each in self._patches:
                stack.enter_context(each)
            stack.callback(self.manager.ledger.close)
            self.manager.clock.ask(self.manager.ledger.next_event)
            for name in self.names:
                self.uuids[name] = add_compute_node(
                    self.nova, self.placement, name, 64, 262144, 2000
                )
                self.manager.hosts.create(name, {})
            # They are booked far ahead, and so would be what grows.
            for _ in range(MAX_ENDLESS):
                self.series(endless=True)
            yield

    def play(self, days):
        """Let days pass."""
        for _ in range(days * 24):
            self._hour()

    def _hour(self):
        self.time += HOUR
        self.hours += 1
        for action, share in ACTIONS:
            for _ in range(self._often(share)):
                action(self)
        self._servers()
        for each in self.manager._loops:
            if each.name in LEFT_OUT:
                continue
            if self.hours % RARE.get(each.name, 1) == 0:
                each._step()

    def _often(self, share):
        """Return how often in an hour, on average, a share of the leases."""
        return int(share * self.leases_a_day / 24 + self.random.random())

    def _wait(self, seconds):
        pass

    def _post(self, url, *args):
        # One receiver of four is never there.
        return receiver.Answer(503 if url.endswith('/0') else 204)

    # What projects and operators do

    def ask(self, method, path, body=None, project=None, key=None):
        """Return the API's response, which may be a refusal."""
        headers = {
            'X-Auth-Token': f'user:{project}' if project else 'admin',
            'OpenStack-API-Version': 'reservation 1.1',
        }
        if key is not None:
            headers['Idempotency-Key'] = key
        answer = self.api.simulate_request(
            method, path, json=body, headers=headers
        )
        if answer.status_code >= 500:
            raise AssertionError(f'{method} {path} {body}: {answer.text}')
        return answer

    def project(self):
        return f'project-{self.random.randrange(40)}'

    def number(self):
        return next(self._numbers)

    def key(self):
        return f'key-{self.number()}' if self.random.random() < 0.3 else None

    def reservation(self):
        draw = self.random.random()
        if draw < 0.6:
            return {
                'resource_type': 'physical:host', 'min': 1,
                'max': self.random.choice((1, 2, 4)),
                'hypervisor_properties': '', 'resource_properties': '',
            }
        return {
            'resource_type': 'virtual:instance', 'vcpus': 4,
            'memory_mb': 8192, 'disk_gb': 20,
            'amount': self.random.choice((1, 2, 5)), 'affinity': False,
            'resource_properties': '',
        }

    def start(self):
        """Return a full hour, at which time is stepped."""
        return self.time + HOUR * self.random.randint(1, self.ahead)

    def length(self):
        return HOUR * self.random.choice(self.lengths)

    def lease(self):
        start = self.start()
        return {
            'name': f'lease {self.number()}',
            'start_date': looks.date(start),
            'end_date': looks.date(start + self.length()),
            'reservations': [self.reservation()], 'events': [],
        }

    def create(self):
        project = self.project()
        made = self.ask(
            'POST', '/v1/leases', self.lease(), project, self.key()
        )
        if made.status_code == 201:
            self._keep(made.json['lease'], project)

    def _keep(self, lease, project):
        self._open.append((lease, project))
        self._starting[_instant(lease['start_date'])].append((
            [each['id'] for each in lease['reservations']], project
        ))

    def refuse(self):
        body = self.lease()
        body['reservations'] = [{
            'resource_type': 'physical:host', 'min': len(self.names) + 1,
            'max': len(self.names) + 1, 'hypervisor_properties': '',
            'resource_properties': '',
        }]
        self.ask('POST', '/v1/leases', body, self.project())
        # Names and paths that a client makes up.
        self.ask('GET', f'/v1/leases/{self.number()}', project=self.project())
        self.ask('GET', f'/v1/nothing/{self.number()}')

    def update(self):
        if self._open:
            lease, project = self.random.choice(self._open)
            end = _instant(lease['end_date'])
            self.ask('PUT', f'/v1/leases/{lease["id"]}', {
                'end_date': looks.date(end + HOUR),
            }, project)

    def delete(self):
        if self._open:
            lease, project = self._open.popleft()
            self.ask('DELETE', f'/v1/leases/{lease["id"]}', None, project)

    def read(self):
        project = self.project()
        self.ask('GET', '/v1/leases?limit=20', project=project)
        self.ask('GET', '/v1/reports/usage', project=project)

    def offer(self):
        project = self.project()
        found = self.ask('POST', '/v1/offers', {
            'reservations': [self.reservation()], 'duration': '4h',
            'hold': '30m',
        }, project)
        if found.status_code == 200 and self.random.random() < 0.5:
            for each in found.json['offers'][:1]:
                self.ask('POST', '/v1/leases', {
                    'name': 'from an offer', 'offer': each['id'],
                }, project)

    def request(self):
        start = self.start()
        reservation = self.reservation()
        if self.random.random() < 0.3:
            # Has to wait, in vain.
            reservation = {
                'resource_type': 'physical:host', 'min': len(self.names),
                'max': len(self.names), 'hypervisor_properties': '',
                'resource_properties': '',
            }
        self.ask('POST', '/v1/requests', {
            'name': 'waits', 'reservations': [reservation],
            'start_date': looks.date(start),
            'latest_start_date': looks.date(start + 6 * HOUR),
            'duration': '4h', 'flexible': self.random.random() < 0.5,
        }, self.project(), self.key())

    def series(self, endless=None):
        project = self.project()
        if endless is None:
            endless = self.random.random() < 0.5
        if endless:
            known = self.ask('GET', '/v1/series').json['series']
            known = [e for e in known if e['rrule'] == self.endless]
            for each in known[MAX_ENDLESS - 1:]:
                self.ask('DELETE', f'/v1/series/{each["id"]}')
        start = datetime.datetime.fromtimestamp(
            self.start(), datetime.UTC
        ).strftime('%Y-%m-%dT%H:%M:%S')
        self.ask('POST', '/v1/series', {
            'name': 'series',
            'rrule': self.endless if endless else self.finite,
            'time_zone': 'UTC', 'start': start, 'duration': '4h',
            'reservations': [self.reservation()], 'if_no_room': 'skip',
        }, project, self.key())

    def maintain(self):
        start = self.start()
        self.ask('POST', '/v1/maintenances', {
            'name': 'rack', 'hosts': self.random.sample(self.names, 2),
            'start_date': looks.date(start),
            'end_date': looks.date(start + 4 * HOUR), 'force': True,
        })

    def hook(self):
        project = self.project()
        known = self.ask(
            'GET', '/v1/webhooks', project=project
        ).json['webhooks']
        if known:
            self.ask('DELETE', f'/v1/webhooks/{known[0]["id"]}', None, project)
        self.ask('POST', '/v1/webhooks', {
            'url': f'https://192.0.2.1/{self.random.randrange(4)}',
            'events': ['lease.*'],
        }, project)

    def calendar(self):
        project = self.project()
        known = self.ask(
            'GET', '/v1/calendars', project=project
        ).json['calendars']
        if known:
            self.ask(
                'DELETE', f'/v1/calendars/{known[0]["id"]}', None, project
            )
        self.ask('POST', '/v1/calendars', {'name': 'ours'}, project)

    def _servers(self):
        """Have servers come and go, in leases and outside of leases."""
        now, nova = self.time, self.nova
        for id_ in self._going.pop(now, ()):
            nova.stored.pop(id_, None)
        for counts in (nova.asked, self.placement.used):
            for gone in counts.keys() - nova.stored.keys():
                del counts[gone]
        names = {id_: name for name, id_ in self.uuids.items()}
        for ids, project in self._starting.pop(now, ()):
            for id_ in ids:
                for held, _ in self.manager.ledger.allocations(
                    reservation_id=id_
                )[:2]:
                    self._boot(names[held.host], project, id_)
        for _ in range(self._often(1)):
            node = self.random.choice(self.names)
            # nova-scheduler would refuse a host that is reserved soon.
            if not self.manager.ledger.allocations(
                host=self.uuids[node], after=now
            ):
                self._boot(node, self.project(), None)

    def _boot(self, node, project, reservation_id):
        id_ = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        size, end = self.random.choice((1, 2, 4)), window.FOREVER
        if reservation_id is None:
            goes = self.time + self.length()
            self._going[goes].append(id_)
            # Every other owner says so.
            end = self.random.choice((goes, end))
        self.nova.stored[id_] = Server(
            uuid=id_, node=node, project_id=project,
            amounts={'VCPU': size, 'MEMORY_MB': 1024 * size, 'DISK_GB': 5},
            end=end, reservation_id=reservation_id, preemptible=False,
            status='ACTIVE', created=self.time,
        )


def _instant(text):
    return int(datetime.datetime.fromisoformat(text).timestamp())


ACTIONS = (
    (Year.create, 1), (Year.refuse, 0.1), (Year.update, 0.2),
    (Year.delete, 0.15), (Year.read, 0.3), (Year.offer, 0.05),
    (Year.request, 0.05), (Year.series, 0.02), (Year.maintain, 0.02),
    (Year.hook, 0.02), (Year.calendar, 0.01),
)
