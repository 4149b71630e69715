# SPDX-License-Identifier: Apache-2.0
"""The actors of a world, the time, and the faults that are injected.

`actions` has what may happen, `promises` has what must hold.
"""

import contextlib
import dataclasses
import datetime
import random
import shutil
import sqlite3
from unittest import mock
import uuid

import sqlalchemy as sa

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.group_limit import GroupLimit
from blazar_sched.parts.maintenance.manager import Maintenances
from blazar_sched.parts.request import manager
from blazar_sched.parts.series.manager import AllSeries
from blazar_sched.replica import puller
from blazar_sched.service import faults
from blazar_sched.service.api import deploy
from blazar_sched.service.api import requirement
from blazar_sched.service.ledger import clock
from blazar_sched.service.ledger import retry
from blazar_sched.service.ledger.ledger import Ledger
from tests import loopback
from tests import looped
from tests.simulation import actions
from tests.simulation import ending
from tests.simulation import features as feature_draws
from tests.simulation import looks
from tests.simulation import promises
from tests.simulation import relocation
from tests.simulation.book import Book
from tests.simulation.book import LeaseRequests
from tests.simulation.book import Series
from tests.simulation.book import Spares
from tests.simulation.cloud.cloud import SimulatedCloud
from tests.simulation.features import AWAY
from tests.simulation.features import CLEANING
from tests.simulation.features import COLD
from tests.simulation.features import GROUPS
from tests.simulation.features import LEAVING
from tests.simulation.features import MAINTENANCE
from tests.simulation.features import PREEMPTIBLE
from tests.simulation.features import RELOCATION
from tests.simulation.features import REQUESTS
from tests.simulation.features import SERIES
from tests.simulation.members import Bus
from tests.simulation.members import Crash
from tests.simulation.members import Member
from tests.simulation.outside import Outside
from tests.simulation.scheduler import has_room
from tests.simulation.scheduler import Request
from tests.simulation.scheduler import Scheduler

EPOCH = 1_900_000_000
HOSTS = ('compute-a', 'compute-b', 'compute-c', 'compute-d', 'compute-e')
GROUP_LIMIT = GroupLimit(
    'two hosts', '["in", "$hypervisor_hostname", "compute-a", "compute-b"]',
    max=2,
)
PROJECTS = ('red', 'blue', 'green')
MANAGERS = 3
SCHEDULERS = 2
ACTIONS = 80
# Seconds after which a scheduler's replica is stale.
MAX_AGE = 120

# Minutes between leases in worlds with that feature.
CLEANING_TIME = 5
# Seconds ahead for which the leases of a series are booked.
SERIES_HORIZON = 3 * 3600


# What the loops of a manager do in worlds with a feature.
LOOPS = {
    LEAVING: lambda m: m.leavable_hosts.step(),
    MAINTENANCE: lambda m: (
        looped.of(m, Maintenances).step(), m.closing.step()
    ),
    PREEMPTIBLE: lambda m: m.clearing.step(),
    REQUESTS: lambda m: looped.of(m, manager.LeaseRequests).step(),
    SERIES: lambda m: looped.of(m, AllSeries).step(),
}


@dataclasses.dataclass(frozen=True)
class LetIn:
    """A request for which a scheduler has just chosen a host.

    :ivar moves: whether the request is for a server that exists already
    """

    request: Request
    node: str
    by: Scheduler
    moves: bool


class World:
    """A world: all actors, at one instant.

    Each kind of chance has a random stream of its own, made of the seed, so
    that another number of calls to Nova does not make another world.

    :param features: the optional features of the world, None to draw them
    :param often: names of actions that happen more often than otherwise
    :ivar luck: decides where faults are injected
    :ivar other_ledger: the same, for a manager that starts anew
    :ivar news: the changes of servers in the last action
    :ivar let_in: the request admitted in the last action, None if none
    :ivar placed: the allocations of a lease created in the last action
    :ivar refused: the request of a lease that was refused in it for lack of
        room
    :ivar recorded: what the ledger had of servers before it: the host and the
        amounts by uuid
    :ivar paths: the relocation paths in the ledger before it, by uuid
    :ivar setting: the options of relocation, None without relocation
    :ivar migrated: how many migrations were requested before it
    :ivar turned_away: the servers that a scheduler did not let move in the
        last action to a node that is booked and has room: each with the node
    :ivar begun: the ids of the leases that were seen active
    :ivar looks: when a manager has completed a look for moves that are due,
        each with the hosts that are available then
    :ivar settled: the time of the last such look, and the ledger's revision
        before the look
    """

    def __init__(self, seed, empty, directory, features=None, often=()):
        self.random = random.Random(f'{seed}/actions')
        self.luck = random.Random(f'{seed}/luck')
        self._ids = random.Random(f'{seed}/ids')
        self.trace = []
        self.time = EPOCH
        self.uptime = 0.0
        self.acting = None
        self.news = []
        self.let_in = None
        self.creating = False
        self.refused = None
        self.placed = []
        self.recorded = {}
        self.paths = {}
        self.looks = []
        self.migrated = 0
        self.turned_away = []
        self.begun = set()
        self.settled = None
        self.changes = 0
        # The revision and time at which each scheduler's replica was checked.
        self.compared = {}
        # Whether a lease was last seen active, by id.
        self.started = {}
        # The promised state of leases, by id; and the requests by key.
        self.promised = {}
        self.keys, self.asked_keys = {}, set()
        # The held offers, by id, also those that are not held any more.
        self.offers = {}
        self.lease_requests = LeaseRequests()
        self.series = Series()
        self.spares = Spares()
        # The allocations when the ledger was last looked at, by id.
        self.allocations_before = {}
        # When the deletion of a lease was first requested, by id.
        self.ended_by_users = {}
        # The request of each server, by uuid.
        self.requests = {}
        weather = random.Random(f'{seed}/weather')
        apart = {
            feature: random.Random(f'{seed}/{feature}')
            for feature in feature_draws.SHARES
        }
        moves, self.cold_chance = apart[RELOCATION], apart[COLD]
        drawn = feature_draws.draw(weather, apart)
        self.features = drawn if features is None else frozenset(features)
        self.setting = None
        if RELOCATION in self.features:
            self.setting = relocation.draw(moves)
        self._often = often
        path = shutil.copy(empty, f'{directory}/{seed}.sqlite')
        self.conf = self._configure(path, weather)
        self._make_actors(path)
        self._brew(weather)
        self.hosts = HOSTS[:weather.choice((2, 3, 4))]
        if self.setting is not None:
            self.hosts = HOSTS[:len(self.hosts) + 1]
            self.cloud.migration_luck = moves
            self.cloud.migration_times = self.setting.times
            self.cloud.migration_failures = self.setting.failures

    def _configure(self, path, weather):
        conf = service_conf.load(files=[])
        for group, name, value in (
            ('database', 'connection', f'sqlite:///{path}'),
            (None, 'transport_url', 'fake://'),
            ('api', 'auth_strategy', 'noauth'),
            ('email', 'smtp_host', 'localhost'),
            ('webhook', 'url', 'http://localhost/'),
            ('enforcement', 'enabled_filters', []),
            ('manager', 'minutes_before_end_lease',
             weather.choice((0, 1, 1, 5, 5, 60))),
            ('manager', 'vacate_lead_time', weather.choice((0, 120, 600))),
            ('manager', 'vacate_notice', weather.choice((10, 120))),
            ('manager', 'series_horizon', SERIES_HORIZON),
            ('manager', 'event_max_retries',
             2 if AWAY in self.features else 50),
        ):
            conf.set_override(name, value, group)
        if CLEANING in self.features:
            conf.set_override('cleaning_time', CLEANING_TIME, 'manager')
        if GROUPS in self.features:
            conf.set_override('group_limit', [GROUP_LIMIT], 'manager')
        relocation.configure(self.setting, conf)
        return conf

    def _make_actors(self, path):
        self.cloud = SimulatedCloud(
            self.luck, lambda: self.time, self.tell, self._ids,
            self._place_again, lambda uuid: self.ledger.instance(uuid),
        )
        self.outside = Outside(self.luck, lambda: self.time, self.tell)
        self.ledger = Ledger(f'sqlite:///{path}')
        self.other_ledger = Ledger(f'sqlite:///{path}')
        self.file = sqlite3.connect(path)
        self._seen = None
        # SQLite has no clock of its own: the clock of the world replaces it.
        self._database_time = sa.bindparam(
            'time', callable_=lambda: float(self.time), type_=sa.Float
        )
        self.book = Book(self.ledger)
        self.members = [Member(self, n) for n in range(MANAGERS)]
        self.bus = Bus(self)
        self.api = loopback.client(deploy.deploy(self.conf, self.bus))
        self.schedulers = [
            Scheduler(
                self.cloud, self._pull_call, lambda: self.time,
                lambda: self.uptime, MAX_AGE,
            )
            for _ in range(SCHEDULERS)
        ]

    def _brew(self, weather):
        """Set the probability of each kind of fault."""
        self.trouble = self.crashes = 0.0
        if weather.random() < 0.5:
            self.trouble = weather.choice((0.0, 0.02, 0.1))
            self.crashes = weather.choice((0.0, 0.01, 0.05))
            self.cloud.trouble = weather.choice((0.0, 0.05, 0.3))
            self.outside.trouble = self.cloud.trouble
        self.is_calm = not (self.trouble or self.crashes or self.cloud.trouble)

    def run(self):
        """Play the seed to its end.

        :raises Broken: if a promise does not hold
        """
        self.tell(f'features: {", ".join(sorted(self.features))}')
        if self.setting is not None:
            self.tell(f'{self.setting}')
        try:
            with self._armed(), self.outside.reached():
                for member in self.members:
                    member.start()
                for name in self.hosts:
                    self.cloud.add_node(name)
                    self.ask('POST', '/v1/os-hosts', {'name': name}, 'admin')
                for _ in range(ACTIONS):
                    actions.choose(
                        self.random, self.features, self._often
                    )(self)
                    self.check()
                ending.end(self)
        finally:
            self.file.close()
            self.ledger.close()
            self.other_ledger.close()

    def check(self):
        """Check each promise after the last action.

        :raises Broken: if a promise does not hold
        """
        self.news, self.cloud.done = self.cloud.done, []
        # The version changes when another connection changes the file.
        [version] = self.file.execute('PRAGMA data_version').fetchone()
        changed, self._seen = version != self._seen, version
        self.changes += changed
        known = set(self.book.allocations)
        if changed or self.time != self.book.at:
            self.book.look(self.time, self.node_names())
        if self.creating:
            self.placed = [
                a for id_, a in self.book.allocations.items()
                if id_ not in known
            ]
        promises.check(self, changed)
        self.let_in, self.creating, self.placed = None, False, []
        self.refused = None
        self.migrated = len(self.cloud.migrations)
        self.turned_away = []
        if changed:
            instances = self.book.instances.values()
            self.recorded = {
                i.uuid: (i.host, dict(i.amounts)) for i in instances
            }
            self.paths = {i.uuid: i.path for i in instances}

    # Helpers of actions

    def tell(self, text):
        self.trace.append(f'{self.time - EPOCH:+6.0f}s {text}')

    def uuid(self):
        return uuid.UUID(int=self._ids.getrandbits(128), version=4)

    def happens(self, probability):
        return self.random.random() < probability

    def strikes(self, probability):
        """Tell whether a fault of this probability happens now."""
        return probability > 0 and self.luck.random() < probability

    def pass_time(self, seconds):
        self.time += max(1, round(seconds))
        self.uptime += max(1, round(seconds))
        self.cloud.settle()

    def live(self, seconds):
        """Let time pass while managers move servers along their paths."""
        until = self.time + max(1, round(seconds))
        while self.setting is not None:
            at = relocation.next_look(self)
            if at >= until:
                break
            self.pass_time(at - self.time)
            self.relocate()
        if self.time < until:
            self.pass_time(until - self.time)

    def relocate(self):
        """Have a manager make the moves that are due, and see the servers."""
        member = self.some_member()
        if not member.alive:
            return
        before = self.newest()
        if self.quietly(member, lambda m: m.relocations.step()):
            self.looks.append((self.time, {
                h.uuid for h in self.ledger.hosts() if h.takes_leases
            }))
            self.settled = self.time, before
        for member in self.members:
            self.quietly(member, lambda m: m.instances.poll())

    def node_names(self):
        """Return the hostnames of the nodes by uuid."""
        return {n.uuid: name for name, n in self.cloud.nodes.items()}

    def some_project(self):
        return self.random.choice(PROJECTS)

    def some_projects(self):
        """Return two different projects."""
        return sorted(self.random.sample(PROJECTS, 2))

    def some_node(self):
        return self.random.choice(sorted(self.cloud.nodes))

    def some_member(self):
        return self.random.choice(self.members)

    def some_lease(self):
        """Return the id of a promised lease, None if none is left."""
        ids = [i for i, known in self.promised.items() if 'gone' not in known]
        going_on = [
            i for i in ids
            if i not in self.book.leases
            or self.book.leases[i].end > self.time
        ]
        if going_on and self.happens(0.9):
            ids = going_on
        return self.random.choice(ids) if ids else None

    def some_server(self):
        """Return a server, None if there is none."""
        servers = list(self.cloud.servers_.values())
        return self.random.choice(servers) if servers else None

    def newest(self):
        """Return the newest revision of the ledger."""
        return self.ledger.changes(0, 1)['newest']

    def start_all(self):
        for member in self.members:
            if member.manager is None:
                self.tell(f'{member.name} starts')
                member.start()

    def step_all(self):
        """Run the due steps of the managers."""
        for member in self.members:
            if self.happens(0.8):
                self.quietly(member, lambda m: m.runner.step())
            if self.happens(0.8):
                self.quietly(member, lambda m: m.runner.renew())
        if self.setting is not None:
            self.relocate()
        for feature, step in LOOPS.items():
            if feature in self.features and self.happens(0.8):
                self.quietly(self.some_member(), step)

    def quietly(self, member, work):
        """Run work of a manager whose errors a loop would log and retry.

        :returns: whether the work was completed
        """
        if not member.alive:
            return False
        try:
            return member.run(lambda m: (work(m),)) is not None
        except exception.BlazarSchedError as e:
            self.tell(f'failed: {e}')
            return False

    def hear(self, uuid_):
        """Notify a manager of a server, and let the manager poll servers."""
        member = self.some_member()
        if member.alive:
            member.run(lambda m: m.instances.notice(uuid_))
            self.quietly(member, lambda m: m.instances.poll())

    def boot(self, request, wanted=None, heard=None):
        """Boot a server where a scheduler admits it.

        :param wanted: the hostname to take if it passes
        :param heard: as of `put`
        :returns: the hostname, None if no host passes
        """
        node = self.admit(
            request,
            lambda names: wanted if wanted in names
            else self.random.choice(names),
        )
        self.tell(
            f'boot {request.uuid} of {request.project_id}, '
            f'{request.flavor.name}, bound to {request.claim}, ends '
            f'{looks.ago(request.end, EPOCH)}: {node}'
        )
        if node is not None:
            self.put(request, node, heard)
            self.check()
        return node

    def admit(self, request, choose):
        """Return the hostname that a scheduler chooses, None if none."""
        by = self.random.choice(self.schedulers)
        if self.happens(0.8):
            self.pull(by)
        node = by.place(request, choose)
        if node is not None:
            self.let_in = LetIn(
                request, node, by, request.uuid in self.cloud.servers_
            )
        return node

    def pull(self, scheduler):
        """Have a worker of nova-scheduler pull the newest changes."""
        with contextlib.suppress(puller.Unanswered, puller.Unusable):
            scheduler.pull()

    def put(self, request, node, heard=None):
        """Put a server on a node.

        :param heard: whether a manager is notified, None for at random
        """
        self.requests[request.uuid] = request
        self.cloud.boot(
            request.uuid, node, request.project_id, request.amounts,
            request.slots, reservation_id=request.claim, end=request.end,
            on_end=request.on_end, preemptible=request.preemptible,
            features=request.features,
        )
        if self.happens(0.6) if heard is None else heard:
            self.hear(request.uuid)

    def place(self, request, choose):
        """Return the host on which a scheduler admits a request, None if none.
        """
        return self.random.choice(self.schedulers).place(request, choose)

    def is_closed(self, node):
        """Tell whether nothing may be on a node at this time."""
        host = self.ledger.host(self.cloud.nodes[node].uuid)
        return host.is_closed(int(self.time))

    def _place_again(self, server, target=None):
        """Return the new host of a server that moves or is unshelved."""
        by = self.luck.choice(self.schedulers)
        if self.setting is not None:
            self.pull(by)
        asked = self.requests[server.uuid]
        node = by.place(asked, self.luck.choice, target)
        if (
            node is None and target is not None
            and has_room(self.cloud, target, asked)
            and by.knows_stay(server.uuid, target)
            and not self.is_closed(target)
        ):
            self.turned_away.append((server, target))
        return node

    # Requests to the API

    def ask(self, method, path, body, project, key=None):
        """Return the API's response.

        :raises Broken: if the response is a server error
        """
        headers = {
            'X-Auth-Token': 'admin' if project == 'admin'
            else f'user:{project}',
            'OpenStack-API-Version': 'reservation 1.1',
        }
        if key is not None:
            headers['Idempotency-Key'] = key
        answer = self.api.simulate_request(
            method, path, json=body, headers=headers
        )
        self.tell(f'{method} {path} {key or ""} {body or ""}: '
                  f'{answer.status} {answer.text[:2000]}')
        if answer.status_code == 500:
            raise promises.Broken(f'{method} {path}: {answer.text}')
        return answer

    def create(self, key):
        """Request a lease; an accepted lease is promised.

        :returns: the lease as the API shows the lease, None if it is refused
        """
        project, body = self.keys[key]
        self.creating = True
        answer = self.ask('POST', '/v1/leases', body, project, key)
        again = key in self.asked_keys
        self.asked_keys.add(key)
        # What the key made before may have been deleted since.
        if answer.status_code == 409 and not (
            again and 'has created was deleted' in answer.text
        ):
            self.refused = body
            self.check()
        if answer.status_code != 201:
            return None
        lease = answer.json['lease']
        first = self.promised.setdefault(lease['id'], {'key': key})
        if first['key'] != key:
            raise promises.Broken(f'{key} and {first["key"]} got one lease')
        others = [
            id_ for id_, known in self.promised.items()
            if known['key'] == key and id_ != lease['id']
            and not known.get('gone')
        ]
        if others:
            raise promises.Broken(
                f'{key} made the leases {others} and {lease["id"]}'
            )
        self.promise(lease)
        self.check()
        return lease

    def change(self, lease_id, body):
        """Change a lease, as an admin."""
        answer = self.ask('PUT', f'/v1/leases/{lease_id}', body, 'admin')
        if lease_id in self.promised:
            if answer.status_code == 200:
                self.promise(answer.json['lease'])
            elif answer.status_code == 503:
                self.promised[lease_id]['unsure'] = True

    def delete(self, lease_id):
        """Delete a lease, as an admin."""
        self.ended_by_users.setdefault(lease_id, self.time)
        answer = self.ask('DELETE', f'/v1/leases/{lease_id}', None, 'admin')
        known = self.promised.get(lease_id, {})
        if answer.status_code in (204, 404):
            known['gone'] = True
        elif answer.status_code == 503:
            known['unsure'] = True

    def hold(self, project, body):
        """Search for offers, of which the first one is held."""
        answer = self.ask('POST', '/v1/offers', body, project)
        if answer.status_code == 200 and answer.json['offers']:
            offer = answer.json['offers'][0]
            until = datetime.datetime.fromisoformat(offer['held_until'])
            self.offers[offer['id']] = {
                'project': project,
                'window': (offer['start_date'], offer['end_date']),
                'until': until.timestamp(),
            }
            self.check()

    def accept(self, offer_id):
        """Accept an offer; the lease is promised then."""
        known = self.offers[offer_id]
        answer = self.ask(
            'POST', '/v1/leases', {'name': 'lease', 'offer': offer_id},
            known['project'],
        )
        if answer.status_code == 201:
            lease = answer.json['lease']
            self.promised.setdefault(lease['id'], {'key': offer_id})
            if 'accepted' not in known:
                known['accepted'] = True
                if (lease['start_date'], lease['end_date']) != known['window']:
                    raise promises.Broken(f'{offer_id} became {lease}')
                self.promise(lease)
            known['gone'] = True
            self.check()
        elif answer.status_code == 409 and promises.offers.is_held(
            known, self.time
        ):
            raise promises.Broken(f'the held offer {offer_id} was refused')
        elif answer.status_code == 503:
            # The acceptance may have been committed.
            known['gone'] = True

    def drop(self, offer_id):
        """Delete an offer."""
        known = self.offers[offer_id]
        known['gone'] = True
        self.ask('DELETE', f'/v1/offers/{offer_id}', None, known['project'])

    def wait_for_room(self, key, project, body):
        """Create a lease request."""
        known = self.lease_requests
        known.asked.setdefault(key, (project, body))
        answer = self.ask('POST', '/v1/requests', body, project, key)
        if answer.status_code == 201:
            request = answer.json['request']
            id_, lease_id = request['id'], request['lease_id']
            _, before = known.seen.get(id_, (None, None))
            if before not in (None, lease_id):
                raise promises.Broken(f'{key} was booked as {request}')
            known.estimates.setdefault(id_, request['estimate'])
            self.check()

    def promise(self, lease):
        """Note a lease as the API has shown the lease to its owner."""
        known = self.promised[lease['id']]
        # A lease that is being deleted may disappear at any time.
        if lease['status'] != states.LEASE_DELETING:
            known.pop('unsure', None)
        known['window'] = (lease['start_date'], lease['end_date'])

    # Faults

    def _pull_call(self, method, **kwargs):
        answer = self.bus.call({}, method, **kwargs)
        if self.strikes(self.trouble):
            # The bus delivers the message once more.
            with contextlib.suppress(exception.BlazarSchedError):
                self.bus.call({}, method, **kwargs)
        if self.strikes(self.trouble / 4):
            return looks.garbled(answer, self.luck)
        return answer

    @contextlib.contextmanager
    def _armed(self):
        """Inject the faults of this world into the service."""
        faults.arm(self._point)
        try:
            with (
                mock.patch.object(retry, 'commit', self._commit),
                mock.patch.object(uuid, 'uuid4', self.uuid),
                mock.patch.dict(clock._NOW, {'sqlite': self._database_time}),
                # The policy lets all users name hosts.
                mock.patch.object(
                    requirement, 'sees_host_names', lambda caller: True
                ),
            ):
                yield
        finally:
            faults.arm(None)

    def _point(self, name):
        if self.acting is not None and self.strikes(self.crashes):
            raise Crash(name)

    def _commit(self, connection, real=retry.commit):
        """Commit, or fail, or commit and lose the answer."""
        trouble = self.trouble / 2 if self.acting is not None else 0.0
        draw = self.luck.random() if trouble else 1.0
        if draw < trouble:
            connection.invalidate()
            raise retry.UnknownCommit
        if draw < 2 * trouble:
            raise retry.Conflict('deadlock')
        real(connection)
        if draw < 3 * trouble:
            raise retry.UnknownCommit
