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
import functools
import json
from typing import Any
import uuid

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import webhook as rules
from blazar_sched.domain.notification import Notification
from blazar_sched.domain.webhook import Delivery
from blazar_sched.domain.webhook import Webhook
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

_of = functools.partial(rows.of_project, models.Webhook)

# The fields with the subject of a notification. That of a lease request may
# have a lease, too.
_SUBJECTS = ('request_id', 'series_id', 'lease_id')
_ENABLED = models.Webhook.disabled.is_(None)


def get(
    connection: sa.Connection, webhook_id: str, project_id: str | None
) -> Webhook:
    """Return a webhook, of the project `project_id` if given.

    :raises WebhookNotFound: if the project has no such webhook
    """
    if models.is_id(webhook_id):
        condition = models.Webhook.id == webhook_id
        for found in _select(connection, _of(project_id, condition)):
            return found
    raise exception.WebhookNotFound(f'webhook {webhook_id} not found')


def list_(
    connection: sa.Connection, project_id: str | None = None
) -> list[Webhook]:
    """Return the webhooks by id, of the project `project_id` if given."""
    return _select(connection, _of(project_id))


def due(connection: sa.Connection, now: int, limit: int) -> list[Webhook]:
    """Return the webhooks with notifications that may be sent now.

    The webhook that has waited longest is the first.
    """
    waiting = sa.exists().where(
        models.WebhookDelivery.webhook_id == models.Webhook.id
    )
    return _read(connection.execute(
        sa.select(models.Webhook)
        .where(_ENABLED, models.Webhook.due_at <= now, waiting)
        .order_by(models.Webhook.due_at, models.Webhook.id)
        .limit(limit)
    ).mappings().all())


def next_delivery(
    connection: sa.Connection,
    claimed: Webhook,
    last: Delivery | None,
    refused: Collection[Delivery],
) -> Delivery | None:
    """Return the next notification of a webhook that is still claimed.

    :param last: the last notification that was sent, None for the first
    :param refused: the notifications whose subjects are left out
    """
    table = models.WebhookDelivery
    later = sa.true() if last is None else sa.or_(
        table.commit > last.commit,
        sa.and_(table.commit == last.commit, table.position > last.position),
    )
    row = connection.execute(
        sa.select(table)
        .join(models.Webhook)
        .where(
            _is(claimed), _ENABLED, later,
            table.subject.not_in({each.subject for each in refused}),
        )
        .order_by(table.commit, table.position)
        .limit(1)
    ).mappings().first()
    return None if row is None else Delivery(**row)


def queue(
    connection: sa.Connection, told: Sequence[Notification], now: float
) -> None:
    """Write the notifications of a commit for the webhooks of their projects.

    This must be done under the lock on the ledger's row. A webhook for which
    too many notifications wait is disabled.
    """
    if not told:
        return
    projects = {each.project_id for each in told}
    hooks = _select(
        connection, sa.and_(models.Webhook.project_id.in_(projects), _ENABLED)
    )
    if not hooks:
        return
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
            rows.columns(Delivery(
                str(uuid.uuid4()), hook.id, commit, position, *shown[position]
            ))
            for position, n in enumerate(told)
            if n.project_id == hook.project_id and hook.wants(n.event_type)
        ]
        if new and _count(connection, hook) + len(new) > rules.MAX_WAITING:
            change(
                connection, hook,
                dataclasses.replace(hook, disabled=rules.FULL), (),
            )
        else:
            rows.add(connection, models.WebhookDelivery, new)


def _shown(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in payload.items() if k != rules.IN_THE_WAY}


def put(connection: sa.Connection, new: Webhook) -> None:
    """Insert a webhook."""
    rows.add(connection, models.Webhook, [
        rows.columns(new, events=list(new.events))
    ])


def change(
    connection: sa.Connection,
    old: Webhook,
    new: Webhook,
    delivered: Collection[str] = (),
    refused: Collection[Delivery] = (),
) -> bool:
    """Write what a turn has changed, unless the webhook has changed meanwhile.

    A webhook that is disabled stays so, and loses all notifications.

    :param delivered: the ids of the notifications that were sent, which are
        deleted in any case
    :param refused: the notifications that the receiver has refused
    :returns: whether the webhook was changed
    """
    table = models.WebhookDelivery
    changed = connection.execute(
        sa.update(models.Webhook)
        .where(_is(old), _ENABLED)
        .values(rows.columns(new, events=list(new.events)))
    ).rowcount == 1
    for each in refused:
        connection.execute(
            sa.update(table).where(table.id == each.id)
            .values(refused_at=each.refused_at)
        )
    connection.execute(sa.delete(table).where(
        table.webhook_id == old.id if changed and new.disabled
        else table.id.in_(delivered)
    ))
    return changed


def delete(
    connection: sa.Connection, webhook_id: str, project_id: str | None
) -> None:
    """Delete a webhook with the notifications that wait for it.

    :raises WebhookNotFound: if the project has no such webhook
    """
    found = get(connection, webhook_id, project_id)
    connection.execute(
        sa.delete(models.WebhookDelivery)
        .where(models.WebhookDelivery.webhook_id == found.id)
    )
    connection.execute(
        sa.delete(models.Webhook).where(models.Webhook.id == found.id)
    )


def _count(connection: sa.Connection, hook: Webhook) -> int:
    return connection.execute(
        sa.select(sa.func.count()).where(
            models.WebhookDelivery.webhook_id == hook.id
        )
    ).scalar_one()


def _is(known: Webhook) -> sa.ColumnElement[bool]:
    return sa.and_(
        models.Webhook.id == known.id, models.Webhook.due_at == known.due_at
    )


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Webhook]:
    return _read(rows.select(connection, models.Webhook, condition))


def _read(found: Sequence[sa.RowMapping]) -> list[Webhook]:
    return [
        Webhook(**{**row, 'events': tuple(row['events'])}) for row in found
    ]


class Reads(access.Reads):
    """The queries for webhooks."""

    webhook = access.read(get)
    webhooks = access.read(list_)
    due_webhooks = access.read(due)
    next_delivery = access.read(next_delivery)


class Writes(access.Writes):
    """The changes of webhooks."""

    put_webhook = access.write(put)
    change_webhook = access.write(change)
    delete_webhook = access.write(delete)
