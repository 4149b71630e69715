# SPDX-License-Identifier: Apache-2.0
"""Calendars of projects."""

from alembic import op
import sqlalchemy as sa

from blazar_sched.service.ledger.models import OPTIONS

revision = 'f1c90d7ab358'
down_revision = 'c27be31f6a04'


def upgrade() -> None:
    op.create_table(
        'calendar',
        sa.Column('id', sa.String(36), nullable=False),
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('digest', sa.String(255), nullable=False),
        sa.Column('created_at', sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_calendar'),
        sa.Index('ix_calendar_project_id', 'project_id'),
        sa.Index('ix_calendar_digest', 'digest', unique=True),
        **OPTIONS,
    )
