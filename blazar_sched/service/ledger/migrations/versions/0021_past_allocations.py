# SPDX-License-Identifier: Apache-2.0
"""Allocations that are over."""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0021'
down_revision = '0020'

# A copy of the models at this migration: the models change later, a migration
# must not change.
ID = sa.String(36)
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
        'past_allocation',
        sa.Column('id', ID, nullable=False),
        sa.Column('reservation_id', ID, nullable=False),
        sa.Column('host', ID, nullable=False),
        sa.Column('start', sa.BigInteger(), nullable=False),
        sa.Column('end', sa.BigInteger(), nullable=False),
        sa.Column('amounts', TEXT, nullable=False),
        sa.Column('whole', sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ['reservation_id'], ['reservation.id'],
            name='fk_past_allocation_reservation_id',
        ),
        sa.PrimaryKeyConstraint('id', name='pk_past_allocation'),
        **OPTIONS,
    )
    op.create_index(
        'ix_past_allocation_host_end', 'past_allocation', ['host', 'end']
    )
    op.create_index(
        'ix_past_allocation_reservation_id', 'past_allocation',
        ['reservation_id'],
    )
