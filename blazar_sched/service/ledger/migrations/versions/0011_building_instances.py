# SPDX-License-Identifier: Apache-2.0
"""The instances that Nova is still building."""

from alembic import op
import sqlalchemy as sa

revision = '0011'
down_revision = '0010'


def upgrade() -> None:
    op.add_column('instance', sa.Column(
        'building', sa.Boolean(), nullable=False, server_default=sa.false()
    ))
