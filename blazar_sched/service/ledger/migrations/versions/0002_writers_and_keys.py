# SPDX-License-Identifier: Apache-2.0
"""Writers that count their commits, and idempotency keys."""

from typing import Any

from alembic import op
import sqlalchemy as sa

revision = '0002'
down_revision = '0001'

# A copy of the models at this migration: the models change later, a migration
# must not change.
ID = sa.String(36)
NAME = sa.String(255)
OPTIONS: dict[str, Any] = {
    'mysql_engine': 'InnoDB',
    'mysql_charset': 'utf8mb4',
    'mysql_collate': 'utf8mb4_bin',
    'mariadb_engine': 'InnoDB',
    'mariadb_charset': 'utf8mb4',
    'mariadb_collate': 'utf8mb4_bin',
}


def upgrade() -> None:
    op.add_column(
        'ledger',
        sa.Column(
            'commits', sa.BigInteger, nullable=False, server_default='0'
        ),
    )
    op.create_table(
        'writer',
        sa.Column('id', ID, nullable=False),
        sa.Column('commits', sa.BigInteger, nullable=False),
        sa.Column('revision', sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_writer'),
        **OPTIONS,
    )
    op.create_table(
        'idempotency_key',
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('key', NAME, nullable=False),
        sa.Column('lease_id', ID, nullable=False),
        sa.Column('digest', NAME, nullable=False),
        sa.PrimaryKeyConstraint(
            'project_id', 'key', name='pk_idempotency_key'
        ),
        sa.ForeignKeyConstraint(
            ['lease_id'], ['lease.id'], name='fk_idempotency_key_lease_id'
        ),
        **OPTIONS,
    )
    op.create_index(
        'ix_idempotency_key_lease_id', 'idempotency_key', ['lease_id']
    )
    # In this order, because MySQL requires an index for the foreign key at all
    # times.
    op.create_index('ix_allocation_host_end', 'allocation', ['host', 'end'])
    op.drop_index('ix_allocation_host', 'allocation')
