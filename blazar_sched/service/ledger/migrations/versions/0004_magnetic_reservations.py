# SPDX-License-Identifier: Apache-2.0
"""Reservations that draw servers without a hint."""

from alembic import op
import sqlalchemy as sa

revision = '0004'
down_revision = '0003'


def upgrade() -> None:
    op.add_column(
        'reservation',
        sa.Column(
            'magnetic', sa.Boolean, nullable=False, server_default=sa.false()
        ),
    )
