# SPDX-License-Identifier: Apache-2.0
"""The first tables, and the ledger's row."""

from typing import Any
import uuid

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0001'
down_revision = None

# A copy of the models at this migration: the models change later, a migration
# must not change.
ID = sa.String(36)
NAME = sa.String(255)
TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')
OPTIONS: dict[str, Any] = {
    'mysql_engine': 'InnoDB',
    'mysql_charset': 'utf8mb4',
    'mysql_collate': 'utf8mb4_bin',
    'mariadb_engine': 'InnoDB',
    'mariadb_charset': 'utf8mb4',
    'mariadb_collate': 'utf8mb4_bin',
}


def upgrade() -> None:
    _ledger()
    _host()
    _lease()
    _allocation()


def _times() -> tuple[sa.Column[int], sa.Column[int]]:
    return (
        sa.Column('created_at', sa.BigInteger),
        sa.Column('updated_at', sa.BigInteger),
    )


def _ledger() -> None:
    ledger = op.create_table(
        'ledger',
        sa.Column('id', sa.Integer, autoincrement=False, nullable=False),
        sa.Column('uuid', ID, nullable=False),
        sa.Column('revision', sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_ledger'),
        **OPTIONS,
    )
    op.bulk_insert(
        ledger, [{'id': 1, 'uuid': str(uuid.uuid4()), 'revision': 0}]
    )
    op.create_table(
        'change',
        sa.Column(
            'revision', sa.BigInteger, autoincrement=False, nullable=False
        ),
        sa.Column(
            'position', sa.Integer, autoincrement=False, nullable=False
        ),
        sa.Column('kind', NAME, nullable=False),
        sa.Column('key', NAME, nullable=False),
        sa.Column('data', TEXT),
        sa.PrimaryKeyConstraint('revision', 'position', name='pk_change'),
        **OPTIONS,
    )


def _host() -> None:
    op.create_table(
        'host',
        sa.Column('id', sa.Integer, nullable=False),
        sa.Column('uuid', ID, nullable=False),
        sa.Column('hypervisor_hostname', NAME, nullable=False),
        sa.Column('service_name', NAME, nullable=False),
        sa.Column('hypervisor_type', NAME, nullable=False),
        sa.Column('hypervisor_version', sa.BigInteger, nullable=False),
        sa.Column('cpu_info', TEXT, nullable=False),
        sa.Column('availability_zone', NAME, nullable=False),
        sa.Column('inventory', TEXT, nullable=False),
        sa.Column('hold', NAME, nullable=False),
        sa.Column('unbounded', NAME),
        sa.Column('reservable', sa.Boolean, nullable=False),
        sa.Column('capabilities', TEXT, nullable=False),
        *_times(),
        sa.PrimaryKeyConstraint('id', name='pk_host'),
        sa.UniqueConstraint('uuid', name='uq_host_uuid'),
        sqlite_autoincrement=True,
        **OPTIONS,
    )
    op.create_table(
        'host_property',
        sa.Column('name', NAME, nullable=False),
        sa.Column('private', sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint('name', name='pk_host_property'),
        **OPTIONS,
    )


def _lease() -> None:
    op.create_table(
        'lease',
        sa.Column('id', ID, nullable=False),
        sa.Column('name', NAME, nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME, nullable=False),
        sa.Column('start', sa.BigInteger, nullable=False),
        sa.Column('end', sa.BigInteger, nullable=False),
        sa.Column('status', NAME, nullable=False),
        sa.Column('degraded', sa.Boolean, nullable=False),
        sa.Column('trust_id', NAME),
        *_times(),
        sa.PrimaryKeyConstraint('id', name='pk_lease'),
        **OPTIONS,
    )
    op.create_index('ix_lease_project_id', 'lease', ['project_id'])
    op.create_table(
        'reservation',
        sa.Column('id', ID, nullable=False),
        sa.Column('lease_id', ID, nullable=False),
        sa.Column('position', sa.Integer, nullable=False),
        sa.Column('resource_type', NAME, nullable=False),
        sa.Column('status', NAME, nullable=False),
        sa.Column('parameters', TEXT, nullable=False),
        sa.Column('missing_resources', sa.Boolean, nullable=False),
        sa.Column('resources_changed', sa.Boolean, nullable=False),
        *_times(),
        sa.PrimaryKeyConstraint('id', name='pk_reservation'),
        sa.ForeignKeyConstraint(
            ['lease_id'], ['lease.id'], name='fk_reservation_lease_id'
        ),
        **OPTIONS,
    )
    op.create_index('ix_reservation_lease_id', 'reservation', ['lease_id'])
    op.create_table(
        'event',
        sa.Column('id', ID, nullable=False),
        sa.Column('lease_id', ID, nullable=False),
        sa.Column('position', sa.Integer, nullable=False),
        sa.Column('event_type', NAME, nullable=False),
        sa.Column('time', sa.BigInteger, nullable=False),
        sa.Column('status', NAME, nullable=False),
        sa.Column('owner', NAME),
        sa.Column('token', ID),
        sa.Column('until', sa.BigInteger),
        *_times(),
        sa.PrimaryKeyConstraint('id', name='pk_event'),
        sa.ForeignKeyConstraint(
            ['lease_id'], ['lease.id'], name='fk_event_lease_id'
        ),
        **OPTIONS,
    )
    op.create_index('ix_event_lease_id', 'event', ['lease_id'])
    op.create_index('ix_event_status_time', 'event', ['status', 'time'])


def _allocation() -> None:
    op.create_table(
        'allocation',
        sa.Column('id', ID, nullable=False),
        sa.Column('reservation_id', ID, nullable=False),
        sa.Column('host', ID, nullable=False),
        sa.Column('start', sa.BigInteger, nullable=False),
        sa.Column('end', sa.BigInteger, nullable=False),
        sa.Column('amounts', TEXT, nullable=False),
        sa.Column('whole', sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_allocation'),
        sa.UniqueConstraint(
            'reservation_id', 'host', name='uq_allocation_reservation_id_host'
        ),
        sa.ForeignKeyConstraint(
            ['reservation_id'],
            ['reservation.id'],
            name='fk_allocation_reservation_id',
        ),
        sa.ForeignKeyConstraint(
            ['host'], ['host.uuid'], name='fk_allocation_host'
        ),
        **OPTIONS,
    )
    op.create_index('ix_allocation_host', 'allocation', ['host'])
    op.create_index('ix_allocation_end', 'allocation', ['end'])
    op.create_table(
        'instance',
        sa.Column('uuid', ID, nullable=False),
        sa.Column('host', ID, nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('amounts', TEXT, nullable=False),
        sa.Column('end', sa.BigInteger, nullable=False),
        sa.Column('reservation_id', ID),
        sa.Column('preemptible', sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint('uuid', name='pk_instance'),
        sa.ForeignKeyConstraint(
            ['host'], ['host.uuid'], name='fk_instance_host'
        ),
        sa.ForeignKeyConstraint(
            ['reservation_id'],
            ['reservation.id'],
            name='fk_instance_reservation_id',
        ),
        **OPTIONS,
    )
    op.create_index('ix_instance_host', 'instance', ['host'])
    op.create_index(
        'ix_instance_reservation_id', 'instance', ['reservation_id']
    )
