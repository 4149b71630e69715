# SPDX-License-Identifier: Apache-2.0
"""The actors, what may happen to them, and what must hold whatever does."""

import contextlib
import random
import shutil
from unittest import mock
import uuid

from falcon import testing

from blazar_sched.conf import service as conf_
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.replica import puller
from blazar_sched.service import faults
from blazar_sched.service.api import deploy
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.ledger import retry
from tests.simulation import cloud as cloud_
from tests.simulation import looks
from tests.simulation import members as members_

EPOCH = 1_900_000_000
HOUR = 3600
HOSTS = ('compute-a', 'compute-b', 'compute-c')
PROJECTS = ('red', 'blue')
MANAGERS = 3
REPLICAS = 2
ACTIONS = 60
# Seconds after which a replica says that it is stale.
MAX_AGE = 120
# Rounds in which a world without trouble must get everything done.
ROUNDS = 200
OPEN = (states.LEASE_PENDING, states.LEASE_ACTIVE)


class Broken(AssertionError):
    """A promise that does not hold."""


class World:
    """Everything, at one instant."""

    def __init__(self, seed, empty, directory):
        self.random = random.Random(seed)
        self.trace = []
        self.time = EPOCH
        self.uptime = 0.0
        self.acting = None
        # How probable trouble is at each chance; set for each world anew.
        self.trouble = self.random.choice((0.0, 0.02, 0.1))
        self.crashes = self.random.choice((0.0, 0.01, 0.05))
        self.cloud = cloud_.Cloud(self.random, lambda: self.time, self.tell)
        self.cloud.trouble = self.random.choice((0.0, 0.05, 0.3))
        path = shutil.copy(empty, f'{directory}/{seed}.sqlite')
        self.conf = conf_.load(files=[])
        self.conf.set_override('connection', f'sqlite:///{path}', 'database')
        self.conf.set_override('transport_url', 'fake://')
        self.conf.set_override('event_max_retries', 50, 'manager')
        self.ledger = ledger_.Ledger(f'sqlite:///{path}')
        self.members = [members_.Member(self, n) for n in range(MANAGERS)]
        self.pullers = [
            puller.Puller(
                self._pull_call, lambda: self.uptime, lambda: MAX_AGE
            )
            for _ in range(REPLICAS)
        ]
        self.bus = members_.Bus(self)
        self.api = testing.TestClient(deploy.deploy(self.conf, self.bus))
        # What leases were promised, by id; and keys with what they asked for.
        self.promised = {}
        self.keys = {}

    # What happens

    def run(self):
        """Play the seed to its end.

        :raises Broken: if a promise does not hold
        """
        with self._armed():
            for member in self.members:
                member.start()
            for name in HOSTS:
                self.cloud.add_node(name)
                self._quietly(self.add_host, name)
            for _ in range(ACTIONS):
                self.random.choices(_CHOICES, _WEIGHTS)[0](self)
                self.check()
            self._calm()
            self._finish()
        self.ledger.close()

    def tell(self, text):
        self.trace.append(f'{self.time - EPOCH:+6.0f}s {text}')

    def uuid(self):
        return uuid.UUID(int=self.random.getrandbits(128), version=4)

    def happens(self, probability):
        return self.random.random() < probability

    def pass_time(self, seconds):
        self.time += max(1, round(seconds))
        self.uptime += max(1, round(seconds))
        self.cloud.settle()

    def add_host(self, name):
        return self._ask('POST', '/v1/os-hosts', {'name': name}, 'admin')

    def create(self):
        project = self.random.choice(PROJECTS)
        start = self.time + self.random.choice((0, 60, 300, 900))
        end = start + self.random.choice((60, 120, 600, HOUR))
        body = {
            'name': f'lease {len(self.keys)}',
            'start_date': looks.date(start),
            'end_date': looks.date(end),
            'reservations': [
                self._reservation()
                for _ in range(self.random.choice((1, 1, 2)))
            ],
        }
        if self.happens(0.3):
            del body['start_date']
        key = f'key-{len(self.keys)}'
        self.keys[key] = (project, body)
        self._create(key)

    def create_again(self):
        """As a client that had no answer does, or that asks twice."""
        if self.keys:
            self._create(self.random.choice(list(self.keys)))

    def _create(self, key):
        project, body = self.keys[key]
        answer = self._ask('POST', '/v1/leases', body, project, key)
        if answer.status_code != 201:
            return
        lease = answer.json['lease']
        first = self.promised.setdefault(lease['id'], {'key': key})
        if first['key'] != key:
            raise Broken(f'{key} and {first["key"]} got one lease')
        others = [
            id_ for id_, known in self.promised.items()
            if known['key'] == key and id_ != lease['id']
            and not known.get('gone')
        ]
        if others:
            raise Broken(f'{key} made the leases {others} and {lease["id"]}')
        self._promise(lease)

    def _reservation(self):
        if self.happens(0.4):
            least = self.random.choice((1, 1, 2))
            return {
                'resource_type': 'physical:host',
                'min': least,
                'max': least,
                'hypervisor_properties': '',
                'resource_properties': '',
            }
        return {
            'resource_type': 'virtual:instance',
            'vcpus': self.random.choice((1, 2, 4)),
            'memory_mb': 512,
            'disk_gb': 1,
            'amount': self.random.choice((1, 2, 5)),
            'affinity': self.random.choice((None, True, False)),
            'resource_properties': '',
        }

    def update(self):
        lease_id = self._some_lease()
        if lease_id is None:
            return
        end = self.time + self.random.choice((5, 120, 600, 2 * HOUR))
        body = self.random.choice(
            ({'end_date': looks.date(end)}, {'name': 'renamed'})
        )
        answer = self._ask('PUT', f'/v1/leases/{lease_id}', body, 'admin')
        if answer.status_code == 200:
            self._promise(answer.json['lease'])
        elif answer.status_code == 503:
            self.promised[lease_id]['unsure'] = True

    def reshape(self):
        """Add a reservation to a lease, or take one out."""
        leases = {lease.id: lease for lease in self.ledger.leases()}
        lease = leases.get(self._some_lease())
        if lease is None:
            return
        change = self._reservation()
        if lease.reservations and self.happens(0.5):
            gone = self.random.choice(lease.reservations)
            change = {'id': gone.id, 'remove': True}
        self._ask(
            'PUT', f'/v1/leases/{lease.id}', {'reservations': [change]},
            'admin', version='1.1',
        )

    def delete(self):
        lease_id = self._some_lease()
        if lease_id is None:
            return
        answer = self._ask('DELETE', f'/v1/leases/{lease_id}', None, 'admin')
        if answer.status_code in (204, 404):
            self.promised[lease_id]['gone'] = True
        elif answer.status_code == 503:
            self.promised[lease_id]['unsure'] = True

    def _some_lease(self):
        ids = [i for i, known in self.promised.items() if 'gone' not in known]
        return self.random.choice(ids) if ids else None

    def boot(self):
        """Boot a server, in a reservation that is open or in none."""
        node = self.random.choice(HOSTS)
        slots = [(h, c) for (h, c), n in self.cloud.slots.items() if n]
        if slots and self.happens(0.7):
            host, name = self.random.choice(sorted(slots))
            id_ = name.removeprefix('CUSTOM_RESERVATION_')
            id_ = id_.replace('_', '-').lower()
            for project in sorted(self.cloud.projects.get(id_, ())):
                self.cloud.boot(host, project, id_)
        else:
            self.cloud.boot(node, 'green', end=self.time + 200)

    def tick(self):
        self.pass_time(self.random.choice((1, 5, 20, 70, 400)))
        self._step_all()

    def step_clock(self):
        member = self.random.choice(self.members)
        member.skew = self.random.choice((-3 * HOUR, -30, 0, 0, 30, 2 * HOUR))
        member.was_ahead |= member.skew > 0
        self.tell(f"{member.name}'s clock is {member.skew} s off")

    def pause(self):
        member = self.random.choice(self.members)
        member.paused = not member.paused
        self.tell(f'{member.name} {"stops" if member.paused else "goes on"}')

    def kill(self):
        member = self.random.choice(self.members)
        if member.manager is not None:
            self.tell(f'{member.name} is killed')
            member.manager.ledger.close()
            member.manager = None

    def start(self):
        for member in self.members:
            if member.manager is None:
                self.tell(f'{member.name} starts')
                member.start()

    def prune(self):
        member = self.random.choice(self.members)
        keep = self.random.choice((1, 5))
        if member.alive:
            self._quietly(member.run, lambda m: m.ledger.prune(keep))

    def sync(self):
        member = self.random.choice(self.members)
        if member.alive:
            self._quietly(member.run, lambda m: m.instances.sync())

    def hear(self):
        """A manager is told of a server, perhaps of one that has gone."""
        member = self.random.choice(self.members)
        known = {i.uuid for i in self.ledger.instances()}
        heard = sorted(known.union(self.cloud.servers_))
        if heard and member.alive:
            uuid = self.random.choice(heard)
            member.run(lambda m: m.instances.notice(uuid))
            self._quietly(member.run, lambda m: m.instances.look())

    def fail(self):
        """Have a host fail, or come back."""
        name = self.random.choice(HOSTS)
        self.cloud.set_up(name, not self.cloud.nodes[name].up)

    def watch(self):
        member = self.random.choice(self.members)
        if member.alive:
            self._quietly(member.run, lambda m: m.monitor.step())

    def pull(self):
        each = self.random.choice(self.pullers)
        with contextlib.suppress(puller.Unanswered, puller.Unusable):
            each.pull(int(self.time))
            self._compare(each)

    # Inside

    def _step_all(self):
        for member in self.members:
            if member.alive and self.happens(0.8):
                self._quietly(member.run, lambda m: m.runner.step())
            if member.alive and self.happens(0.8):
                self._quietly(member.run, lambda m: m.runner.renew())

    def _quietly(self, work, *args):
        """What a loop would log and try again."""
        try:
            work(*args)
        except exception.BlazarSchedError as e:
            self.tell(f'failed: {e}')

    def _ask(
        self, method, path, body, project, key=None, version='1.0'
    ):
        headers = {
            'X-Auth-Token': 'admin' if project == 'admin'
            else f'user:{project}',
            'OpenStack-API-Version': f'reservation {version}',
        }
        if key is not None:
            headers['Idempotency-Key'] = key
        answer = self.api.simulate_request(
            method, path, json=body, headers=headers
        )
        self.tell(f'{method} {path} {key or ""}: {answer.status} '
                  f'{answer.text[:300]}')
        if answer.status_code == 500:
            raise Broken(f'{method} {path}: {answer.text}')
        return answer

    def _promise(self, lease):
        known = self.promised[lease['id']]
        # What is being deleted may go at any time.
        if lease['status'] != states.LEASE_DELETING:
            known.pop('unsure', None)
        known['window'] = (lease['start_date'], lease['end_date'])

    def _pull_call(self, method, **kwargs):
        answer = self.bus.call({}, method, **kwargs)
        if self.happens(self.trouble):
            # The bus delivers it once more.
            with contextlib.suppress(exception.BlazarSchedError):
                self.bus.call({}, method, **kwargs)
        if self.happens(self.trouble / 4):
            return looks.garbled(answer, self.random)
        return answer

    @contextlib.contextmanager
    def _armed(self):
        """Have the product meet this world's trouble."""
        faults.arm(self._point)
        try:
            with (
                mock.patch.object(retry, 'commit', self._commit),
                mock.patch.object(uuid, 'uuid4', self.uuid),
            ):
                yield
        finally:
            faults.arm(None)

    def _point(self, name):
        if self.acting is not None and self.happens(self.crashes):
            raise members_.Crash(name)

    def _commit(self, connection, real=retry.commit):
        """Commit; or not; or commit without anybody hearing of it."""
        trouble = self.trouble / 2 if self.acting is not None else 0.0
        draw = self.random.random()
        if draw < trouble:
            connection.invalidate()
            raise retry.UnknownCommit
        if draw < 2 * trouble:
            raise retry.Conflict('deadlock')
        real(connection)
        if draw < 3 * trouble:
            raise retry.UnknownCommit

    # What must hold

    def check(self):
        """Look through the ledger for what must never be."""
        found = self.ledger.check()
        if found:
            raise Broken('; '.join(found))
        leases = {lease.id: lease for lease in self.ledger.leases()}
        for id_, known in self.promised.items():
            lease = leases.get(id_)
            if lease is None:
                if 'gone' not in known and 'unsure' not in known:
                    raise Broken(f'the accepted lease {id_} is not there')
                known['gone'] = True
            elif 'gone' in known:
                if lease.status != states.LEASE_DELETING:
                    raise Broken(f'the deleted lease {id_} is still there')
            elif 'unsure' not in known:
                self._check_promise(lease, known)

    def _check_promise(self, lease, known):
        given = looks.blazar_date(lease.start), looks.blazar_date(lease.end)
        if given != known['window']:
            raise Broken(f'{lease.id}: promised {known["window"]}, is {given}')
        if lease.status not in OPEN:
            return
        held = [a for a, _ in self.ledger.allocations(lease_id=lease.id)]
        for reservation in lease.reservations:
            own = [a for a in held if a.reservation_id == reservation.id]
            if reservation.status == states.RESERVATION_DELETED:
                continue
            if looks.size(reservation, own) < looks.wanted(reservation) and (
                not reservation.missing_resources or not lease.degraded
            ):
                raise Broken(f'{reservation.id} has only {own}')
            # What is active is placed anew from now on where it changes.
            if any(a.start < lease.start or a.end != lease.end for a in own):
                raise Broken(f'{reservation.id} of {lease} has {own}')

    def _compare(self, each):
        """A replica that is not stale equals one that is made anew."""
        copy = each.copy
        if not each.is_fresh(copy):
            return
        made = looks.rebuild(
            self.ledger, copy.replica.revision, int(self.time)
        )
        if made is None:
            return
        if looks.image(copy.replica) != looks.image(made):
            raise Broken(
                f'a replica differs at revision {copy.replica.revision}: '
                f'{looks.image(copy.replica) ^ looks.image(made)}'
            )

    def _calm(self):
        """No more trouble: all are up again and have the right time."""
        self.tell('all is calm from here on')
        self.trouble = self.crashes = self.cloud.trouble = 0.0
        for member in self.members:
            member.paused, member.skew = False, 0
        for name in HOSTS:
            self.cloud.set_up(name, True)
        self.start()

    def _finish(self):
        """Everything gets done by itself, and nothing is left over."""
        for _ in range(ROUNDS):
            next_ = self.ledger.next_event_time() or 0
            self.pass_time(max(40, next_ - self.time))
            for member in self.members:
                member.run(lambda m: m.runner.renew())
                member.run(lambda m: m.runner.step())
            self.members[0].run(lambda m: m.instances.sync())
            self.members[0].run(lambda m: m.monitor.step())
            self._check_open()
            if not self._to_do():
                break
        else:
            raise Broken(f'never done: {self._to_do()}')
        self.check()
        self._check_records()
        if self.cloud.leftovers():
            raise Broken(f'left over: {self.cloud.leftovers()}')
        for each in self.pullers:
            each.pull(int(self.time))
            each.pull(int(self.time))
            self._compare(each)
            if not each.is_fresh(each.copy):
                raise Broken('a replica stays stale')

    def _to_do(self):
        return [
            (lease.id, lease.status, e.event_type, e.status)
            for lease in self.ledger.leases()
            for e in lease.events
            if e.status not in (states.EVENT_DONE, states.EVENT_ERROR)
        ]

    def _check_records(self):
        """The records are what Nova says, after one look at all."""
        self.cloud.settle()
        self.members[0].run(lambda m: m.instances.sync())
        hosts = {h.hypervisor_hostname: h.uuid for h in self.ledger.hosts()}
        true = {
            s.uuid: hosts[s.node] for s in self.cloud.servers_.values()
            if s.node in hosts
        }
        found = {i.uuid: i.host for i in self.ledger.instances()}
        if found != true:
            raise Broken(f'records of servers: {found}, not {true}')

    def _check_open(self):
        """An active instance reservation has its flavor.

        Not if some manager took its window for over, by a clock ahead.
        """
        if any(member.was_ahead for member in self.members):
            return
        for lease in self.ledger.leases():
            if lease.status != states.LEASE_ACTIVE or any(
                e.status == states.EVENT_IN_PROGRESS
                or (e.status == states.EVENT_UNDONE and e.time <= self.time)
                for e in lease.events
            ):
                continue
            for r in lease.reservations:
                if r.resource_type != 'virtual:instance':
                    continue
                if self.cloud.projects.get(r.id) != {lease.project_id}:
                    raise Broken(f'{r.id} is active and has no flavor')


_ACTIONS = {
    World.create: 14,
    World.create_again: 4,
    World.update: 5,
    World.reshape: 4,
    World.delete: 4,
    World.boot: 4,
    World.tick: 25,
    World.step_clock: 2,
    World.pause: 3,
    World.kill: 2,
    World.start: 5,
    World.prune: 2,
    World.sync: 4,
    World.hear: 4,
    World.fail: 3,
    World.watch: 5,
    World.pull: 10,
}
_CHOICES, _WEIGHTS = zip(*_ACTIONS.items(), strict=True)
