# SPDX-License-Identifier: Apache-2.0
"""Lease requests in SQL, also those that wait no more."""

from collections.abc import Iterator
import functools
from typing import Any

import prometheus_client
import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.domain import states
from blazar_sched.parts.request.exception import LeaseRequestNotFound
from blazar_sched.parts.request.lease_request import LeaseRequest
from blazar_sched.parts.request.lease_request import WAITING
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows
from blazar_sched.service.ledger.statistics import Number
from blazar_sched.service.metrics import Metric


class Row(models.Base):
    """A lease request; `reservations` are as they were requested."""

    __tablename__ = 'lease_request'

    id: orm.Mapped[str] = orm.mapped_column(models.Id, primary_key=True)
    name: orm.Mapped[str]
    project_id: orm.Mapped[str] = orm.mapped_column(index=True)
    user_id: orm.Mapped[str]
    reservations: orm.Mapped[list[dict[str, Any]]]
    start: orm.Mapped[int]
    latest_start: orm.Mapped[int]
    duration: orm.Mapped[int]
    wait_until: orm.Mapped[int]
    priority: orm.Mapped[int]
    digest: orm.Mapped[str]
    flexible: orm.Mapped[bool]
    number: orm.Mapped[int]
    status: orm.Mapped[str] = orm.mapped_column(index=True)
    lease_id: orm.Mapped[str | None] = orm.mapped_column(models.Id)
    created_at: orm.Mapped[int | None]
    updated_at: orm.Mapped[int | None]


_of = functools.partial(rows.of_project, Row)
_WAITING = Row.status == WAITING

TABLES = (Row,)
NUMBERS = (Number('max_waiting_requests', 'requests', Row, _WAITING),)


def get(
    connection: sa.Connection, request_id: str, project_id: str | None
) -> LeaseRequest:
    """Return a lease request, of the project `project_id` if given.

    :raises LeaseRequestNotFound: if there is no such request, or the request
        belongs to another project
    """
    if models.is_id(request_id):
        condition = Row.id == request_id
        for found in _select(connection, _of(project_id, condition)):
            return found
    raise LeaseRequestNotFound(f'lease request {request_id} not found')


def list_(
    connection: sa.Connection, project_id: str | None
) -> list[LeaseRequest]:
    """Return the lease requests by id, of the project `project_id` if given.
    """
    return _select(connection, _of(project_id))


def waiting(
    connection: sa.Connection, project_id: str | None = None
) -> list[LeaseRequest]:
    """Return the waiting lease requests, the one whose turn it is first."""
    found = _select(connection, _of(project_id, _WAITING))
    return sorted(found, key=lambda request: request.turn)


def flexible(connection: sa.Connection) -> list[LeaseRequest]:
    """Return the flexible requests with leases that have not started.

    The request whose turn was last is the first of the list.
    """
    pending = sa.select(models.Lease.id).where(
        models.Lease.status == states.LEASE_PENDING
    )
    found = _select(
        connection, sa.and_(Row.flexible, Row.lease_id.in_(pending))
    )
    return sorted(found, key=lambda request: request.turn, reverse=True)


def last_number(connection: sa.Connection) -> int:
    """Return the greatest number of a lease request, 0 if there is none."""
    last: int | None = connection.execute(
        sa.select(sa.func.max(Row.number))
    ).scalar_one()
    return last or 0


def put(connection: sa.Connection, new: LeaseRequest) -> None:
    """Insert a lease request, or replace the request of the same id."""
    rows.replace(connection, Row, Row.id == new.id, [rows.columns(new)])


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[LeaseRequest]:
    return [
        LeaseRequest(**row)
        for row in rows.select(connection, Row, condition)
    ]


def over(
    connection: sa.Connection, before: int
) -> Iterator[tuple[type[models.Base], sa.ColumnElement[bool]]]:
    """Yield the table with the condition of what is over.

    A lease request is kept as long as its lease, which may be flexible.
    """
    yield Row, sa.and_(
        ~_WAITING, Row.updated_at < before,
        ~sa.exists().where(models.Lease.id == Row.lease_id),
    )


def pending(
    connection: sa.Connection, now: int
) -> tuple[str, list[LeaseRequest]]:
    """Return the requests that are not over, and the noun for them."""
    return 'lease request', waiting(connection)


def _count(connection: sa.Connection) -> int:
    return connection.execute(
        sa.select(sa.func.count()).select_from(Row).where(_WAITING)
    ).scalar_one()


GAUGES = {
    Metric(
        prometheus_client.Gauge, 'blazar_sched_manager_lease_requests_waiting',
        'Lease requests that wait for room; every manager reports the same '
        'number',
    ): _count,
}
