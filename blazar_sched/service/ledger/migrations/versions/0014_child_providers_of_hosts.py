# SPDX-License-Identifier: Apache-2.0
"""The child resource providers of hosts."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0014'
down_revision = '0013'

# As the models were at this revision: they will move on, this must not.
TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade() -> None:
    op.add_column('host', sa.Column('providers', TEXT))
