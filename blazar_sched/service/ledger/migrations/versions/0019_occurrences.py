# SPDX-License-Identifier: Apache-2.0
"""An occurrence of a series has one lease at most, and is retried in time."""

from alembic import op
import sqlalchemy as sa

revision = '0019'
down_revision = '0018'


def upgrade() -> None:
    lease = sa.table(
        'lease', *map(sa.column, ('id', 'series_id', 'occurrence', 'start'))
    )
    connection = op.get_bind()
    known = set()
    for id_, *occurrence in connection.execute(
        sa.select(lease.c.id, lease.c.series_id, lease.c.occurrence)
        .where(lease.c.series_id.is_not(None))
        .order_by(lease.c.start, lease.c.id)
    ).all():
        if tuple(occurrence) in known:
            # A second lease of an occurrence goes on as a lease of no series.
            connection.execute(
                sa.update(lease)
                .where(lease.c.id == id_)
                .values(series_id=None, occurrence=None)
            )
        known.add(tuple(occurrence))
    op.create_index(
        'ix_lease_series_id_occurrence', 'lease', ['series_id', 'occurrence'],
        unique=True,
    )
    op.drop_index('ix_lease_series_id', 'lease')
    op.add_column(
        'series',
        sa.Column(
            'retry_at', sa.BigInteger(), nullable=False, server_default='0'
        ),
    )
