# SPDX-License-Identifier: Apache-2.0
"""A database of one's own, and a ledger's rows to fill it with.

At BLAZAR_SCHED_BENCH_DATABASE, an SQLAlchemy URL of a server, else a SQLite
file. It is dropped afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import tempfile
from typing import Any
import uuid

import sqlalchemy as sa

from benchmarks import workload
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger.ledger import Ledger

VARIABLE = 'BLAZAR_SCHED_BENCH_DATABASE'

LEASES_A_HOST = 10
# The leases of one project.
LISTED = 10_000
# Rows that go to the database at once.
SLICE = 5000
# The leases that are there are a day long with a day between.
DAY = workload.DAY
FIRST_START = workload.NOW + DAY


@contextlib.contextmanager
def database() -> Iterator[str]:
    """Yield the URL of a new database with the ledger's tables."""
    server = os.environ.get(VARIABLE)
    name = f'blazar_sched_bench_{uuid.uuid4().hex[:12]}'
    with tempfile.TemporaryDirectory() as directory:
        if server is None:
            url = f'sqlite:///{directory}/ledger.sqlite'
        else:
            _administer(server, f'CREATE DATABASE {name}')
            url = sa.make_url(server).set(database=name).render_as_string(
                hide_password=False
            )
        try:
            ledger = Ledger(url)
            ledger.upgrade()
            ledger.close()
            yield url
        finally:
            if server is not None:
                _administer(server, f'DROP DATABASE {name}')


def _administer(server: str, statement: str) -> None:
    engine = sa.create_engine(server, isolation_level='AUTOCOMMIT')
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def host_uuid(number: int) -> str:
    """Return the uuid of a host by its number."""
    return str(uuid.UUID(int=number))


def fill(url: str, hosts: int) -> None:
    """Write hosts, each with leases of the whole of it, a day apart."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        insert(connection, models.Host, map(host_row, range(hosts)))
        numbers = range(hosts * LEASES_A_HOST)
        for model, row in (
            (models.Lease, lease_row),
            (models.Reservation, reservation_row),
            (models.Allocation, allocation_row),
        ):
            insert(connection, model, (row(n, hosts) for n in numbers))
        for position, type_ in enumerate(('start_lease', 'end_lease')):
            insert(
                connection, models.Event,
                (event_row(n, hosts, position, type_) for n in numbers),
            )
    engine.dispose()


def insert(
    connection: sa.Connection, model: type[models.Base],
    rows: Iterator[dict[str, Any]],
) -> None:
    pending: list[dict[str, Any]] = []
    for row in rows:
        pending.append(row)
        if len(pending) == SLICE:
            connection.execute(sa.insert(model), pending)
            pending = []
    if pending:
        connection.execute(sa.insert(model), pending)


def host_row(number: int) -> dict[str, Any]:
    held = {'reserved': 0, 'allocation_ratio': 1.0}
    return {
        'uuid': host_uuid(number),
        'hypervisor_hostname': f'compute-{number:06d}',
        'service_name': f'compute-{number:06d}',
        'hypervisor_type': 'QEMU',
        'hypervisor_version': 8002000,
        'cpu_info': '{}',
        'availability_zone': 'nova',
        'inventory': {
            'VCPU': {'total': 64, **held},
            'MEMORY_MB': {'total': 262144, **held},
            'DISK_GB': {'total': 2000, **held},
        },
        'hold': 'shared',
        'reservable': True,
        'disabled': False,
        'spare': False,
        'movable': 'live',
        'projects': [],
        'region': '',
        'traits': [],
        'providers': [],
        'maintenances': [],
        'capabilities': {},
        'created_at': workload.NOW,
    }


def _id(kind: int, number: int) -> str:
    return str(uuid.UUID(int=(kind << 64) + number))


def _window(number: int, hosts: int) -> dict[str, int]:
    # Not all hosts at once: half of them are free at any time.
    number %= hosts * LEASES_A_HOST
    start = FIRST_START + 2 * DAY * number // hosts
    return {'start': start, 'end': start + DAY}


def lease_row(number: int, hosts: int) -> dict[str, Any]:
    return {
        'id': _id(1, number),
        'name': f'lease {number}',
        # So many that a project's list is of the size that is measured.
        'project_id': f'project-{number // LISTED}',
        'user_id': 'user',
        'status': 'PENDING',
        'degraded': False,
        'created_at': workload.NOW,
        **_window(number, hosts),
    }


def reservation_row(number: int, hosts: int) -> dict[str, Any]:
    return {
        'id': _id(2, number),
        'lease_id': _id(1, number),
        'position': 0,
        'resource_type': 'physical:host',
        'status': 'pending',
        'parameters': request(),
        'missing_resources': False,
        'resources_changed': False,
        'projects': [],
        'on_end': 'delete',
        'magnetic': False,

        'made': {},
    }


def allocation_row(number: int, hosts: int) -> dict[str, Any]:
    return {
        'id': _id(3, number),
        'reservation_id': _id(2, number),
        'host': host_uuid(number % hosts),
        'amounts': {},
        'whole': True,
        **_window(number, hosts),
    }


def event_row(
    number: int, hosts: int, position: int, event_type: str
) -> dict[str, Any]:
    window = _window(number, hosts)
    return {
        'id': _id(4 + position, number),
        'lease_id': _id(1, number),
        'position': position,
        'event_type': event_type,
        'time': window['start' if position == 0 else 'end'],
        'status': 'UNDONE',
    }


def request() -> dict[str, Any]:
    return {
        'min': 1, 'max': 1, 'hypervisor_properties': '',
        'resource_properties': '', 'before_end': 'default',
    }
