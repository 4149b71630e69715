# SPDX-License-Identifier: Apache-2.0
"""Hosts with a cleaning time of their own."""

from alembic import op
import sqlalchemy as sa

revision = '0005'
down_revision = '0004'


def upgrade() -> None:
    op.add_column('host', sa.Column('cleaning_time', sa.BigInteger))
