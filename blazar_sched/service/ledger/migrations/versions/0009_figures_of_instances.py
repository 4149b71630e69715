# SPDX-License-Identifier: Apache-2.0
"""What Nova counts for an instance, where Placement counts otherwise."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0009'
down_revision = '0008'

# A copy of the models at this migration: the models change later, a migration
# must not change.
TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade() -> None:
    op.add_column('instance', sa.Column('used', TEXT))
