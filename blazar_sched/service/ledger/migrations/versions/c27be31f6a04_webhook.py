# SPDX-License-Identifier: Apache-2.0
"""Webhooks of projects, and what waits for them."""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = 'c27be31f6a04'
down_revision = 'd5b80e46c917'

ID = sa.String(36)
NAME = sa.String(255)
TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql', 'mariadb')
OPTIONS: dict[str, Any] = {
    f'{dialect}_{option}': value
    for dialect in ('mysql', 'mariadb')
    for option, value in (
        ('engine', 'InnoDB'), ('charset', 'utf8mb4'),
        ('collate', 'utf8mb4_bin'),
    )
}


def upgrade() -> None:
    op.create_table(
        'webhook',
        sa.Column('id', ID, nullable=False),
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('url', TEXT, nullable=False),
        sa.Column('events', TEXT, nullable=False),
        sa.Column('secret', NAME, nullable=False),
        sa.Column('created_at', sa.BigInteger, nullable=False),
        sa.Column('due_at', sa.BigInteger, nullable=False),
        sa.Column('failures', sa.BigInteger, nullable=False),
        sa.Column('failing_since', sa.BigInteger),
        sa.Column('error', NAME),
        sa.Column('disabled', NAME),
        sa.PrimaryKeyConstraint('id', name='pk_webhook'),
        sa.Index('ix_webhook_project_id', 'project_id'),
        sa.Index('ix_webhook_due_at', 'due_at'),
        **OPTIONS,
    )
    op.create_table(
        'webhook_delivery',
        sa.Column('id', ID, nullable=False),
        sa.Column('webhook_id', ID, nullable=False),
        sa.Column('commit', sa.BigInteger, nullable=False),
        sa.Column('position', sa.Integer, nullable=False),
        sa.Column('subject', ID, nullable=False),
        sa.Column('body', TEXT, nullable=False),
        sa.Column('refused_at', sa.BigInteger),
        sa.PrimaryKeyConstraint('id', name='pk_webhook_delivery'),
        sa.ForeignKeyConstraint(
            ['webhook_id'], ['webhook.id'],
            name='fk_webhook_delivery_webhook_id',
        ),
        sa.Index(
            'ix_webhook_delivery_webhook_id_commit_position',
            'webhook_id', 'commit', 'position',
        ),
        **OPTIONS,
    )
