# SPDX-License-Identifier: Apache-2.0
"""Indexes for queries that leave out the leases that are over."""

from alembic import op
import sqlalchemy as sa

revision = '0020'
down_revision = '0019'

_INDEXES = (
    ('lease', ('project_id', 'created_at', 'id')),
    ('lease', ('project_id', 'status')),
    ('lease', ('created_at', 'id')),
    ('lease', ('status', 'end')),
    ('reservation', ('status', 'id')),
)


def upgrade() -> None:
    lease = sa.table('lease', sa.column('created_at'))
    op.execute(
        sa.update(lease)
        .where(lease.c.created_at.is_(None)).values(created_at=-1)
    )
    # A reservation that is over had allocations until the end of its lease.
    over = sa.table('reservation', sa.column('id'), sa.column('status'))
    ids = sa.select(over.c.id).where(over.c.status == 'deleted')
    for name in ('allocation', 'floating_ip_allocation'):
        held = sa.table(name, sa.column('reservation_id'))
        op.execute(sa.delete(held).where(held.c.reservation_id.in_(ids)))
    for table, columns in _INDEXES:
        op.create_index(f'ix_{table}_{"_".join(columns)}', table, columns)
    op.drop_index('ix_lease_project_id', 'lease')
