# SPDX-License-Identifier: Apache-2.0
"""Flavors and floating IPs; more about hosts and reservations."""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0003'
down_revision = '0002'

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
    _reservation()
    _host()
    _flavor()
    _floating_ip()


def _reservation() -> None:
    # MySQL has no defaults for TEXT: what is absent is null.
    op.add_column('reservation', sa.Column('projects', TEXT))
    op.add_column('reservation', sa.Column('made', TEXT))
    op.add_column(
        'reservation',
        sa.Column('on_end', NAME, nullable=False, server_default='delete'),
    )


def _host() -> None:
    op.add_column(
        'host',
        sa.Column(
            'disabled', sa.Boolean, nullable=False, server_default=sa.false()
        ),
    )
    op.add_column('host', sa.Column('projects', TEXT))
    op.add_column(
        'host', sa.Column('region', NAME, nullable=False, server_default='')
    )
    op.add_column('host', sa.Column('traits', TEXT))


def _flavor() -> None:
    op.create_table(
        'flavor',
        sa.Column('id', NAME, nullable=False),
        sa.Column('name', NAME, nullable=False),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in (
                'vcpus', 'memory_mb', 'disk_gb', 'ephemeral_gb', 'swap_mb'
            )
        ),
        sa.Column('extra_specs', TEXT, nullable=False),
        sa.Column('projects', TEXT),
        sa.PrimaryKeyConstraint('id', name='pk_flavor'),
        **OPTIONS,
    )


def _floating_ip() -> None:
    op.create_table(
        'floating_ip',
        sa.Column('id', ID, nullable=False),
        sa.Column('network_id', ID, nullable=False),
        sa.Column('subnet_id', ID, nullable=False),
        sa.Column('address', sa.String(45), nullable=False),
        sa.Column('reservable', sa.Boolean, nullable=False),
        sa.Column('created_at', sa.BigInteger),
        sa.Column('updated_at', sa.BigInteger),
        sa.PrimaryKeyConstraint('id', name='pk_floating_ip'),
        sa.UniqueConstraint(
            'network_id', 'address', name='uq_floating_ip_network_id_address'
        ),
        **OPTIONS,
    )
    op.create_table(
        'floating_ip_allocation',
        sa.Column('id', ID, nullable=False),
        sa.Column('reservation_id', ID, nullable=False),
        sa.Column('floating_ip_id', ID, nullable=False),
        sa.Column('start', sa.BigInteger, nullable=False),
        sa.Column('end', sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_floating_ip_allocation'),
        sa.ForeignKeyConstraint(
            ['reservation_id'],
            ['reservation.id'],
            name='fk_floating_ip_allocation_reservation_id',
        ),
        sa.ForeignKeyConstraint(
            ['floating_ip_id'],
            ['floating_ip.id'],
            name='fk_floating_ip_allocation_floating_ip_id',
        ),
        sa.UniqueConstraint(
            'reservation_id',
            'floating_ip_id',
            name='uq_floating_ip_allocation_reservation_id_floating_ip_id',
        ),
        **OPTIONS,
    )
    op.create_index(
        'ix_floating_ip_allocation_floating_ip_id_end',
        'floating_ip_allocation',
        ['floating_ip_id', 'end'],
    )
