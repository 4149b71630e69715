# SPDX-License-Identifier: Apache-2.0
"""Spare hosts."""

from alembic import op
import sqlalchemy as sa

revision = '0017'
down_revision = '0016'


def upgrade() -> None:
    op.add_column(
        'host',
        sa.Column(
            'spare', sa.Boolean, nullable=False, server_default=sa.false()
        ),
    )
