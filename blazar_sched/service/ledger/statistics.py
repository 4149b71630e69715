# SPDX-License-Identifier: Apache-2.0
"""Counts of leases and hosts in the ledger, and of what a project has."""

from collections.abc import Collection
import dataclasses

import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import event
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows


@dataclasses.dataclass(frozen=True, slots=True)
class Statistics:
    """The newest revision, the leases by status, and the hosts.

    The leases that are over are not counted: there may be millions of them.
    `degraded` counts the leases that lack resources. `available` counts the
    hosts that get new allocations, and `paths` the instances with a relocation
    path. `due` counts the events that are due and not over, of which the first
    was due at `due_since`, None if there is none.
    """

    revision: int
    leases: dict[str, int]
    degraded: int
    available: int
    unavailable: int
    paths: int
    due: int
    due_since: int | None


def take(connection: sa.Connection, now: int) -> Statistics:
    """Return the counts and the newest revision, in six queries."""
    count = sa.func.count()
    leases = connection.execute(
        sa.select(models.Lease.status, count)
        .where(lease.IS_OPEN)
        .group_by(models.Lease.status)
    ).all()
    hosts = connection.execute(
        sa.select(models.Host.reservable, models.Host.disabled, count)
        .group_by(models.Host.reservable, models.Host.disabled)
    ).all()
    due, due_since = connection.execute(
        sa.select(count, sa.func.min(models.Event.time)).where(
            models.Event.status.in_(event.UNFINISHED), models.Event.time <= now
        )
    ).one()
    return Statistics(
        revision=change.newest(connection)[1], leases=dict(leases),
        degraded=connection.execute(
            sa.select(count)
            .select_from(models.Lease)
            .where(models.Lease.degraded, lease.IS_OPEN)
        ).scalar_one(),
        available=sum(n for well, off, n in hosts if well and not off),
        unavailable=sum(n for well, off, n in hosts if off or not well),
        paths=connection.execute(
            sa.select(count)
            .select_from(models.Instance)
            .where(models.Instance.path.is_not(None))
        ).scalar_one(),
        due=due, due_since=due_since,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """A limit on the number of rows that a project may have.

    :param name: the name of the limit, that of an option of the manager
        unless `most` is given
    :param unit: what is counted
    :param condition: the condition for the rows that count
    :param most: the greatest number
    """

    name: str
    unit: str
    model: type[orm.DeclarativeBase]
    condition: sa.ColumnElement[bool] = sa.true()
    most: int | None = None


def counts_of(
    connection: sa.Connection, project_id: str, numbers: Collection[Number]
) -> dict[str, int]:
    """Return what a project has beside its leases, by unit, in one query."""
    if not numbers:
        return {}
    return dict(connection.execute(sa.select(*(
        sa.select(sa.func.count())
        .select_from(each.model)
        .where(rows.of_project(each.model, project_id, each.condition))
        .scalar_subquery()
        .label(each.unit)
        for each in numbers
    ))).mappings().one())
