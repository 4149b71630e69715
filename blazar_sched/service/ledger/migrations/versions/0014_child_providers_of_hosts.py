# SPDX-License-Identifier: Apache-2.0
"""The child resource providers of hosts."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0014'
down_revision = '0013'

# A copy of the models at this migration: the models change later, a migration
# must not change.
TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade() -> None:
    op.add_column('host', sa.Column('providers', TEXT))
