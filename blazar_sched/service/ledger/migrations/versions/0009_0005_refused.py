# SPDX-License-Identifier: Apache-2.0
"""What was refused, by day."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0009_0005_refused'
down_revision = '0008_0005_approval'

TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade() -> None:
    op.add_column('usage', sa.Column('refused', TEXT))
