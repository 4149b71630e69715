# SPDX-License-Identifier: Apache-2.0
"""Drop what nothing uses: tables, columns, and old names of two tables."""

from alembic import op
import sqlalchemy as sa

revision = '0012_0012_unused'
down_revision = '0011_0005_deleted_series'


def upgrade() -> None:
    for name in ('lifetime_history', 'threshold'):
        op.execute(f'DROP TABLE IF EXISTS {name}')
    for table, name in (
        ('instance', 'created'), ('reservation', 'lend'),
        ('usage_day', 'lent'), ('usage_day', 'lent_rate'),
    ):
        # The table of a part is there only if a version before made it.
        if sa.inspect(op.get_bind()).has_table(table):
            op.drop_column(table, name)
    quote = op.get_bind().dialect.identifier_preparer.quote_identifier
    for name in ('change', 'usage'):
        op.execute(f'DROP VIEW IF EXISTS {quote(name)}')
