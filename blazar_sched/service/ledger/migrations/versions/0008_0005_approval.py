# SPDX-License-Identifier: Apache-2.0
"""The limits that each lease exceeds, and who has approved the lease."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0008_0005_approval'
down_revision = '0007_0005_changes'

TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade() -> None:
    op.add_column('lease', sa.Column('needs_approval', TEXT))
    op.add_column('lease', sa.Column('approved_by', sa.String(255)))
