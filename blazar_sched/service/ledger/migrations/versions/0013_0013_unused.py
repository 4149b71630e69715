# SPDX-License-Identifier: Apache-2.0
"""The views of two tables under their old names, which nothing uses."""

from alembic import op

revision = '0013_0013_unused'
down_revision = '0012_0005_no_lending'


def upgrade() -> None:
    quote = op.get_bind().dialect.identifier_preparer.quote_identifier
    for name in ('change', 'usage'):
        op.execute(f'DROP VIEW IF EXISTS {quote(name)}')
