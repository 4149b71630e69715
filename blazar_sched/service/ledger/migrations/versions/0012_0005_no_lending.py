# SPDX-License-Identifier: Apache-2.0
"""Reservations lend nothing any more.

The managers of the last release need the column ``lend`` of reservations.
"""

from alembic import op

revision = '0012_0005_no_lending'
down_revision = '0011_0005_deleted_series'


def upgrade() -> None:
    op.execute('UPDATE reservation SET lend = false WHERE lend')
    for name in ('lent', 'lent_rate'):
        op.drop_column('usage_day', name)
