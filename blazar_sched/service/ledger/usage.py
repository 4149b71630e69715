# SPDX-License-Identifier: Apache-2.0
"""The usage of reservations in SQL, which is kept after the leases."""

from collections import Counter
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import itertools

import sqlalchemy as sa

from blazar_sched.domain import states
from blazar_sched.domain import usage
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.usage import Usage
from blazar_sched.domain.window import Window
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import lease
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import rows

# Only a list of statuses is looked up in the index of the leases.
_MEASURED = tuple(
    {*states.LEASE_OPEN, states.LEASE_TERMINATED} - {states.LEASE_CREATING}
)
# Rows that are read or written at a time.
_BATCH = 1000


def measured_until(connection: sa.Connection) -> int | None:
    """Return when the usage was measured last, None for never."""
    found: int | None = connection.scalar(
        sa.select(sa.func.max(models.Usage.until))
    )
    return found


def to_measure(
    connection: sa.Connection, window: Window
) -> tuple[list[Lease], list[Allocation], list[Instance]]:
    """Return the leases that overlap a window, except for held offers.

    The queries are six, however many leases there are.

    :returns: the leases, the allocations that they have or had, and the
        servers in their reservations now
    """
    overlapping = sa.and_(
        models.Lease.start < window.end,
        models.Lease.end > window.start,
        models.Lease.status.in_(_MEASURED),
    )
    ids = (
        sa.select(models.Reservation.id).join(models.Lease).where(overlapping)
    )
    held = [
        allocation.from_row(row)
        for table in allocation.EVER
        for row in connection.execute(
            sa.select(table).where(table.reservation_id.in_(ids))
        )
    ]
    servers = connection.execute(
        sa.select(models.Instance)
        .where(models.Instance.reservation_id.in_(ids))
    )
    return (
        lease.select(connection, overlapping, (models.Lease.id,)),
        held,
        list(map(instance.from_row, servers)),
    )


def add(connection: sa.Connection, new: Sequence[Usage]) -> None:
    """Add measurements to what was measured on their days."""
    for first in range(0, len(new), _BATCH):
        _add(connection, new[first : first + _BATCH])


def _add(connection: sa.Connection, new: Sequence[Usage]) -> None:
    same_days = sa.and_(
        models.Usage.reservation_id.in_({u.reservation_id for u in new}),
        models.Usage.day.in_({u.day for u in new}),
    )
    sums = {
        (known.reservation_id, known.day): known
        for known in _select(connection, same_days)
    }
    for each in new:
        key = each.reservation_id, each.day
        sums[key] = sums[key].plus(each) if key in sums else each
    connection.execute(sa.delete(models.Usage).where(same_days))
    rows.add(connection, models.Usage, list(map(rows.columns, sums.values())))


def extend(connection: sa.Connection, since: int, until: int) -> None:
    """Note that nothing was reserved since the last measurement."""
    connection.execute(
        sa.update(models.Usage)
        .where(models.Usage.until == since)
        .values(until=until)
    )


def sums(
    connection: sa.Connection,
    window: Window,
    project_id: str | None,
    group_by: Collection[str],
) -> dict[tuple[str, ...], Counter[str]]:
    """Return the sums of the usage on the days that start in a window.

    The rows are read once, and never held together.

    :param project_id: None for all projects
    :raises InvalidInput: as `usage.sums` does
    """
    return usage.sums(
        _select(connection, _within(window, project_id)), group_by
    )


def of_day(
    connection: sa.Connection, day: int, after: str, limit: int
) -> list[Usage]:
    """Return usages of leases on a day, by the ids of the reservations.

    :param after: the id before the first
    """
    return list(_select(
        connection,
        sa.and_(
            models.Usage.day == day, models.Usage.reservation_id > after,
            models.Usage.lease_id != '',
        ),
        limit,
    ))


def reserved(
    connection: sa.Connection, window: Window, project_id: str
) -> Counter[str]:
    """Return what was reserved on the days that start in a window, by class.

    :returns: amount x seconds by resource class
    """
    found: Counter[str] = Counter()
    for each in _select(connection, _within(window, project_id)):
        found.update(each.reserved)
    return found


def _within(
    window: Window, project_id: str | None
) -> sa.ColumnElement[bool]:
    return rows.of_project(
        models.Usage, project_id,
        models.Usage.day >= window.start, models.Usage.day < window.end,
    )


def _select(
    connection: sa.Connection,
    condition: sa.ColumnElement[bool],
    limit: int | None = None,
) -> Iterator[Usage]:
    """Return usages, those of a reservation one after another."""
    columns = sa.inspect(models.Usage).columns
    found = connection.execute(
        sa.select(*(columns[name] for name in Usage.__slots__))
        .where(condition)
        .order_by(models.Usage.reservation_id, models.Usage.day)
        .limit(limit),
        execution_options={'yield_per': _BATCH},
    )
    return itertools.starmap(Usage, found)


class Reads(access.Reads):
    """The queries for the usage."""

    usage_sums = access.read(sums)
    usage_of_day = access.read(of_day)
    reserved_seconds = access.read(reserved)
    usage_measured_until = access.read(measured_until)
    leases_to_measure = access.read(to_measure)


class Writes(access.Writes):
    """The addition of measurements."""

    add_usage = access.write(add)
    extend_usage = access.write(extend)
