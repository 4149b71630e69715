# SPDX-License-Identifier: Apache-2.0
"""Digests of the requests that have made series."""

from alembic import op
import sqlalchemy as sa

revision = '0018'
down_revision = '0017'


def upgrade() -> None:
    op.add_column(
        'series',
        sa.Column(
            'digest', sa.String(255), nullable=False, server_default=''
        ),
    )
