# SPDX-License-Identifier: Apache-2.0
"""The reservation that an instance draws on, also where it is not bound."""

from alembic import op
import sqlalchemy as sa

revision = '0008'
down_revision = '0007'


def upgrade() -> None:
    op.add_column('instance', sa.Column('claim', sa.String(36)))
    op.create_index('ix_instance_claim', 'instance', ['claim'])
    op.execute('UPDATE instance SET claim = reservation_id')
