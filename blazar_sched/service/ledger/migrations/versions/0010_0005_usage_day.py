# SPDX-License-Identifier: Apache-2.0
"""The usage by resource class, with rates, and names that need no quotes.

The tables ``usage`` and ``change`` had reserved words for names. Under the old
names there are views, with which the managers of the last release go on: their
changes are kept, and they measure no usage, as the usage seems to be measured
for ever.
"""

from collections import Counter
from collections.abc import Iterator
import json
from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0010_0005_usage_day'
down_revision = '0009_0005_refused'

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
SUMS = ('reserved', 'used', 'lent')
RATES = ('reserved_rate', 'used_rate', 'lent_rate', 'late_rate')
BATCH = 1000


def _change(name: str) -> sa.Table:
    return sa.Table(
        name, sa.MetaData(),
        sa.Column(
            'revision', sa.BigInteger, primary_key=True, autoincrement=False
        ),
        sa.Column(
            'position', sa.Integer, primary_key=True, autoincrement=False
        ),
        sa.Column('kind', NAME, nullable=False),
        sa.Column('key', NAME, nullable=False),
        sa.Column('data', TEXT),
        sa.PrimaryKeyConstraint('revision', 'position', name=f'pk_{name}'),
        **OPTIONS,
    )


KIND = ('lease_id', 'project_id', 'resource_type', 'flavor', 'product')
OLD = sa.table('usage', *map(sa.column, (
    'reservation_id', 'day', *KIND, *SUMS, 'late', 'until', 'refused',
)))


def upgrade() -> None:
    connection = op.get_bind()
    new = _change('ledger_change')
    new.create(connection)
    old = _change('change')
    connection.execute(sa.insert(new).from_select(
        list(new.c.keys()), sa.select(old)
    ))
    op.drop_table('change')
    for column in (
        sa.Column('measured_at', sa.BigInteger),
        sa.Column('measured_by', ID),
        sa.Column('measuring_until', sa.BigInteger),
    ):
        op.add_column('ledger', column)
    usage = op.create_table(
        'usage_day',
        sa.Column('reservation_id', ID, nullable=False),
        sa.Column('day', sa.BigInteger, nullable=False),
        sa.Column('resource_class', NAME, nullable=False),
        sa.Column('lease_id', ID, nullable=False),
        *(sa.Column(name, NAME, nullable=False) for name in KIND[1:]),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in (*SUMS, 'late', 'refused', 'since', *RATES)
        ),
        sa.PrimaryKeyConstraint(
            'reservation_id', 'day', 'resource_class', name='pk_usage_day'
        ),
        sa.Index('ix_usage_day_day', 'day'),
        sa.Index('ix_usage_day_project_id_day', 'project_id', 'day'),
        **OPTIONS,
    )
    reserved = op.create_table(
        'reserved_day',
        sa.Column('project_id', NAME, nullable=False),
        sa.Column('day', sa.BigInteger, nullable=False),
        sa.Column('resource_class', NAME, nullable=False),
        sa.Column('reserved', sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint(
            'project_id', 'day', 'resource_class', name='pk_reserved_day'
        ),
        sa.Index('ix_reserved_day_day', 'day'),
        **OPTIONS,
    )
    _copy_usage(connection, usage, reserved)
    op.drop_table('usage')
    _keep_old_names(connection)
    _count_deliveries()


def _count_deliveries() -> None:
    for name in ('waiting', 'waiting_bytes'):
        op.add_column('webhook', sa.Column(
            name, sa.BigInteger, nullable=False, server_default='0'
        ))
    op.create_index(
        'ix_webhook_delivery_webhook_id_subject_commit', 'webhook_delivery',
        ['webhook_id', 'subject', 'commit'],
    )
    op.execute(
        'UPDATE webhook SET waiting = (SELECT COUNT(*) FROM webhook_delivery '
        'WHERE webhook_id = webhook.id), waiting_bytes = (SELECT '
        'COALESCE(SUM(LENGTH(body)), 0) FROM webhook_delivery '
        'WHERE webhook_id = webhook.id)'
    )


def _copy_usage(
    connection: sa.Connection, usage: sa.Table, reserved: sa.Table
) -> None:
    until = connection.scalar(sa.select(sa.func.max(OLD.c.until)))
    connection.execute(sa.text(
        'UPDATE ledger SET measured_at = :until'
    ), {'until': until})
    sums: Counter[tuple[str, int, str]] = Counter()
    # Not streamed: a driver may not insert while it reads.
    found = connection.execute(sa.select(OLD)).mappings().all()
    for first in range(0, len(found), BATCH):
        new = [
            row for old in found[first : first + BATCH] for row in _rows(old)
        ]
        if new:
            connection.execute(sa.insert(usage), new)
        for row in new:
            sums[row['project_id'], row['day'], row['resource_class']] += (
                row['reserved']
            )
    if +sums:
        connection.execute(sa.insert(reserved), [
            {
                'project_id': project, 'day': day, 'resource_class': name,
                'reserved': amount,
            }
            for (project, day, name), amount in sums.items() if amount
        ])


def _rows(old: sa.RowMapping) -> Iterator[dict[str, Any]]:
    """Yield the usage of a day by resource class."""
    amounts = {name: json.loads(old[name]) for name in SUMS}
    refused = json.loads(old['refused'] or '{}')
    for each in {*amounts['reserved'], *refused}:
        yield {
            **{name: old[name] for name in ('reservation_id', 'day', *KIND)},
            **{name: amounts[name].get(each, 0) for name in SUMS},
            **dict.fromkeys(RATES, 0),
            'resource_class': each, 'refused': refused.get(each, 0),
            'late': old['late'], 'since': old['until'],
        }


def _keep_old_names(connection: sa.Connection) -> None:
    """Create the views with which programs of the last release work."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    names = list(_change('').c.keys())
    columns = ', '.join(map(quote, names))
    change, usage = quote('change'), quote('usage')
    op.execute(
        f'CREATE VIEW {change} AS SELECT {columns} FROM ledger_change'
    )
    if connection.dialect.name == 'sqlite':
        values = ', '.join(f'NEW.{quote(c)}' for c in names)
        op.execute(
            f'CREATE TRIGGER insert_change INSTEAD OF INSERT ON {change} BEGIN'
            f' INSERT INTO ledger_change ({columns}) VALUES ({values}); END'
        )
        op.execute(
            f'CREATE TRIGGER delete_change INSTEAD OF DELETE ON {change} BEGIN'
            ' DELETE FROM ledger_change WHERE revision = OLD.revision'
            ' AND position = OLD.position; END'
        )
    texts = ', '.join(
        f"'{text}' AS {name}" for name, text in (
            *((name, '') for name in ('reservation_id', *KIND)),
            *((name, '{}') for name in SUMS),
        )
    )
    op.execute(
        f'CREATE VIEW {usage} AS SELECT 0 AS day, {texts}, 0 AS late, '
        f"{2 ** 62} AS until, '{{}}' AS refused"
    )
