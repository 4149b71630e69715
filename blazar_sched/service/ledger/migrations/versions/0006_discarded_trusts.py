# SPDX-License-Identifier: Apache-2.0
"""The trusts of leases that are over, still to be deleted in Keystone."""

from typing import Any

from alembic import op
import sqlalchemy as sa

revision = '0006'
down_revision = '0005'

# A copy of the models at this migration: the models change later, a migration
# must not change.
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
    op.create_table(
        'discarded_trust',
        sa.Column('id', NAME, nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_discarded_trust'),
        **OPTIONS,
    )
