# SPDX-License-Identifier: Apache-2.0
"""The usage of reservations, by day."""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0006_0005_usage'
down_revision = 'e90a4c7d2b18'

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
        'usage',
        sa.Column('reservation_id', ID, nullable=False),
        sa.Column('day', sa.BigInteger, nullable=False),
        sa.Column('lease_id', ID, nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('resource_type', NAME, nullable=False),
        sa.Column('flavor', NAME, nullable=False),
        sa.Column('product', NAME, nullable=False),
        sa.Column('reserved', TEXT, nullable=False),
        sa.Column('used', TEXT, nullable=False),
        sa.Column('lent', TEXT, nullable=False),
        sa.Column('late', sa.BigInteger, nullable=False),
        sa.Column('until', sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint('reservation_id', 'day', name='pk_usage'),
        sa.Index('ix_usage_day', 'day'),
        sa.Index('ix_usage_project_id_day', 'project_id', 'day'),
        sa.Index('ix_usage_until', 'until'),
        **OPTIONS,
    )
