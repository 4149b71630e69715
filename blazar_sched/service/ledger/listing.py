# SPDX-License-Identifier: Apache-2.0
"""Lists of leases, filtered, sorted and paged by the database."""

from collections.abc import Callable
from collections.abc import Sequence
import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext import compiler
from sqlalchemy.sql import functions

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease import Lease
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import models

_TEMPLATES = {
    'sqlite': '{}',
    'postgresql': '({} COLLATE "C")',
    'mysql': 'CAST({} AS BINARY)',
    'mariadb': 'CAST({} AS BINARY)',
}


class ByteString(functions.FunctionElement[str]):
    """A string that every database compares by its bytes.

    Otherwise PostgreSQL uses the collation of its locale, and MySQL ignores
    trailing blanks.
    """

    type = sa.String()
    inherit_cache = True


@compiler.compiles(ByteString)
def _to_sql(element: ByteString, compiling: Any, **kwargs: Any) -> str:
    text = compiling.process(element.clauses, **kwargs)
    return _TEMPLATES[compiling.dialect.name].format(text)


# The sort keys of a list. A lease without a time sorts before all times.
_KEYS: dict[str, sa.ColumnElement[Any]] = {
    'id': ByteString(models.Lease.id),
    'name': ByteString(models.Lease.name),
    'status': ByteString(models.Lease.status),
    'start': models.Lease.start.expression,
    'end': models.Lease.end.expression,
    'created_at': models.Lease.created_at.expression,
    'updated_at': sa.func.coalesce(models.Lease.updated_at, -1),
}
_OLDEST_FIRST = (('created_at', False),)

_Order = Sequence[tuple[sa.ColumnElement[Any], bool]]


def list_(
    connection: sa.Connection, /, project_id: str | None = None, *,
    sort: Sequence[tuple[str, bool]] = (), limit: int | None = None,
    marker: str | None = None, bare: bool = False, **filters: Any,
) -> list[Lease]:
    """Return leases; a filter that is None does not restrict the result.

    Held offers are left out.

    :param sort: the sort keys, the most significant first, each with whether
        the order descends: id, name, status, start, end, created_at,
        updated_at; without sort keys the oldest lease is first
    :param limit: the maximum number of leases
    :param marker: the id of the lease after which the result begins
    :param bare: whether the reservations and the events are left out
    :param filters: values of _FILTERS
    :raises InvalidInput: naming `sort` for an unknown key, `limit` if it is
        below 1, `marker` if the project has no such lease
    """
    if limit is not None and limit < 1:
        raise exception.InvalidInput(
            f'limit must be at least 1: {limit}', field='limit'
        )
    order = _order(sort)
    asked = {k: v for k, v in filters.items() if v is not None}
    texts = [t for t in (project_id, *asked.values()) if isinstance(t, str)]
    if not all(map(models.is_text, texts)):
        return []
    mine = models.Lease.status != states.LEASE_CREATING
    if project_id is not None:
        mine = sa.and_(mine, models.Lease.project_id == project_id)
    conditions = [mine, *(_FILTERS[k](v) for k, v in asked.items())]
    if marker is not None:
        values = _values(connection, order, mine, marker)
        conditions.append(_after(order, values))
    return lease.select(
        connection, sa.and_(*conditions),
        [key.desc() if descending else key for key, descending in order],
        limit, bare,
    )


def _has(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Match the leases with a reservation that matches a condition."""
    return sa.exists().where(
        models.Reservation.lease_id == models.Lease.id, condition
    ).correlate(models.Lease)


def _labelled(
    labels: sa.SQLColumnExpression[Any], key: str, value: str
) -> sa.ColumnElement[bool]:
    """Match the rows with a label.

    The text of the pair is in no other JSON object of texts: a key has no
    quotes, and the quotes in a value are escaped. REPLACE compares bytes on
    every database, unlike LIKE.
    """
    text = sa.type_coerce(labels, models.Text)
    pair = f'{json.dumps(key)}: {json.dumps(value)}'
    return sa.func.replace(text, pair, '') != text


def _on(host: str, whole: bool) -> sa.ColumnElement[bool]:
    """Match the reservations that have or had a host, or the whole host."""
    hosts = sa.select(models.Host.uuid).where(
        ByteString(models.Host.hypervisor_hostname) == host
    )
    return sa.or_(*(
        sa.exists().where(
            held.reservation_id == models.Reservation.id, held.host.in_(hosts),
            held.whole if whole else sa.true(),
        ).correlate(models.Reservation)
        for held in allocation.EVER
    ))


# The filters: `at` is a time in the window, `after` a time before the end, and
# `before` a time after the start. `host` is the hypervisor hostname of a host
# that the lease has or had, `whole_host` of a host that it does not share.
# `labels` are pairs of a key and a value.
_FILTERS: dict[str, Callable[[Any], sa.ColumnElement[bool]]] = {
    'name': lambda name: _KEYS['name'] == name,
    'status': lambda status: _KEYS['status'] == status,
    'degraded': lambda wanted: models.Lease.degraded == wanted,
    'at': lambda at: sa.and_(models.Lease.start <= at, models.Lease.end > at),
    'after': lambda at: models.Lease.end > at,
    'before': lambda at: models.Lease.start < at,
    'resource_type': lambda wanted: _has(
        ByteString(models.Reservation.resource_type) == wanted
    ),
    'labels': lambda labels: sa.and_(*(
        sa.or_(
            _labelled(models.Lease.labels, *label),
            _has(_labelled(models.Reservation.labels, *label)),
        )
        for label in labels
    )),
    'host': lambda host: _has(_on(host, False)),
    'whole_host': lambda host: _has(_on(host, True)),
}


def _order(sort: Sequence[tuple[str, bool]]) -> _Order:
    for key, _ in sort:
        if key not in _KEYS:
            raise exception.InvalidInput(
                f'leases cannot be sorted by {key}', field='sort'
            )
    by = sort or _OLDEST_FIRST
    # The id makes the order total, as paging requires. It is the column
    # itself, which the index has.
    return [
        *((_KEYS[key], descending) for key, descending in by),
        (models.Lease.id.expression, False),
    ]


def _values(
    connection: sa.Connection, order: _Order, mine: sa.ColumnElement[bool],
    marker: str,
) -> Sequence[Any]:
    """Return the values of the sort keys of the lease `marker`."""
    keys = [key.label(None) for key, _ in order]
    if models.is_id(marker):
        query = sa.select(*keys).where(models.Lease.id == marker, mine)
        found = connection.execute(query).one_or_none()
        if found is not None:
            return found
    raise exception.InvalidInput(f'lease {marker} not found', field='marker')


def _after(order: _Order, values: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Match the leases that sort after a lease with the keys `values`."""
    after: sa.ColumnElement[bool] = sa.false()
    for (key, descending), value in reversed(
        list(zip(order, values, strict=True))
    ):
        beyond = key < value if descending else key > value
        after = sa.or_(beyond, sa.and_(key == value, after))
    return after
