# SPDX-License-Identifier: Apache-2.0
"""Maintenances, and hosts that come or go at a time."""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0013'
down_revision = '0012'

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
        'maintenance',
        sa.Column('id', ID, nullable=False),
        sa.Column('name', NAME, nullable=False),
        sa.Column('reason', NAME, nullable=False),
        sa.Column('start', sa.BigInteger(), nullable=False),
        sa.Column('end', sa.BigInteger(), nullable=False),
        sa.Column('hosts', TEXT, nullable=False),
        sa.Column('created_at', sa.BigInteger()),
        sa.Column('updated_at', sa.BigInteger()),
        sa.PrimaryKeyConstraint('id', name='pk_maintenance'),
        **OPTIONS,
    )
    op.add_column('host', sa.Column('available_from', sa.BigInteger()))
    op.add_column('host', sa.Column('available_until', sa.BigInteger()))
    op.add_column('host', sa.Column('maintenances', TEXT))
