# SPDX-License-Identifier: Apache-2.0
"""The broker or the database goes away and comes back, without help."""

import contextlib
import random
import re
import signal
import time

import pytest

from blazar_sched.service.manager.manager import Manager
from tests.fault.site import Deployment
from tests.fault.site import wait_for
from tests.services import database
from tests.services import private
from tests.services import proxy as proxies

# Seconds before an outage, and of an outage.
BEFORE, DURING = 1, 4
# The number of leases created one after the other, and from when on.
LEASES, START = 30, 2_000_000_000
# The share of commits whose connection is cut.
CUT = 0.3


def restart(server, *_):
    server.kill()
    time.sleep(DURING)
    server.start()


def freeze(server, *_):
    server.signal(signal.SIGSTOP)
    time.sleep(DURING)
    server.signal(signal.SIGCONT)


def cut_off(_, proxy):
    proxy.block()
    time.sleep(DURING)
    # Messages in transit are lost with the connections.
    proxy.cut()
    proxy.unblock()


@pytest.fixture
def own():
    """own(private.MariaDB) -> a server that the test may kill."""
    with contextlib.ExitStack() as stack:

        def start(server):
            try:
                return stack.enter_context(server())
            except private.Missing as e:
                pytest.skip(str(e))

        yield start


def goes_on(fleet, outages, *arguments):
    """Check that leases are created after each outage, without any help."""
    with fleet.at_work() as traffic:
        for outage in outages:
            time.sleep(BEFORE)
            outage(*arguments)
            made = len(traffic.made)
            wait_for('leases', lambda made=made: len(traffic.made) > made + 10)


def test_of_the_broker(own, new_fleet, database_on):
    broker = own(private.RabbitMQ)
    with proxies.before(broker.url) as (proxy, url):
        fleet = new_fleet(database_on('mysql'), url, managers=2)
        goes_on(fleet, (restart, freeze, cut_off), broker, proxy)


def test_of_the_database(bus, own, new_fleet):
    server = own(private.MariaDB)
    with database.made(server.url) as url:
        fleet = new_fleet(url, bus, managers=2)
        goes_on(fleet, (restart, freeze), server)
        fleet.close()


def commits(data):
    """Tell whether bytes from a client ask the database to commit."""
    return re.search(rb'(?<!AUTO)COMMIT', data)


def before_commit(proxy, cut):
    def judge(data):
        return proxies.cut if commits(data) and cut() else proxies.forward

    proxy.from_client = judge


def during_commit(proxy, cut):
    """The database commits, but the client gets no response."""

    def judge(data):
        if commits(data) and cut():
            return proxies.cut_after
        return proxies.forward

    proxy.from_client = judge


def after_commit(proxy, cut):
    committing = []

    def from_client(data):
        if commits(data) and cut():
            committing.append(True)
        return proxies.forward

    def to_client(data):
        if committing:
            committing.pop()
            return proxies.cut_after
        return proxies.forward

    proxy.from_client, proxy.to_client = from_client, to_client


@pytest.mark.parametrize('engine', ['mysql', 'postgresql'])
def test_of_a_connection(engine, database_on, cloud, tmp_path):
    """Each lease is created once, wherever a commit loses its connection."""
    chance = random.Random(1)
    cuts, made = [], set()

    def cut():
        cuts.append(chance.random() < CUT)
        return cuts[-1]

    with proxies.before(database_on(engine)) as (proxy, url):
        manager = Manager(Deployment(tmp_path, url, cloud=cloud.url).conf())
        manager.ledger.upgrade()
        manager.hosts.create('compute-1', {})
        for when in (before_commit, during_commit, after_commit):
            when(proxy, cut)
            for _ in range(LEASES // 3):
                start = START + len(made) * 3600
                made.add(manager.leases.create({
                    'name': 'lease', 'project_id': 'project',
                    'user_id': 'user', 'start': start, 'end': start + 60,
                    'before_end': None, 'reservations': [{
                        'resource_type': 'physical:host', 'min': 1, 'max': 1,
                    }],
                }).id)
            when(proxy, lambda: False)

        assert len(made) == LEASES
        assert sum(cuts) > LEASES * CUT / 2
        assert {lease.id for lease in manager.ledger.leases()} == made
        assert manager.ledger.check() == []
        manager.ledger.close()
