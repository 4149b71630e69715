# SPDX-License-Identifier: Apache-2.0
"""Lease requests in SQL, also those that wait no more."""

import functools

import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.lease_request import LeaseRequest
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

_of = functools.partial(rows.of_project, models.LeaseRequest)

_WAITING = models.LeaseRequest.status == states.REQUEST_WAITING


def get(
    connection: sa.Connection, request_id: str, project_id: str | None
) -> LeaseRequest:
    """Return a lease request, of the project `project_id` if given.

    :raises LeaseRequestNotFound: if there is no such request, or the request
        belongs to another project
    """
    if models.is_id(request_id):
        condition = models.LeaseRequest.id == request_id
        for found in _select(connection, _of(project_id, condition)):
            return found
    raise exception.LeaseRequestNotFound(
        f'lease request {request_id} not found'
    )


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
        connection,
        sa.and_(
            models.LeaseRequest.flexible,
            models.LeaseRequest.lease_id.in_(pending),
        ),
    )
    return sorted(found, key=lambda request: request.turn, reverse=True)


def last_number(connection: sa.Connection) -> int:
    """Return the greatest number of a lease request, 0 if there is none."""
    last: int | None = connection.execute(
        sa.select(sa.func.max(models.LeaseRequest.number))
    ).scalar_one()
    return last or 0


def put(connection: sa.Connection, new: LeaseRequest) -> None:
    """Insert a lease request, or replace the request of the same id."""
    rows.replace(
        connection, models.LeaseRequest, models.LeaseRequest.id == new.id,
        [rows.columns(new)],
    )


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[LeaseRequest]:
    return [
        LeaseRequest(**row)
        for row in rows.select(connection, models.LeaseRequest, condition)
    ]


class Reads(access.Reads):
    """The queries for lease requests."""

    lease_request = access.read(get)
    lease_requests = access.read(list_)
    flexible_requests = access.read(flexible)
    waiting_requests = access.read(waiting)
    last_request_number = access.read(last_number)


class Writes(access.Writes):
    """The changes of lease requests."""

    put_lease_request = access.write(put)
