# SPDX-License-Identifier: Apache-2.0
"""The number of changes of each lease."""

from alembic import op
import sqlalchemy as sa

revision = '0007_0005_changes'
down_revision = '0006_0005_usage'


def upgrade() -> None:
    # A manager of the release before inserts leases without the column.
    op.add_column('lease', sa.Column(
        'changes', sa.BigInteger, nullable=False, server_default='0'
    ))
