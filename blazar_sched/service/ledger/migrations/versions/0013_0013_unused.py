# SPDX-License-Identifier: Apache-2.0
"""Drop what nothing uses: tables, a column, and old names of two tables."""

from alembic import op

revision = '0013_0013_unused'
down_revision = '0012_0005_no_lending'


def upgrade() -> None:
    for name in ('lifetime_history', 'threshold'):
        op.execute(f'DROP TABLE IF EXISTS {name}')
    op.drop_column('instance', 'created')
    quote = op.get_bind().dialect.identifier_preparer.quote_identifier
    for name in ('change', 'usage'):
        op.execute(f'DROP VIEW IF EXISTS {quote(name)}')
