# SPDX-License-Identifier: Apache-2.0
"""The relocation paths of instances."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0010'
down_revision = '0009'

# A copy of the models at this migration: the models change later, a migration
# must not change.
TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')


def upgrade() -> None:
    op.add_column('instance', sa.Column('path', TEXT))
    op.add_column('instance', sa.Column(
        'movable', sa.Boolean(), nullable=False, server_default=sa.false()
    ))
