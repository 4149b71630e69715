# SPDX-License-Identifier: Apache-2.0
"""The time since when a series is being deleted."""

from alembic import op
import sqlalchemy as sa

revision = '0011_0005_deleted_series'
down_revision = '0010_0005_usage_day'


def upgrade() -> None:
    op.add_column('series', sa.Column('deleted_at', sa.BigInteger))
