# SPDX-License-Identifier: Apache-2.0
"""Events in SQL, and the claims under which events are processed."""

from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import functools
import itertools
from typing import Any

import sqlalchemy as sa

from blazar_sched.domain import event
from blazar_sched.domain import states
from blazar_sched.domain.event import Claim
from blazar_sched.domain.event import Event
from blazar_sched.domain.lease import Lease
from blazar_sched.service.ledger import clock
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger import rows

UNFINISHED = (states.EVENT_UNDONE, states.EVENT_IN_PROGRESS)
# The columns are in the order of the fields of `Event`. A list of leases has
# more events than other rows, and an event is built fastest by position.
COLUMNS = [
    getattr(models.Event, field.name)
    for field in dataclasses.fields(Event)
]
_CLAIM = (models.Event.owner, models.Event.token, models.Event.until)
_NO_CLAIM = {'owner': None, 'token': None, 'until': None}
_OF_ID = sa.update(models.Event).where(models.Event.id == sa.bindparam('key'))
_SET = _OF_ID.where(models.Event.status == sa.bindparam('as_seen'))
_SET_HELD = _OF_ID.where(
    models.Event.status == states.EVENT_IN_PROGRESS,
    models.Event.token == sa.bindparam('held'),
)
_NOW: sa.BindParameter[int] = sa.bindparam('now')
_REOPENED = sa.and_(
    models.Event.status == states.EVENT_ERROR,
    models.Event.event_type == event.START_LEASE,
    sa.func.coalesce(models.Event.updated_at, 0) <= sa.bindparam('given_up'),
    sa.exists().where(
        models.Lease.id == models.Event.lease_id,
        models.Lease.status == states.LEASE_ACTIVE, models.Lease.end > _NOW,
    ),
)
_IS_DUE = sa.or_(
    sa.and_(
        models.Event.status == states.EVENT_UNDONE, models.Event.time <= _NOW
    ),
    models.Event.status == states.EVENT_IN_PROGRESS,
)
# Every look at due events executes one of these statements.
_DUE = sa.select(*COLUMNS, *_CLAIM).where(_IS_DUE)
_DUE_OR_REOPENED = sa.select(*COLUMNS, *_CLAIM).where(
    sa.or_(_IS_DUE, _REOPENED)
)


def by_lease(rows_: Iterable[Sequence[Any]]) -> dict[str, list[Event]]:
    """Return the events in rows of `COLUMNS` by lease."""
    found = defaultdict(list)
    for row in rows_:
        event = Event(*row)
        found[event.lease_id].append(event)
    return found


def _rows(owner: Lease) -> list[dict[str, Any]]:
    return [
        rows.columns(event, lease_id=owner.id, position=position)
        for position, event in enumerate(owner.events)
    ]


def add(connection: sa.Connection, new: Iterable[Lease]) -> None:
    """Insert the events of new leases."""
    rows.add(connection, models.Event, list(itertools.chain(*map(_rows, new))))


def put(connection: sa.Connection, new: Lease) -> None:
    """Replace the lease's events by the events of `new`.

    The claim on an event that stays in progress is kept.
    """
    rows.replace(
        connection, models.Event, models.Event.lease_id == new.id,
        [
            row
            if row['status'] == states.EVENT_IN_PROGRESS
            else {**row, **_NO_CLAIM}
            for row in _rows(new)
        ],
    )


def list_due(
    connection: sa.Connection, now: int, given_up: int | None = None
) -> list[tuple[Event, Claim | None]]:
    """Return the events that are due at `now`, in order, with their claims.

    All events in progress are included, because only a process that watches
    a claim can tell that the claim is no longer held.

    :param given_up: if not None, the start events of active leases that were
        given up at or before this time are included
    """
    query = _DUE if given_up is None else _DUE_OR_REOPENED
    given = {'now': now, 'given_up': given_up}
    pairs = [
        (
            Event(*row[: len(COLUMNS)]),
            Claim(*row[len(COLUMNS) :])
            if row.status == states.EVENT_IN_PROGRESS
            else None,
        )
        for row in connection.execute(query, given)
    ]
    order = event.due_order(pair[0] for pair in pairs)
    return sorted(pairs, key=lambda pair: order(pair[0]))


def next_time(connection: sa.Connection) -> tuple[int | None, float | None]:
    """Return the earliest time of an event that is not yet begun.

    :returns: the time, None if there is no such event; and the current time
        of the database
    """
    first, now = connection.execute(
        sa.select(
            sa.func.min(models.Event.time), clock.now(connection)
        ).where(models.Event.status == states.EVENT_UNDONE)
    ).one()
    return first, None if now is None else float(now)


def claim(
    connection: sa.Connection, event_id: str, new: Claim, seen: Claim | None,
    status: str = states.EVENT_UNDONE,
) -> bool:
    """Claim an event, if the event is still in the state that was seen.

    One changed row proves that the event was claimed.

    :param seen: the claim to take over, None if the event was not begun
    :param status: the status that the event must have if `seen` is None
    """
    query: sa.Update
    if seen is None:
        query, as_seen = _SET, {'as_seen': status}
    else:
        query = _SET_HELD.where(models.Event.until == seen.until)
        as_seen = {'held': seen.token}
    changed = connection.execute(query, {
        'key': event_id, **as_seen,
        **rows.columns(new, status=states.EVENT_IN_PROGRESS),
    })
    return changed.rowcount == 1


def renew(
    connection: sa.Connection, tokens: Collection[str], until: int
) -> set[str]:
    """Set `until` of the claims that are still held; return their tokens."""
    # The update is not by token, because tokens have no index.
    held = connection.execute(
        sa.select(models.Event.id, models.Event.token).where(
            models.Event.status == states.EVENT_IN_PROGRESS,
            models.Event.token.in_(tokens),
        )
    ).all()
    connection.execute(
        sa.update(models.Event)
        .where(models.Event.id.in_([row.id for row in held]))
        .values(until=until)
    )
    return {row.token for row in held}


def finish(
    connection: sa.Connection, event_id: str, token: str, status: str,
    now: int | None = None,
) -> bool:
    """Set the event's status and release its claim, if `token` holds it.

    :param now: the time of the change, None if the event has no outcome yet
    """
    values: dict[str, Any] = {
        'key': event_id, 'held': token, 'status': status, **_NO_CLAIM
    }
    if now is not None:
        values['updated_at'] = now
    changed = connection.execute(_SET_HELD, values)
    return changed.rowcount == 1


def _blocking(model: type[models.Base], what: str) -> sa.Exists:
    """Match unfinished leases that block the start of the lease `lease_id`.

    Such a lease is over when the lease `lease_id` starts, and has an
    allocation of the same host or other resource.

    :param what: the column that names what is allocated, such as the host
    """
    held, leaving = (model.__table__.alias() for _ in range(2))
    mine, theirs = (models.Reservation.__table__.alias() for _ in range(2))
    lease_id: sa.BindParameter[str] = sa.bindparam('lease_id')
    return (
        sa.select(sa.literal(1))
        .select_from(mine)
        .join(held, held.c.reservation_id == mine.c.id)
        .join(
            leaving,
            sa.and_(
                leaving.c[what] == held.c[what], leaving.c.end <= held.c.start
            ),
        )
        .join(theirs, theirs.c.id == leaving.c.reservation_id)
        .join(models.Event, models.Event.lease_id == theirs.c.lease_id)
        .where(
            mine.c.lease_id == lease_id, theirs.c.lease_id != lease_id,
            models.Event.event_type == event.END_LEASE,
            models.Event.status.in_(UNFINISHED),
        )
        .exists()
    )


@functools.cache
def _any_blocking(kinds: Sequence[off_hosts.OffHosts]) -> sa.Select[Any]:
    """Return the query for `_blocking` by any resource.

    Building the query takes longer than running the query.
    """
    return sa.select(
        sa.or_(
            _blocking(models.Allocation, 'host'),
            *(_blocking(each.allocation, each.resource) for each in kinds),
        )
    )


def is_blocked(connection: sa.Connection, lease_id: str) -> bool:
    """Return whether an earlier lease still occupies a resource of a lease.

    Only leases that are over when the lease starts are considered, so two
    leases never wait for each other, however late both are.
    """
    query = _any_blocking(off_hosts.kinds(connection))
    return bool(connection.scalar(query, {'lease_id': lease_id}))
