# SPDX-License-Identifier: Apache-2.0
"""The broker or the database goes away and comes back, without help."""

import contextlib
import random
import re
import signal
import time

import pytest
import sqlalchemy as sa

from blazar_sched.service.manager.manager import Manager
from tests.fault import proxy as proxy_modes
from tests.fault.proxy import CUT_AFTER
from tests.fault.proxy import Proxy
from tests.fault.site import Deployment
from tests.fault.site import wait_for
from tests.services import database
from tests.services import private

# Seconds before an outage, and of an outage.
BEFORE, DURING = 2, 4
# The number of leases created one after the other, and from when on.
LEASES, START = 30, 2_000_000_000
# The share of commits whose connection is cut.
CUT = 0.3


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


@pytest.fixture
def proxied():
    """proxied(url) -> a proxy before a server, and the URL through it."""
    with contextlib.ExitStack() as stack:

        def start(url):
            parts = sa.make_url(url)
            proxy = stack.enter_context(Proxy(parts.port))
            through = parts.set(port=proxy.port)
            return proxy, through.render_as_string(hide_password=False)

        yield start


def restart(server):
    server.kill()
    time.sleep(DURING)
    server.start()


def freeze(server):
    server.signal(signal.SIGSTOP)
    time.sleep(DURING)
    server.signal(signal.SIGCONT)


@pytest.mark.parametrize('outage', [restart, freeze])
def test_of_the_broker(outage, own, new_fleet, database_on):
    broker = own(private.RabbitMQ)
    fleet = new_fleet(database_on('mysql'), broker.url, managers=2)
    with fleet.at_work() as traffic:
        time.sleep(BEFORE)
        outage(broker)
        goes_on(traffic)


def test_partition_from_the_broker(own, proxied, new_fleet, database_on):
    proxy, url = proxied(own(private.RabbitMQ).url)
    fleet = new_fleet(database_on('mysql'), url, managers=2)
    with fleet.at_work() as traffic:
        time.sleep(BEFORE)
        proxy.block()
        time.sleep(DURING)
        # Messages in transit are lost with the connections.
        proxy.cut()
        proxy.unblock()
        goes_on(traffic)


def goes_on(traffic):
    """Check that leases are created again, without any help."""
    made = len(traffic.made)
    wait_for('new leases', lambda: len(traffic.made) > made + 10)


@pytest.mark.parametrize('outage', [restart, freeze])
def test_of_the_database(outage, bus, own, new_fleet):
    server = own(private.MariaDB)
    with database.made(server.url) as url:
        fleet = new_fleet(url, bus, managers=2)
        with fleet.at_work() as traffic:
            time.sleep(BEFORE)
            outage(server)
            goes_on(traffic)
        fleet.close()


def commits(data):
    """Tell whether bytes from a client ask the database to commit."""
    return re.search(rb'(?<!AUTO)COMMIT', data)


def before_commit(proxy, cut):
    def judge(data):
        return proxy_modes.CUT if commits(data) and cut() else proxy_modes.PASS

    proxy.from_client = judge


def during_commit(proxy, cut):
    """The database commits, but the client gets no response."""

    def judge(data):
        if commits(data) and cut():
            return CUT_AFTER
        return proxy_modes.PASS

    proxy.from_client = judge


def after_commit(proxy, cut):
    committing = []

    def from_client(data):
        if commits(data) and cut():
            committing.append(True)
        return proxy_modes.PASS

    def to_client(data):
        if committing:
            committing.pop()
            return CUT_AFTER
        return proxy_modes.PASS

    proxy.from_client, proxy.to_client = from_client, to_client


@pytest.mark.parametrize('engine', ['mysql', 'postgresql'])
@pytest.mark.parametrize('when', [before_commit, during_commit, after_commit])
def test_of_a_connection(when, engine, proxied, database_on, cloud, tmp_path):
    """Each lease is created once, wherever a commit loses its connection."""
    proxy, url = proxied(database_on(engine))
    site = Deployment(tmp_path, url, cloud=cloud.url)
    manager = Manager(site.conf())
    manager.ledger.upgrade()
    manager.hosts.create('compute-1', {})
    chance = random.Random(1)
    cuts = []

    def cut():
        cuts.append(chance.random() < CUT)
        return cuts[-1]

    when(proxy, cut)
    made = {
        manager.leases.create(
            {
                'name': 'lease',
                'project_id': 'project',
                'user_id': 'user',
                'start': START + number * 3600,
                'end': START + number * 3600 + 60,
                'before_end': None,
                'reservations': [
                    {'resource_type': 'physical:host', 'min': 1, 'max': 1}
                ],
            }
        ).id
        for number in range(LEASES)
    }
    when(proxy, lambda: False)

    assert len(made) == LEASES
    assert sum(cuts) > LEASES * CUT / 2
    assert {lease.id for lease in manager.ledger.leases()} == made
    assert manager.ledger.check() == []
    manager.ledger.close()
