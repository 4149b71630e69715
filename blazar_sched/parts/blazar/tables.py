# SPDX-License-Identifier: Apache-2.0
"""The tables of Blazar 18's own database.

The import reads the tables; the export also writes them, in one transaction.
"""

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import datetime
import time
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.service import faults
from blazar_sched.service.ledger import engine as engines

Row = Mapping[str, Any]
Tables = dict[str, list[Row]]

# The columns of each table, in addition to created_at and updated_at.
COLUMNS = {
    'leases': (
        'id', 'name', 'user_id', 'project_id', 'start_date', 'end_date',
        'trust_id', 'status', 'degraded',
    ),
    'reservations': (
        'id', 'lease_id', 'resource_id', 'resource_type', 'status',
        'missing_resources', 'resources_changed',
    ),
    'events': ('id', 'lease_id', 'event_type', 'time', 'status'),
    'computehosts': (
        'id', 'hypervisor_hostname', 'service_name', 'hypervisor_type',
        'hypervisor_version', 'cpu_info', 'availability_zone', 'reservable',
        'vcpus', 'memory_mb', 'local_gb', 'trust_id',
    ),
    'computehost_extra_capabilities': (
        'id', 'computehost_id', 'property_id', 'capability_value',
    ),
    'computehost_resource_inventory': (
        'id', 'computehost_id', 'resource_class', 'total', 'reserved',
        'min_unit', 'max_unit', 'step_size', 'allocation_ratio',
    ),
    'computehost_trait': ('id', 'computehost_id', 'trait'),
    'resource_properties': ('id', 'resource_type', 'property_name', 'private'),
    'computehost_reservations': (
        'id', 'reservation_id', 'count_range', 'hypervisor_properties',
        'resource_properties', 'before_end', 'aggregate_id',
    ),
    'computehost_allocations': ('id', 'compute_host_id', 'reservation_id'),
    'instance_reservations': (
        'id', 'reservation_id', 'vcpus', 'memory_mb', 'disk_gb', 'amount',
        'affinity', 'resource_properties', 'flavor_id', 'aggregate_id',
        'server_group_id',
    ),
    'floatingips': (
        'id', 'floating_network_id', 'subnet_id', 'floating_ip_address',
        'reservable',
    ),
    'floatingip_reservations': (
        'id', 'reservation_id', 'network_id', 'amount',
    ),
    'required_floatingips': ('id', 'address', 'floatingip_reservation_id'),
    'floatingip_allocations': ('id', 'floatingip_id', 'reservation_id'),
}  # fmt: skip
STAMPS = ('created_at', 'updated_at')
# The columns with a time, beside those of STAMPS.
_TIMES = frozenset({'start_date', 'end_date', 'time', *STAMPS})
# The boolean columns, which MySQL stores as numbers.
_BOOLEANS = frozenset(
    {
        'affinity',
        'degraded',
        'missing_resources',
        'private',
        'reservable',
        'resources_changed',
    }
)
# The seconds in which a busy server forgets a closed connection.
PATIENCE = 15.0
# The number of other connections of the same user to the same database. Each
# manager of Blazar keeps one open. SQLite has no such list.
_MYSQL_CONNECTIONS = (
    'SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()'
    " AND user = SUBSTRING_INDEX(USER(), '@', 1) AND id <> CONNECTION_ID()"
)
_CONNECTIONS = {
    'mysql': _MYSQL_CONNECTIONS,
    'mariadb': _MYSQL_CONNECTIONS,
    'postgresql': (
        'SELECT COUNT(*) FROM pg_stat_activity '
        'WHERE datname = current_database() AND usename = current_user '
        'AND pid <> pg_backend_pid()'
    ),
}


def read(url: str) -> Tables:
    """Return the rows of each table, in one transaction, oldest first.

    Times are in epoch seconds. Blazar's times are UTC without a time zone.

    :param url: an SQLAlchemy URL of SQLite, MySQL, MariaDB or PostgreSQL
    :raises InvalidInput: if `url` is not a URL, or if the database is not
        that of Blazar 18
    :raises Unavailable: if the database cannot be read
    """
    with _open(url) as connection:
        return {
            name: _rows(connection, table)
            for name, table in _reflect(connection).items()
        }


def require_stopped(url: str) -> None:
    """Refuse a database that another program has opened, such as Blazar.

    :raises Conflict: if the user of `url` has other connections
    :raises InvalidInput: if `url` is not a URL
    :raises Unavailable: if the database cannot be read
    """
    with _open(url) as connection:
        _require_alone(connection)


def write(url: str, known: Tables, wanted: Tables) -> None:
    """Replace the rows of all tables, in one transaction.

    Only the rows and columns that differ are written, and columns beside
    COLUMNS and STAMPS are left as they are.

    :param known: the rows as `read` has returned them
    :raises Conflict: if the tables do not have the rows `known` any more, or
        if the user of `url` has other connections
    :raises InvalidInput: if the database cannot store a value
    :raises Unavailable: if the database cannot be written
    """
    with _open(url, writes=True) as connection:
        _require_alone(connection)
        tables = _reflect(connection)
        held = {
            name: _rows(connection, table, locked=True)
            for name, table in tables.items()
        }
        if held != known:
            raise exception.Conflict(
                "Blazar's database has changed since it was read: stop "
                "Blazar's API and manager, and repeat the command"
            )
        # Parents come before the rows that refer to them.
        order = [
            table
            for table in tables['leases'].metadata.sorted_tables
            if table.name in tables
        ]
        for table in reversed(order):
            _delete(connection, table, known[table.name], wanted[table.name])
        for table in order:
            _put(connection, table, known[table.name], wanted[table.name])
        faults.point('blazar:before')
        connection.commit()
        faults.point('blazar:after')


@contextlib.contextmanager
def _open(url: str, writes: bool = False) -> Iterator[sa.Connection]:
    """Yield a connection in a transaction, which is rolled back at the end.

    :raises InvalidInput: if `url` is not a URL, or for a value that cannot be
        stored
    :raises Unavailable: if the database fails
    """
    try:
        engine = _create(engines.with_driver(url), writes)
    except (sa.exc.ArgumentError, ImportError) as e:
        raise exception.InvalidInput(
            f"Blazar's database cannot be opened: {e}", field='url'
        ) from e
    except ValueError:
        # The message of the error may contain a part of the password.
        raise exception.InvalidInput(
            "Blazar's database cannot be opened: the port is not a number",
            field='url',
        ) from None
    try:
        with engine.connect() as connection:
            yield connection
    except (sa.exc.DataError, sa.exc.IntegrityError) as e:
        raise exception.InvalidInput(
            f"Blazar's database cannot store a value: {e.orig}", field='url'
        ) from e
    except sa.exc.DBAPIError as e:
        done = 'written' if writes else 'read'
        raise exception.Unavailable(
            f"Blazar's database cannot be {done}: {e.orig}"
        ) from e
    finally:
        engine.dispose()


def _create(url: sa.URL, writes: bool) -> sa.Engine:
    if url.get_backend_name() != 'sqlite':
        return sa.create_engine(url, isolation_level='REPEATABLE READ')
    # Without a mode, SQLite would create a missing file.
    mode = 'rw' if writes else 'ro'
    file = url.set(
        database=f'file:{url.database}', query={'mode': mode, 'uri': 'true'}
    )
    engine = sa.create_engine(file)
    begin = 'BEGIN IMMEDIATE' if writes else 'BEGIN'
    # The SQLite driver itself begins no transaction for reads.
    sa.event.listen(
        engine, 'begin', lambda connection: connection.exec_driver_sql(begin)
    )
    return engine


def _require_alone(connection: sa.Connection) -> None:
    query = _CONNECTIONS.get(connection.dialect.name)
    if query is None:
        return
    deadline = time.monotonic() + PATIENCE
    while count := connection.scalar(sa.text(query)):
        if time.monotonic() > deadline:
            raise exception.Conflict(
                f"Blazar's database has {count} other connections of the same "
                "user: stop Blazar's API and manager"
            )
        # PostgreSQL shows the same connections throughout a transaction.
        connection.rollback()
        time.sleep(0.1)


def _reflect(connection: sa.Connection) -> dict[str, sa.Table]:
    """Return the tables.

    :raises InvalidInput: if a table or column is missing
    """
    metadata = sa.MetaData()
    there = set(sa.inspect(connection).get_table_names())
    metadata.reflect(connection, only=sorted(there & set(COLUMNS)))
    for name, columns in COLUMNS.items():
        if name not in metadata.tables:
            raise _not_blazars(f'no table {name}')
        for column in (*columns, *STAMPS):
            if column not in metadata.tables[name].columns:
                raise _not_blazars(f'no column {name}.{column}')
    return {name: metadata.tables[name] for name in COLUMNS}


def _not_blazars(lacks: str) -> exception.InvalidInput:
    return exception.InvalidInput(
        f'the database has {lacks}: only the database of Blazar 18 can be '
        'used (upgrade an older database by '
        '`blazar-db-manage upgrade head`)',
        field='url',
    )


def _rows(
    connection: sa.Connection, table: sa.Table, locked: bool = False
) -> list[Row]:
    query = sa.select(*_columns(table)).order_by(
        table.columns['created_at'], *table.primary_key
    )
    if locked:
        query = query.with_for_update()
    return [
        {name: _value(name, value) for name, value in row._mapping.items()}
        for row in connection.execute(query)
    ]


def _columns(table: sa.Table) -> list[sa.Column[Any]]:
    return [table.columns[n] for n in (*COLUMNS[table.name], *STAMPS)]


def _value(name: str, value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return int(value.replace(tzinfo=datetime.UTC).timestamp())
    if name in _BOOLEANS and value is not None:
        return bool(value)
    return value


def _delete(
    connection: sa.Connection, table: sa.Table, known: list[Row],
    wanted: list[Row],
) -> None:
    kept = {row['id'] for row in wanted}
    gone = [{'gone': row['id']} for row in known if row['id'] not in kept]
    if gone:
        matches = table.columns['id'] == sa.bindparam('gone')
        connection.execute(sa.delete(table).where(matches), gone)


def _put(
    connection: sa.Connection, table: sa.Table, known: list[Row],
    wanted: list[Row],
) -> None:
    """Insert the new rows, and update the columns that differ."""
    before = {row['id']: row for row in known}
    new = [_stored(row) for row in wanted if row['id'] not in before]
    if new:
        connection.execute(sa.insert(table), new)
    changed: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in wanted:
        old = before.get(row['id'], row)
        names = tuple(name for name in row if row[name] != old[name])
        if names:
            values = _stored({name: row[name] for name in names})
            changed[names].append({**values, 'changed': row['id']})
    matches = table.columns['id'] == sa.bindparam('changed')
    for rows in changed.values():
        connection.execute(sa.update(table).where(matches), rows)


def _stored(row: Row) -> Row:
    """Return the values of a row as the drivers of databases take them."""
    return {
        name: datetime.datetime.fromtimestamp(value, datetime.UTC).replace(
            tzinfo=None
        )
        if name in _TIMES and value is not None
        else value
        for name, value in row.items()
    }
