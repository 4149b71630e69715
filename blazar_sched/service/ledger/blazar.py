# SPDX-License-Identifier: Apache-2.0
"""The tables of Blazar 18's own database, which is only ever read."""

from collections.abc import Mapping
import datetime
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import exception

Row = Mapping[str, Any]
Tables = dict[str, list[Row]]

# The columns read of each table, in addition to created_at and updated_at.
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
    ),
    'computehost_extra_capabilities': (
        'computehost_id', 'property_id', 'capability_value',
    ),
    'resource_properties': (
        'id', 'resource_type', 'property_name', 'private',
    ),
    'computehost_reservations': (
        'id', 'reservation_id', 'count_range', 'hypervisor_properties',
        'resource_properties', 'before_end',
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
_STAMPS = ('created_at', 'updated_at')
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


def read(url: str) -> Tables:
    """Return the rows of each table, in one transaction, oldest first.

    Times are in epoch seconds. Blazar's times are UTC without a time zone.

    :param url: an SQLAlchemy URL of SQLite, MySQL, MariaDB or PostgreSQL
    :raises InvalidInput: if `url` is not a URL, or if the database is not
        that of Blazar 18
    :raises Unavailable: if the database cannot be read
    """
    try:
        engine = _create(sa.make_url(url))
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
            return {
                name: _rows(connection, table)
                for name, table in _reflect(connection).items()
            }
    except sa.exc.DBAPIError as e:
        raise exception.Unavailable(
            f"Blazar's database cannot be read: {e.orig}"
        ) from e
    finally:
        engine.dispose()


def _create(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != 'sqlite':
        return sa.create_engine(url, isolation_level='REPEATABLE READ')
    # Without mode=ro, SQLite would create a missing file.
    file = url.set(
        database=f'file:{url.database}', query={'mode': 'ro', 'uri': 'true'}
    )
    engine = sa.create_engine(file)
    # The SQLite driver itself begins no transaction for reads.
    sa.event.listen(
        engine, 'begin', lambda connection: connection.exec_driver_sql('BEGIN')
    )
    return engine


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
        for column in (*columns, *_STAMPS):
            if column not in metadata.tables[name].columns:
                raise _not_blazars(f'no column {name}.{column}')
    return {name: metadata.tables[name] for name in COLUMNS}


def _not_blazars(lacks: str) -> exception.InvalidInput:
    return exception.InvalidInput(
        f'the database has {lacks}: only the database of Blazar 18 can be '
        'imported (upgrade an older database by '
        '`blazar-db-manage upgrade head`)',
        field='url',
    )


def _rows(connection: sa.Connection, table: sa.Table) -> list[Row]:
    names = (*COLUMNS[table.name], *_STAMPS)
    found = connection.execute(
        sa.select(*(table.columns[name] for name in names)).order_by(
            table.columns['created_at'], *table.primary_key
        )
    )
    return [
        {name: _value(name, value) for name, value in row._mapping.items()}
        for row in found
    ]


def _value(name: str, value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return int(value.replace(tzinfo=datetime.UTC).timestamp())
    if name in _BOOLEANS and value is not None:
        return bool(value)
    return value
