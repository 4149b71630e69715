# SPDX-License-Identifier: Apache-2.0
"""The tables, and the ledger's row.

The name is that of the newest of the earlier migrations, which this migration
stands for: tables of that name have these columns.
"""

from collections.abc import Iterator
from typing import Any
import uuid

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0011_0005_deleted_series'
down_revision = None

# A copy of the models at this migration: the models change later, a migration
# must not change. Keys, constraints and indexes are named as in the models.
ID = sa.String(36)
NAME = sa.String(255)
TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')
OPTIONS: dict[str, Any] = {
    f'{dialect}_{option}': value
    for dialect in ('mysql', 'mariadb')
    for option, value in (
        ('engine', 'InnoDB'), ('charset', 'utf8mb4'),
        ('collate', 'utf8mb4_bin'),
    )
}


def _columns(type_: Any, *names: str) -> Iterator[sa.Column[Any]]:
    for name in names:
        yield sa.Column(name, type_, nullable=False)


def _nullable(type_: Any, *names: str) -> Iterator[sa.Column[Any]]:
    for name in names:
        yield sa.Column(name, type_)


def _create(name: str, *columns: Any, **options: Any) -> sa.Table:
    return op.create_table(name, *columns, **OPTIONS, **options)


def _count(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default='0')


def _part_of_key(name: str, type_: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, type_, primary_key=True, **options)


def upgrade() -> None:
    _create(
        'ledger_change',
        sa.Column(
            'revision', sa.BigInteger, primary_key=True, autoincrement=False
        ),
        sa.Column(
            'position', sa.Integer, primary_key=True, autoincrement=False
        ),
        *_columns(NAME, 'kind', 'key'), *_nullable(TEXT, 'data'),
    )
    _create('discarded_trust', sa.Column('id', NAME, primary_key=True))
    _create(
        'flavor', sa.Column('id', NAME, primary_key=True),
        *_columns(NAME, 'name'),
        *_columns(
            sa.BigInteger, 'vcpus', 'memory_mb', 'disk_gb', 'ephemeral_gb',
            'swap_mb',
        ),
        *_columns(TEXT, 'extra_specs'), *_nullable(TEXT, 'projects'),
    )
    _create(
        'host', sa.Column('id', sa.Integer, primary_key=True),
        sa.Column('uuid', ID, unique=True, nullable=False),
        *_columns(
            NAME, 'hypervisor_hostname', 'service_name', 'hypervisor_type',
            'availability_zone', 'hold', 'movable', 'region',
        ),
        *_columns(sa.BigInteger, 'hypervisor_version'),
        *_columns(
            TEXT, 'cpu_info', 'inventory', 'projects', 'traits', 'providers',
            'capabilities', 'maintenances',
        ),
        *_columns(sa.Boolean, 'reservable', 'disabled', 'spare'),
        *_nullable(NAME, 'unbounded'),
        *_nullable(
            sa.BigInteger, 'cleaning_time', 'available_from',
            'available_until', 'created_at', 'updated_at',
        ),
        sqlite_autoincrement=True,
    )
    _create(
        'host_property', sa.Column('name', NAME, primary_key=True),
        *_columns(sa.Boolean, 'private'),
    )
    _create(
        'lease', sa.Column('id', ID, primary_key=True),
        *_columns(NAME, 'name', 'project_id', 'user_id', 'status'),
        *_columns(sa.BigInteger, 'start', 'end', 'created_at'),
        *_columns(sa.Boolean, 'degraded'), _count('changes'),
        *_nullable(NAME, 'trust_id', 'occurrence', 'approved_by'),
        *_nullable(TEXT, 'labels', 'needs_approval'),
        *_nullable(ID, 'series_id'), *_nullable(sa.BigInteger, 'updated_at'),
        sa.Index(None, 'created_at', 'id'),
        sa.Index(None, 'project_id', 'created_at', 'id'),
        sa.Index(None, 'project_id', 'status'),
        sa.Index(None, 'series_id', 'occurrence', unique=True),
        sa.Index(None, 'status', 'end'),
    )
    ledger = _create(
        'ledger',
        sa.Column('id', sa.Integer, primary_key=True, autoincrement=False),
        *_columns(ID, 'uuid'), *_columns(sa.BigInteger, 'revision', 'commits'),
        *_nullable(sa.BigInteger, 'measured_at', 'measuring_until'),
        *_nullable(ID, 'measured_by'),
    )
    op.bulk_insert(ledger, [
        {'id': 1, 'uuid': str(uuid.uuid4()), 'revision': 0, 'commits': 0},
    ])
    _create('shelved_server', sa.Column('uuid', ID, primary_key=True))
    _create(
        'writer', sa.Column('id', ID, primary_key=True),
        *_columns(sa.BigInteger, 'commits', 'revision'),
    )
    _create(
        'event', sa.Column('id', ID, primary_key=True),
        sa.Column(
            'lease_id', ID, sa.ForeignKey('lease.id'), index=True,
            nullable=False,
        ),
        *_columns(sa.Integer, 'position'),
        *_columns(NAME, 'event_type', 'status'),
        *_columns(sa.BigInteger, 'time'), *_nullable(NAME, 'owner'),
        *_nullable(ID, 'token'),
        *_nullable(sa.BigInteger, 'until', 'created_at', 'updated_at'),
        sa.Index(None, 'status', 'time'),
    )
    _create(
        'idempotency_key', sa.Column('project_id', NAME, primary_key=True),
        sa.Column('key', NAME, primary_key=True),
        sa.Column('lease_id', ID, sa.ForeignKey('lease.id'), index=True),
        *_columns(NAME, 'digest'), *_columns(sa.BigInteger, 'created_at'),
    )
    _create(
        'reservation', sa.Column('id', ID, primary_key=True),
        sa.Column(
            'lease_id', ID, sa.ForeignKey('lease.id'), index=True,
            nullable=False,
        ),
        *_columns(sa.Integer, 'position'),
        *_columns(NAME, 'resource_type', 'status', 'on_end'),
        *_columns(TEXT, 'parameters', 'projects', 'made'),
        *_columns(
            sa.Boolean, 'missing_resources', 'resources_changed', 'magnetic',
            'lend',
        ),
        *_nullable(TEXT, 'labels'), sa.Column('product', NAME, index=True),
        *_nullable(sa.BigInteger, 'created_at', 'updated_at'),
        sa.Index(None, 'status', 'id'),
    )
    _create(
        'allocation', sa.Column('id', ID, primary_key=True),
        sa.Column(
            'reservation_id', ID, sa.ForeignKey('reservation.id'),
            nullable=False,
        ),
        sa.Column('host', ID, sa.ForeignKey('host.uuid'), nullable=False),
        sa.Column('end', sa.BigInteger, index=True, nullable=False),
        *_columns(sa.BigInteger, 'start'), *_columns(TEXT, 'amounts'),
        *_columns(sa.Boolean, 'whole'),
        sa.UniqueConstraint('reservation_id', 'host'),
        sa.Index(None, 'host', 'end'),
    )
    _create(
        'instance', sa.Column('uuid', ID, primary_key=True),
        sa.Column(
            'host', ID, sa.ForeignKey('host.uuid'), index=True, nullable=False
        ),
        sa.Column(
            'reservation_id', ID, sa.ForeignKey('reservation.id'), index=True
        ),
        sa.Column('claim', ID, index=True),
        *_columns(NAME, 'project_id', 'movable'), *_columns(TEXT, 'amounts'),
        *_columns(sa.BigInteger, 'end', 'created'),
        *_columns(sa.Boolean, 'preemptible', 'building'),
        *_nullable(TEXT, 'used', 'path'),
    )
    _create(
        'past_allocation', sa.Column('id', ID, primary_key=True),
        sa.Column(
            'reservation_id', ID, sa.ForeignKey('reservation.id'), index=True,
            nullable=False,
        ),
        *_columns(ID, 'host'), *_columns(sa.BigInteger, 'start', 'end'),
        *_columns(TEXT, 'amounts'), *_columns(sa.Boolean, 'whole'),
        sa.Index(None, 'host', 'end'),
    )
