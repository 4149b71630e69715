# SPDX-License-Identifier: Apache-2.0
"""Thresholds of the capacity."""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0016'
down_revision = '0015'

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
        'threshold',
        sa.Column('id', ID, nullable=False),
        sa.Column('name', NAME, nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('resource_properties', TEXT, nullable=False),
        sa.Column('flavor_id', NAME),
        sa.Column('below', sa.BigInteger(), nullable=False),
        sa.Column('within', sa.BigInteger(), nullable=False),
        sa.Column('low', sa.Boolean(), nullable=False),
        sa.Column('since', sa.BigInteger(), nullable=False),
        sa.Column('free', sa.BigInteger(), nullable=False),
        sa.Column('notify_at', sa.BigInteger()),
        sa.Column('post_at', sa.BigInteger()),
        sa.Column('created_at', sa.BigInteger()),
        sa.PrimaryKeyConstraint('id', name='pk_threshold'),
        **OPTIONS,
    )
