# SPDX-License-Identifier: Apache-2.0
"""The products of reservations."""

from alembic import op
import sqlalchemy as sa

revision = 'e90a4c7d2b18'
down_revision = 'c27be31f6a04'


def upgrade() -> None:
    op.add_column('reservation', sa.Column('product', sa.String(255)))
    op.create_index('ix_reservation_product', 'reservation', ['product'])
