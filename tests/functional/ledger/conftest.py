# SPDX-License-Identifier: Apache-2.0
"""Databases for the tests, and objects for them.

A test runs on a SQLite file. A test of what differs between databases, such as
locks, isolation, types, collations, orders and errors, runs on the servers in
the environment as well (see tests.services).
"""

import contextlib
import dataclasses
import functools
import itertools
import shutil
import uuid

import pytest
import sqlalchemy as sa

from blazar_sched.domain import event
from blazar_sched.domain import inventory
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.event import Event
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.service.ledger import ledger
from blazar_sched.service.ledger import models
from tests.services import database as databases

SQLITE = 'sqlite'
SERVERS = ('mysql', 'postgresql')


def _params(engines, *values):
    """Return parameters of (server, *values), as far as servers are named."""
    known = {SQLITE: SQLITE, **databases.servers()}
    return [
        pytest.param(
            known[each], *values, id='-'.join(map(str, (each, *values))),
            marks=() if each == SQLITE else pytest.mark.services,
        )
        for each in engines if each in known
    ]


def on(*engines):
    """Return the mark of a test that runs on these engines."""
    return pytest.mark.parametrize('server', _params(engines))


def histories(count):
    """Return the mark of a test that plays histories, one on each server."""
    return pytest.mark.parametrize(('server', 'seed'), [
        *(each for seed in range(count) for each in _params([SQLITE], seed)),
        *_params(SERVERS, 0),
    ])


on_servers = on(*SERVERS)
on_every_engine = on(SQLITE, *SERVERS)


@pytest.fixture
def server():
    """The server with the database of a test."""
    return SQLITE


@pytest.fixture
def bare_url(server, tmp_path):
    """The URL of a database without tables."""
    if server == SQLITE:
        yield f'sqlite:///{tmp_path}/ledger.sqlite'
        return
    with databases.made(server) as url:
        yield url


@pytest.fixture(scope='session')
def made_once(tmp_path_factory):
    """made_once(server) -> the URL of a database with tables."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def make(server):
            if server == SQLITE:
                folder = tmp_path_factory.mktemp('ledger')
                url = f'sqlite:///{folder}/ledger.sqlite'
            else:
                url = stack.enter_context(databases.made(server))
            new = ledger.Ledger(url)
            new.upgrade()
            new.close()
            return url

        yield make


@pytest.fixture
def url(server, tmp_path, made_once):
    """The URL of a database with empty tables."""
    url = made_once(server)
    if server == SQLITE:
        file = shutil.copy(sa.make_url(url).database, tmp_path)
        yield f'sqlite:///{file}'
        return
    yield url
    empty(url)


def empty(url):
    """Reset a database to its state after the creation of the tables."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for table in reversed(models.Base.metadata.sorted_tables):
            connection.execute(sa.delete(table))
        connection.execute(sa.insert(models.Ledger).values(
            id=1, uuid=str(uuid.uuid4()), revision=0, commits=0
        ))
    engine.dispose()


@pytest.fixture
def open_ledger(url):
    """Opens the database again, as another manager would."""
    opened = []

    def open_(**kwargs):
        opened.append(ledger.Ledger(url, **kwargs))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
def store(open_ledger):
    """A ledger with its tables."""
    return open_ledger(sleep=lambda seconds: None)


@pytest.fixture
def database(url):
    """An engine on the same database, to read and write behind the ledger."""
    engine = sa.create_engine(url)
    yield engine
    engine.dispose()


class Nouns:
    """Objects with defaults for the fields that a test does not name."""

    def __init__(self):
        self._numbers = itertools.count(1)

    def host(self, vcpus=8, gpus=0, **fields):
        gpu = {'CUSTOM_GPU': Inventory(gpus)} if gpus else {}
        held = {
            inventory.VCPU: Inventory(vcpus),
            inventory.MEMORY_MB: Inventory(65536, 512, 1.5),
            inventory.DISK_GB: Inventory(1000), **gpu,
        }
        name = f'compute{next(self._numbers)}'
        return Host(**{
            'uuid': str(uuid.uuid4()), 'id': '', 'hypervisor_hostname': name,
            'inventory': held, 'created_at': 1, **fields,
        })

    def lease(self, start=100, end=200, reservations=1, **fields):
        """A lease of instance reservations, with a start and an end."""
        new = Lease(**{
            'id': str(uuid.uuid4()), 'name': 'a lease',
            'project_id': 'project', 'user_id': 'user', 'start': start,
            'end': end, 'status': 'PENDING', 'created_at': next(self._numbers),
            **fields,
        })
        return dataclasses.replace(
            new,
            reservations=tuple(
                self.reservation(new) for _ in range(reservations)
            ),
            events=(
                self.event(new, event.START_LEASE, start),
                self.event(new, event.END_LEASE, end),
            ),
        )

    def reservation(self, owner, **fields):
        demand = Slots(
            {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 10}, 2, before_end=''
        )
        return Reservation(**{
            'id': str(uuid.uuid4()), 'lease_id': owner.id, 'status': 'pending',
            'demand': demand, **fields,
        })

    def event(self, owner, event_type, time):
        return Event(str(uuid.uuid4()), owner.id, event_type, time, 'UNDONE')

    def allocation(self, owner, on, vcpus=1, **fields):
        """The first reservation's allocation, on the host `on`."""
        return Allocation(**{
            'id': str(uuid.uuid4()),
            'reservation_id': owner.reservations[0].id, 'host': on.uuid,
            'start': owner.start, 'end': owner.end,
            'amounts': {inventory.VCPU: vcpus}, **fields,
        })

    def instance(self, on, vcpus=1, **fields):
        return Instance(**{
            'uuid': str(uuid.uuid4()), 'host': on.uuid,
            'project_id': 'project', 'amounts': {inventory.VCPU: vcpus},
            **fields,
        })


@pytest.fixture
def nouns():
    return Nouns()


@pytest.fixture
def host(store, nouns):
    """A host in the ledger."""
    return store.commit(lambda tx: tx.put_host(nouns.host()))


@pytest.fixture
def queries():
    """Every statement that SQLAlchemy executes from now on."""
    seen = []

    def note(_connection, _cursor, statement, *_):
        seen.append(statement)

    sa.event.listen(sa.Engine, 'before_cursor_execute', note)
    yield seen
    sa.event.remove(sa.Engine, 'before_cursor_execute', note)
