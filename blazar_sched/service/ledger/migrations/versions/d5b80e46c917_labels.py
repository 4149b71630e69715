# SPDX-License-Identifier: Apache-2.0
"""Labels of leases and of reservations."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = 'd5b80e46c917'
down_revision = '7a41c95be2d0'


def upgrade() -> None:
    text = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')
    for table in ('lease', 'reservation'):
        op.add_column(table, sa.Column('labels', text))
