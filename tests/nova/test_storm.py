# SPDX-License-Identifier: Apache-2.0
"""Boots, leases and host failures in any order, with a real Nova.

Afterwards the test checks in the slow way, for every instant at which
something starts: Nova's servers on each host, and the reservations in SQL.

If the actions come one after the other, no host is ever overcommitted. If
several run at a time, a boot and a lease may both be admitted by the state
before either; then the lease moves, or is reported to have no room.

A small storm runs with the other tests. A larger storm, which is also run
without the announcements of what nova-scheduler has placed, and which prints
how many instants were overcommitted:

BLAZAR_SCHED_STORM=500,50,20 python -m pytest -s tests/nova/test_storm.py
"""

from concurrent import futures
import contextlib
import os
import random
import threading
import time

from nova.tests.functional.api import client
from oslo_messaging.notify import _impl_test
import pytest

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.worker import process
from blazar_sched.worker.announcer import Announcer
from demo.cloud import host_of
from demo.cloud import Timeout
from demo.cloud import wait_for
from tests.nova import clouds
from tests.nova import managing

pytestmark = pytest.mark.more

LARGE = os.environ.get('BLAZAR_SCHED_STORM')
BOOTS, LEASES, FAILURES = map(int, (LARGE or '30,8,3').split(','))
SEEDS = (1, 2, 3) if LARGE else (1,)
HOSTS = tuple(f'c{n}' for n in range(1, 9))
VCPUS = 8
# Placed servers count for as long as they do by default.
CLOUD = clouds.Kind('storm', HOSTS, VCPUS, pending_ttl=60)
# The maximum number of servers; then each new server replaces one.
MAX_SERVERS = 40
# Seconds to wait for a server, which may be moving to a host that has failed.
PATIENCE, PAUSE = 10, 0.1
MIN_LIFETIME, MAX_LIFETIME = 1800, 9000


@pytest.fixture(scope='module')
def cloud(bare_cloud):
    return bare_cloud


@pytest.fixture
def manager(cloud, nova_notifies, tmp_path):
    conf = managing.configured(
        tmp_path, enable_notification_monitor=True,
        notification_exchange=nova_notifies,
        # The test itself runs each step.
        sync_interval=36000.0, polling_interval=36000.0,
    )
    conf.set_override('driver', ['test'], 'oslo_messaging_notifications')
    manager = managing.manager_of(cloud, conf)
    manager.start()
    yield manager
    manager.stop()


class Storm:
    """Random actions, drawn from a seed.

    :param at_once: the number of simultaneous actions; if it is 1, all
        replicas know the result of an action before the next action
    """

    def __init__(self, cloud, manager, seed, at_once):
        self.cloud = cloud
        self.manager = manager
        self.random = random.Random(seed)
        self.at_once = at_once
        self.down = []
        self.there = []
        self.lock = threading.Lock()
        self.flavors = [
            cloud.flavor(vcpus, extra_specs=specs)
            for vcpus in (1, 2, 4)
            for specs in ({}, {}, {'blazar:preemptible': 'true'})
        ]
        self.refused = 0

    def rage(self):
        acts = [
            *[self.boot] * BOOTS, *[self.lease] * LEASES,
            *[self.fail] * FAILURES,
        ]
        self.random.shuffle(acts)
        with futures.ThreadPoolExecutor(self.at_once) as pool:
            under_way = [
                pool.submit(self.act, act, random.Random(self.random.random()))
                for act in acts
            ]
        for each in under_way:
            each.result()

    def act(self, act, draw):
        server = act(draw)
        if self.at_once == 1:
            wait_for('records', lambda: self._is_known(server))

    def _is_known(self, server):
        """Tell whether nova-scheduler's replica has the server."""
        ledger = self.manager.ledger
        placed = server is not None and is_placed(server)
        if placed and ledger.instance(server['id']) is None:
            return False
        replica, stale = process.current()
        newest = ledger.changes(0, 1)['newest']
        return not stale and replica.revision == newest

    def boot(self, draw):
        hints = draw.choice([{}, *[{'lifetime': str(seconds(draw))}] * 3])
        with self.lock:
            surplus = (
                [self.there.pop(draw.randrange(len(self.there)))]
                if len(self.there) >= MAX_SERVERS else []
            )
        for server in surplus:
            self._delete(server)
        server = self.cloud.api.post_server({
            'server': {
                'name': 'server', 'networks': 'none',
                'flavorRef': draw.choice(self.flavors),
                'imageRef': self.cloud.image_id,
            },
            'os:scheduler_hints': hints,
        })
        deadline = time.monotonic() + PATIENCE
        while (
            (server := self.cloud.show(server))['status'] == 'BUILD'
            and time.monotonic() < deadline
        ):
            time.sleep(PAUSE)
        with self.lock:
            self.there.append(server)
        return server

    def _delete(self, server):
        # The server may be moving to a host that has failed.
        with contextlib.suppress(client.OpenStackApiException):
            self.cloud.api.delete_server(server['id'])

    def lease(self, draw):
        asked = managing.slots(draw.randint(1, 8))
        if draw.random() < 0.5:
            asked = managing.hosts(draw.randint(1, 2))
        start = process.now() + seconds(draw)
        try:
            managing.book(self.manager, start, start + seconds(draw), asked)
        except exception.NotEnoughHostsAvailable:
            with self.lock:
                self.refused += 1

    def fail(self, draw):
        """Make one host fail, and the previous one recover."""
        with self.lock:
            self.recover()
            name = draw.choice(HOSTS)
            self.cloud.stop_compute(name)
            self.down.append(name)
            self.manager.monitor.step()

    def recover(self):
        while self.down:
            self.cloud.start_compute(self.down.pop())
        self.manager.monitor.step()

    def calm(self):
        """Wait until all actions are complete."""
        self.recover()

        def resting():
            return all(
                server['OS-EXT-STS:task_state'] is None
                and server['status'] != 'BUILD'
                for server in self.cloud.servers()
            )

        try:
            wait_for('rest', resting)
        except Timeout:
            # A server that was moving to a host that failed never arrives.
            for server in self.cloud.servers():
                if server['OS-EXT-STS:task_state'] is not None:
                    self._delete(server)
            wait_for('rest', resting)
        self.manager.instances.sync()
        self.manager.monitor.step()


def seconds(draw):
    return draw.randint(MIN_LIFETIME, MAX_LIFETIME)


def is_placed(server):
    return server['status'] == 'ACTIVE' and host_of(server) is not None


def servers(cloud):
    """Return (host, vcpus, end) of all servers that stay, from Nova."""
    for server in cloud.servers():
        specs = server['flavor']['extra_specs']
        host = host_of(server)
        if host is None or 'blazar:preemptible' in specs:
            continue
        hints = server['scheduler_hints']
        end = window.FOREVER
        if 'lifetime' in hints:
            begun = duration.parse_time(server['created'], 'created')
            end = begun + int(hints['lifetime'][0])
        yield cloud.hosts[host], server['flavor']['vcpus'], end


def faults(cloud, ledger, now):
    """Yield each instant at which a host is overcommitted."""
    there = list(servers(cloud))
    held = [allocation for allocation, _ in ledger.allocations()]
    for uuid in cloud.hosts.values():
        mine = [a for a in held if a.host == uuid]
        running = [(vcpus, end) for host, vcpus, end in there if host == uuid]
        for at in sorted({now, *(a.start for a in mine if a.start > now)}):
            promised = [a for a in mine if a.start <= at < a.end]
            whole = any(a.whole for a in promised)
            staying = sum(vcpus for vcpus, end in running if end > at)
            taken = sum(a.amounts.get('VCPU', 0) for a in promised)
            if taken + staying > VCPUS or (
                whole and (staying or len(promised) > 1)
            ):
                yield uuid, at - now, promised, staying


def told_at_risk(manager):
    """Return the ids of the leases that were reported to be at risk."""
    manager.notifier.step()
    return {
        message['payload']['lease_id']
        for _, message, *_ in _impl_test.NOTIFICATIONS
        if message['event_type'] == 'lease.at_risk'
    }


@pytest.mark.timeout(0 if LARGE else 600)
@pytest.mark.parametrize(
    ('at_once', 'announced'),
    [(1, True), (4, True), *([(4, False)] if LARGE else [])],
)
@pytest.mark.parametrize('seed', SEEDS)
def test_no_instant_has_more_promised_than_there_is(
    cloud, manager, monkeypatch, seed, at_once, announced
):
    if not announced:
        monkeypatch.setattr(Announcer, 'announce', lambda *_: None)
    _impl_test.reset()
    for name in HOSTS:
        manager.hosts.create(name, {})
    storm = Storm(cloud, manager, seed, at_once)

    storm.rage()
    storm.calm()

    assert manager.ledger.check() == []
    found = list(faults(cloud, manager.ledger, process.now()))
    told = told_at_risk(manager)
    assert found == [] or at_once > 1
    # Every result of a race has been reported.
    of = {a.id: lease_id for a, lease_id in manager.ledger.allocations()}
    for _, _, promised, _ in found:
        assert told & {of[a.id] for a in promised}
    # The storm was large enough, and most of its actions succeeded.
    assert storm.refused < LEASES
    assert list(servers(cloud))
    print(f'{len(found)} instants told of, {storm.refused} leases refused')
    cloud.delete(*cloud.servers())


def test_control_a_promise_beyond_the_capacity_is_found(cloud, manager):
    """The control: a server on a host that a lease will have as a whole."""
    for name in HOSTS:
        manager.hosts.create(name, {})
    now = process.now()
    managing.book(
        manager, now + MIN_LIFETIME, now + 2 * MIN_LIFETIME,
        managing.hosts(len(HOSTS)),
    )
    assert list(faults(cloud, manager.ledger, now)) == []

    forced = cloud.boot(cloud.flavor(1), availability_zone='nova:c1')

    [(uuid, at, _, staying)] = faults(cloud, manager.ledger, now)
    assert (uuid, at, staying) == (cloud.hosts['c1'], MIN_LIFETIME, 1)
    cloud.delete(forced)
