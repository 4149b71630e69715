# SPDX-License-Identifier: Apache-2.0
"""Webhooks in SQL, and the notifications that wait for them.

A commit writes its notifications for the webhooks of their projects in its own
transaction, so none is lost.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import datetime
import json
from typing import Any
import uuid

import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.domain.notification import Notification
from blazar_sched.parts.notify import webhook as rules
from blazar_sched.parts.notify.exception import WebhookNotFound
from blazar_sched.service.bus.payload import IN_THE_WAY
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows
from blazar_sched.service.ledger.statistics import Number
from blazar_sched.service.ledger.stored import Stored


class Webhook(models.Base):
    """A webhook; `waiting` and `waiting_bytes` are of its deliveries."""

    __tablename__ = 'webhook'

    id: orm.Mapped[str] = orm.mapped_column(models.Id, primary_key=True)
    project_id: orm.Mapped[str] = orm.mapped_column(index=True)
    url: orm.Mapped[str] = orm.mapped_column(models.Text)
    events: orm.Mapped[list[str]]
    secret: orm.Mapped[str]
    created_at: orm.Mapped[int]
    due_at: orm.Mapped[int] = orm.mapped_column(index=True)
    failures: orm.Mapped[int]
    failing_since: orm.Mapped[int | None]
    error: orm.Mapped[str | None]
    disabled: orm.Mapped[str | None]
    waiting: orm.Mapped[int] = orm.mapped_column(server_default='0')
    waiting_bytes: orm.Mapped[int] = orm.mapped_column(server_default='0')


class WebhookDelivery(models.Base):
    """A notification that waits for a webhook, in the order of the commits."""

    __tablename__ = 'webhook_delivery'
    __table_args__ = (
        sa.Index(None, 'webhook_id', 'commit', 'position'),
        sa.Index(None, 'webhook_id', 'subject', 'commit'),
        models.OPTIONS,
    )

    id: orm.Mapped[str] = orm.mapped_column(models.Id, primary_key=True)
    webhook_id: orm.Mapped[str] = orm.mapped_column(
        sa.ForeignKey('webhook.id')
    )
    commit: orm.Mapped[int]
    position: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    body: orm.Mapped[str] = orm.mapped_column(models.Text)
    subject: orm.Mapped[str] = orm.mapped_column(models.Id)
    refused_at: orm.Mapped[int | None]


TABLES = (Webhook, WebhookDelivery)
NUMBERS = (
    Number('max_webhooks', 'webhooks', Webhook, most=rules.MAX_WEBHOOKS),
)

# The fields with the subject of a notification. That of a lease request may
# have a lease, too.
_SUBJECTS = ('request_id', 'series_id', 'lease_id')
# The beginning of the body of a notification of an update, and the most
# notifications of a commit that may take the place of others.
_UPDATE = '{"type": "lease.update"'
_MAX_REPLACED = 20
_ENABLED = Webhook.disabled.is_(None)
_WAITED_FOR = sa.exists().where(WebhookDelivery.webhook_id == Webhook.id)
# The most notifications that one commit deletes, as other commits wait.
MAX_FORGOTTEN = 1000


def _read(row: Mapping[Any, Any]) -> rules.Webhook:
    return rules.Webhook(**{
        **{name: row[name] for name in rules.Webhook.__slots__},
        'events': tuple(row['events']),
    })


_ALL = Stored(Webhook, _read, 'webhook', WebhookNotFound)
get, list_ = _ALL.get, _ALL.all


def due(
    connection: sa.Connection, now: int, limit: int
) -> list[rules.Webhook]:
    """Return the webhooks with notifications that may be sent now.

    The webhook that has waited longest is the first.
    """
    return [*map(_read, connection.execute(
        sa.select(Webhook)
        .where(_ENABLED, Webhook.due_at <= now, _WAITED_FOR)
        .order_by(Webhook.due_at, Webhook.id)
        .limit(limit)
    ).mappings())]


def next_delivery(
    connection: sa.Connection, claimed: rules.Webhook,
    last: rules.Delivery | None, refused: Collection[rules.Delivery],
) -> rules.Delivery | None:
    """Return the next notification of a webhook that is still claimed.

    :param last: the last notification that was sent, None for the first
    :param refused: the notifications whose subjects are left out
    """
    table = WebhookDelivery
    later = sa.true() if last is None else sa.or_(
        table.commit > last.commit,
        sa.and_(table.commit == last.commit, table.position > last.position),
    )
    row = connection.execute(
        sa.select(table)
        .join(Webhook)
        .where(
            _is(claimed), _ENABLED, later,
            table.subject.not_in({each.subject for each in refused}),
        )
        .order_by(table.commit, table.position)
        .limit(1)
    ).mappings().first()
    return None if row is None else rules.Delivery(**row)


def in_commit(
    connection: sa.Connection, told: Sequence[Notification], now: float
) -> None:
    """Write the notifications of a commit for the webhooks of their projects.

    This must be done under the lock on the ledger's row. A webhook for which
    too many notifications wait is disabled.
    """
    if not told:
        return
    projects = {each.project_id for each in told}
    found = rows.select(connection, Webhook, sa.and_(
        Webhook.project_id.in_(projects), _ENABLED
    ))
    if not found:
        return
    hooks = [*map(_read, found)]
    waiting = {row['id']: _Waiting(
        row['project_id'], row['waiting'], row['waiting_bytes']
    ) for row in found}
    commit = connection.execute(sa.select(models.Ledger.commits)).scalar_one()
    at = datetime.datetime.fromtimestamp(now, datetime.UTC).isoformat()
    shown = [
        (
            json.dumps({'type': n.event_type, 'timestamp': at, 'data': data}),
            next((data[key] for key in _SUBJECTS if key in data), ''),
        )
        for n, data in ((each, _shown(each.payload())) for each in told)
    ]
    for hook in hooks:
        new = [
            rules.Delivery(
                str(uuid.uuid4()), hook.id, commit, position, *shown[position]
            )
            for position, n in enumerate(told)
            if n.project_id == hook.project_id and hook.wants(n.event_type)
        ]
        if new:
            is_crowded = len(new) <= _MAX_REPLACED and (
                waiting[hook.id].count * 2 > rules.MAX_WAITING
                or _size(waiting, hook.project_id) * 2 > rules.MAX_BYTES
            )
            waiting[hook.id] = _put(
                connection, new, waiting[hook.id], is_crowded
            )
    for hook in sorted(hooks, key=lambda h: -waiting[h.id].size):
        # The webhook for which most waits is disabled before the others.
        if (
            waiting[hook.id].count > rules.MAX_WAITING
            or _size(waiting, hook.project_id) > rules.MAX_BYTES
        ):
            waiting[hook.id] = _Waiting(hook.project_id)
            change(
                connection, hook,
                dataclasses.replace(hook, disabled=rules.FULL), (),
            )


@dataclasses.dataclass(frozen=True, slots=True)
class _Waiting:
    """How many notifications wait for a webhook, and their bytes."""

    project_id: str
    count: int = 0
    size: int = 0


def _size(waiting: Mapping[str, _Waiting], project_id: str) -> int:
    return sum(
        each.size for each in waiting.values() if each.project_id == project_id
    )


def _put(
    connection: sa.Connection, new: Sequence[rules.Delivery],
    waiting: _Waiting, is_crowded: bool,
) -> _Waiting:
    """Add notifications for a webhook; return what waits then.

    :param is_crowded: whether an update takes the place of an update of the
        same lease, if nothing else of the lease waits behind that one
    """
    table, old = WebhookDelivery, {}
    for each in new if is_crowded else ():
        if not each.body.startswith(_UPDATE):
            continue
        last = connection.execute(
            sa.select(
                table.id, sa.func.length(table.body).label('size'),
                sa.func.substr(table.body, 1, len(_UPDATE)).label('begins'),
            )
            .where(
                table.webhook_id == each.webhook_id,
                table.subject == each.subject,
            )
            .order_by(table.commit.desc(), table.position.desc()).limit(1)
        ).first()
        if last and last.begins == _UPDATE:
            old[last.id] = last.size
    if old:
        connection.execute(sa.delete(table).where(table.id.in_(old)))
    rows.add(connection, table, list(map(rows.columns, new)))
    count = len(new) - len(old)
    size = sum(len(each.body) for each in new) - sum(old.values())
    _grow(connection, new[0].webhook_id, count, size)
    return _Waiting(
        waiting.project_id, waiting.count + count, waiting.size + size
    )


def _grow(
    connection: sa.Connection, webhook_id: str, count: int, size: int
) -> None:
    """Count further notifications that wait for a webhook."""
    table = Webhook
    connection.execute(sa.update(table).where(table.id == webhook_id).values(
        waiting=table.waiting + count, waiting_bytes=table.waiting_bytes + size
    ))


def _shown(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in payload.items() if k != IN_THE_WAY}


def put(connection: sa.Connection, new: rules.Webhook) -> None:
    """Insert a webhook."""
    rows.add(connection, Webhook, [rows.columns(new, events=list(new.events))])


def change(
    connection: sa.Connection, old: rules.Webhook, new: rules.Webhook,
    delivered: Collection[str] = (), refused: Collection[rules.Delivery] = (),
) -> bool:
    """Write what a turn has changed, unless the webhook has changed meanwhile.

    A webhook that is disabled stays so; see `disabled_and_waiting`.

    :param delivered: the ids of the notifications that were sent, which are
        deleted in any case
    :param refused: the notifications that the receiver has refused
    :returns: whether the webhook was changed
    """
    table = WebhookDelivery
    changed = connection.execute(
        sa.update(Webhook)
        .where(_is(old), _ENABLED)
        .values(rows.columns(new, events=list(new.events)))
    ).rowcount == 1
    for each in refused:
        connection.execute(
            sa.update(table).where(table.id == each.id)
            .values(refused_at=each.refused_at)
        )
    if delivered:
        _drop(connection, old.id, table.id.in_(delivered))
    return changed


def _drop(
    connection: sa.Connection, webhook_id: str, gone: sa.ColumnElement[bool]
) -> None:
    """Delete notifications of a webhook, and count the others."""
    table = WebhookDelivery
    count, size = connection.execute(sa.select(
        sa.func.count(), sa.func.coalesce(
            sa.func.sum(sa.func.length(table.body)), 0
        ),
    ).where(gone)).one()
    connection.execute(sa.delete(table).where(gone))
    _grow(connection, webhook_id, -count, -int(size))
    is_waiting = sa.exists().where(table.webhook_id == webhook_id)
    # A manager of the last release does not count.
    connection.execute(
        sa.update(Webhook)
        .where(Webhook.id == webhook_id, ~is_waiting)
        .values(waiting=0, waiting_bytes=0)
    )


def disabled_and_waiting(connection: sa.Connection) -> list[str]:
    """Return the ids of disabled webhooks for which notifications wait."""
    return list(connection.scalars(
        sa.select(Webhook.id).where(~_ENABLED, _WAITED_FOR)
    ))


def forget(connection: sa.Connection, webhook_id: str) -> bool:
    """Delete MAX_FORGOTTEN notifications of a webhook, or all.

    :returns: whether notifications may be left
    """
    table = WebhookDelivery
    ids = connection.scalars(
        sa.select(table.id).where(table.webhook_id == webhook_id)
        .limit(MAX_FORGOTTEN)
    ).all()
    _drop(connection, webhook_id, table.id.in_(ids))
    return len(ids) == MAX_FORGOTTEN


def delete(
    connection: sa.Connection, webhook_id: str, project_id: str | None
) -> bool:
    """Delete notifications as `forget` does, and after the last the webhook.

    :returns: whether the webhook is left
    :raises WebhookNotFound: if the project has no such webhook
    """
    found = get(connection, webhook_id, project_id)
    if forget(connection, found.id):
        return True
    connection.execute(sa.delete(Webhook).where(Webhook.id == found.id))
    return False


def _is(known: rules.Webhook) -> sa.ColumnElement[bool]:
    return sa.and_(Webhook.id == known.id, Webhook.due_at == known.due_at)
