# SPDX-License-Identifier: Apache-2.0
"""Lease requests, which wait until a lease finds room."""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0015'
down_revision = '0014'

# A copy of the models at this migration: the models change later, a migration
# must not change.
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


def upgrade() -> None:
    op.create_table(
        'lease_request',
        sa.Column('id', ID, nullable=False),
        sa.Column('name', NAME, nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME, nullable=False),
        sa.Column('reservations', TEXT, nullable=False),
        sa.Column('start', sa.BigInteger(), nullable=False),
        sa.Column('latest_start', sa.BigInteger(), nullable=False),
        sa.Column('duration', sa.BigInteger(), nullable=False),
        sa.Column('wait_until', sa.BigInteger(), nullable=False),
        sa.Column('priority', sa.BigInteger(), nullable=False),
        sa.Column('digest', NAME, nullable=False),
        sa.Column('flexible', sa.Boolean(), nullable=False),
        sa.Column('number', sa.BigInteger(), nullable=False),
        sa.Column('status', NAME, nullable=False),
        sa.Column('lease_id', ID),
        sa.Column('created_at', sa.BigInteger()),
        sa.Column('updated_at', sa.BigInteger()),
        sa.PrimaryKeyConstraint('id', name='pk_lease_request'),
        **OPTIONS,
    )
    op.create_index(
        'ix_lease_request_project_id', 'lease_request', ['project_id']
    )
    op.create_index('ix_lease_request_status', 'lease_request', ['status'])
