# SPDX-License-Identifier: Apache-2.0
"""The products of reservations."""

from alembic import op
import sqlalchemy as sa

revision = 'e90a4c7d2b18'
down_revision = 'f1c90d7ab358'


def upgrade() -> None:
    op.add_column('reservation', sa.Column('product', sa.String(255)))
    op.create_index('ix_reservation_product', 'reservation', ['product'])
