# SPDX-License-Identifier: Apache-2.0
"""The servers that were shelved to vacate their hosts."""

from typing import Any

from alembic import op
import sqlalchemy as sa

revision = '0007'
down_revision = '0006'

# A copy of the models at this migration: the models change later, a migration
# must not change.
ID = sa.String(36)
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
        'shelved_server',
        sa.Column('uuid', ID, nullable=False),
        sa.PrimaryKeyConstraint('uuid', name='pk_shelved_server'),
        **OPTIONS,
    )
