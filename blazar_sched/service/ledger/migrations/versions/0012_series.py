# SPDX-License-Identifier: Apache-2.0
"""Series, and the leases that are occurrences of a series."""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0012'
down_revision = '0011'

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
        'series',
        sa.Column('id', ID, nullable=False),
        sa.Column('name', NAME, nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('user_id', NAME, nullable=False),
        sa.Column('rrule', NAME, nullable=False),
        sa.Column('time_zone', NAME, nullable=False),
        sa.Column('start', NAME, nullable=False),
        sa.Column('duration', sa.BigInteger(), nullable=False),
        sa.Column('reservations', TEXT, nullable=False),
        sa.Column('except_dates', TEXT, nullable=False),
        sa.Column('if_no_room', NAME, nullable=False),
        sa.Column('booked_until', sa.BigInteger(), nullable=False),
        sa.Column('missing', TEXT, nullable=False),
        sa.Column('created_at', sa.BigInteger()),
        sa.Column('updated_at', sa.BigInteger()),
        sa.PrimaryKeyConstraint('id', name='pk_series'),
        **OPTIONS,
    )
    op.create_index('ix_series_project_id', 'series', ['project_id'])
    op.add_column('lease', sa.Column('series_id', ID))
    op.add_column('lease', sa.Column('occurrence', NAME))
    op.create_index('ix_lease_series_id', 'lease', ['series_id'])
