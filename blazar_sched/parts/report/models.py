# SPDX-License-Identifier: Apache-2.0
"""The tables of the usage, which is kept after the leases, and the queries."""

from collections import Counter
from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import itertools
import operator
from typing import Any

import prometheus_client
import sqlalchemy as sa
from sqlalchemy import orm

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.window import Window
from blazar_sched.parts.report import usage
from blazar_sched.parts.report.usage import DAY
from blazar_sched.parts.report.usage import FIGURES
from blazar_sched.parts.report.usage import Held
from blazar_sched.parts.report.usage import SUMS
from blazar_sched.parts.report.usage import Usage
from blazar_sched.replica.metrics import Metric
from blazar_sched.service.ledger import allocation
from blazar_sched.service.ledger import host
from blazar_sched.service.ledger import instance
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import reservation
from blazar_sched.service.ledger import rows


class UsageDay(models.Base):
    """The usage of a resource class by a reservation on a day.

    The usage is kept after the lease: no column refers to another table.
    """

    __tablename__ = 'usage_day'
    __table_args__ = (sa.Index(None, 'project_id', 'day'), models.OPTIONS)

    reservation_id: orm.Mapped[str] = orm.mapped_column(
        models.Id, primary_key=True
    )
    day: orm.Mapped[int] = orm.mapped_column(
        primary_key=True, autoincrement=False, index=True
    )
    resource_class: orm.Mapped[str] = orm.mapped_column(primary_key=True)
    lease_id: orm.Mapped[str] = orm.mapped_column(models.Id)
    project_id: orm.Mapped[str]
    resource_type: orm.Mapped[str]
    flavor: orm.Mapped[str]
    product: orm.Mapped[str]
    reserved: orm.Mapped[int]
    used: orm.Mapped[int]
    late: orm.Mapped[int]
    refused: orm.Mapped[int]
    since: orm.Mapped[int]
    reserved_rate: orm.Mapped[int]
    used_rate: orm.Mapped[int]
    late_rate: orm.Mapped[int]


class ReservedDay(models.Base):
    """What a project has reserved on a day: the sums of `UsageDay.reserved`.

    So a budget reads a row for each day, however many reservations there were.
    """

    __tablename__ = 'reserved_day'

    project_id: orm.Mapped[str] = orm.mapped_column(primary_key=True)
    day: orm.Mapped[int] = orm.mapped_column(
        primary_key=True, autoincrement=False, index=True
    )
    resource_class: orm.Mapped[str] = orm.mapped_column(primary_key=True)
    reserved: orm.Mapped[int]


TABLES = (UsageDay, ReservedDay)

# Only a list of statuses is looked up in the index of the leases.
_MEASURED = tuple(
    {*states.LEASE_OPEN, states.LEASE_TERMINATED} - {states.LEASE_CREATING}
)
_OPEN = UsageDay.reserved_rate > 0
_RESERVATION = operator.attrgetter('reservation_id')

# The usages of a reservation as they are known, and as they are measured.
Measured = tuple[Sequence[Usage], Sequence[Usage]]


def measured_at(connection: sa.Connection) -> int | None:
    """Return when all usage was measured last, None for never."""
    found: int | None = connection.scalar(sa.select(models.Ledger.measured_at))
    return found


def is_measured_by(connection: sa.Connection, owner: str, now: int) -> bool:
    """Tell whether a manager may measure: no other manager does so."""
    by, until = connection.execute(sa.select(
        models.Ledger.measured_by, models.Ledger.measuring_until
    )).one()
    return by in (None, owner) or (until or 0) <= now


def claim(connection: sa.Connection, owner: str, now: int, until: int) -> bool:
    """Let a manager measure until a time; return whether it may do so."""
    if not is_measured_by(connection, owner, now):
        return False
    connection.execute(sa.update(models.Ledger).values(
        measured_by=owner, measuring_until=until
    ))
    return True


def end_measurement(connection: sa.Connection, owner: str, now: int) -> bool:
    """Note that all usage is measured, if the manager may still measure."""
    return connection.execute(
        sa.update(models.Ledger)
        .where(models.Ledger.measured_by == owner)
        .values(measured_at=now)
    ).rowcount == 1


def to_measure(connection: sa.Connection, seen: int, now: int) -> list[str]:
    """Return the ids of the reservations to measure, by lease.

    :param seen: when all usage was measured last
    """
    current = connection.execute(
        sa.select(models.Reservation.lease_id, models.Reservation.id)
        .join(models.Lease)
        .where(_is_measured(seen, now))
    )
    known = connection.execute(
        sa.select(UsageDay.lease_id, UsageDay.reservation_id)
        .where(UsageDay.day >= seen - seen % DAY, _OPEN)
    )
    pairs = {tuple(row) for row in itertools.chain(current, known)}
    return [id_ for _, id_ in sorted(pairs)]


def measure(
    connection: sa.Connection, ids: Collection[str], seen: int, now: int,
    is_deleted: bool = False,
) -> list[Measured]:
    """Return the usages of reservations that have changed.

    The rates of reservations that are gone end with the last measurement.

    :param is_deleted: whether the reservations are about to be deleted
    """
    known = _known(connection, ids, seen)
    held = _held(connection, seen, now, models.Reservation.id.in_(ids), known)
    for each in held:
        known.pop(each.reservation.id, None)
    new = [
        (each.known, each.measure(seen, now, is_deleted)) for each in held
    ] + [
        (old, [each.closed(seen) for each in old])
        for old in known.values() if any(each.reserved_rate for each in old)
    ]
    return [(old, usages) for old, usages in new if old != usages]


def _held(
    connection: sa.Connection, seen: int, now: int,
    condition: sa.ColumnElement[bool],
    known: Mapping[str, Sequence[Usage]] | None = None,
) -> list[Held]:
    """Return the reservations that are measured, and meet a condition.

    :param known: the usages of the last days of each reservation; None to read
        them, and no servers
    """
    found = connection.execute(
        sa.select(
            models.Reservation, models.Lease.project_id,
            models.Lease.start.label('first'), models.Lease.end.label('last'),
        )
        .join(models.Lease)
        .where(condition, _is_measured(seen, now))
    ).all()
    ids = [row.id for row in found]
    allocations, servers = defaultdict(list), defaultdict(list)
    for table in allocation.EVER:
        for row in connection.execute(sa.select(table).where(
            table.reservation_id.in_(ids), table.end > seen
        )):
            allocations[row.reservation_id].append(allocation.from_row(row))
    for row in connection.execute(sa.select(models.Instance).where(
        models.Instance.reservation_id.in_(ids)
    )) if known is not None else ():
        servers[row.reservation_id].append(instance.from_row(row))
    capacities = {
        each.uuid: {c: each.capacity(c) for c in each.inventory}
        for each in host.list_(connection, {
            a.host for many in allocations.values() for a in many if a.whole
        })
    }
    if known is None:
        known = _known(connection, ids, seen)
    return [
        Held(
            reservation.from_row(row), row.project_id, row.first, row.last,
            allocations[row.id], servers[row.id], capacities,
            known.get(row.id, []),
        )
        for row in found
    ]


def _is_measured(seen: int, now: int) -> sa.ColumnElement[bool]:
    return sa.and_(
        models.Lease.start <= now, models.Lease.end > min(seen, now),
        models.Lease.status.in_(_MEASURED),
    )


def _known(
    connection: sa.Connection, ids: Collection[str], since: int
) -> dict[str, list[Usage]]:
    """Return the usages of reservations on a day and later."""
    found = _select(connection, _of(ids, since))
    return {
        id_: list(each) for id_, each in itertools.groupby(found, _RESERVATION)
    }


def _of(ids: Collection[str], since: int) -> sa.ColumnElement[bool]:
    return sa.and_(
        UsageDay.reservation_id.in_(ids), UsageDay.day >= since - since % DAY
    )


def put(
    connection: sa.Connection, measured: Sequence[Measured], since: int
) -> None:
    """Write measurements, except for what was measured meanwhile.

    :param since: a time on the first day of the measurements
    """
    ids = {each.reservation_id for _, new in measured for each in new}
    if not ids:
        return
    known = _known(connection, ids, since)
    current = [
        (old, new) for old, new in measured
        if known.get(new[0].reservation_id, []) == old
    ]
    _replace(
        connection, [each for old, _ in current for each in old],
        [each for _, new in current for each in new], since,
    )


def add_refused(connection: sa.Connection, refused: Sequence[Usage]) -> None:
    """Add what was refused to what was refused on the same days."""
    def key(each: Usage) -> tuple[str, int, str]:
        return each.reservation_id, each.day, each.resource_class

    since = min(each.day for each in refused)
    ids = {each.reservation_id for each in refused}
    known = _select(connection, _of(ids, since))
    sums: Counter[tuple[str, int, str]] = Counter()
    for each in (*known, *refused):
        sums[key(each)] += each.refused
    kinds = {key(each): each for each in (*known, *refused)}
    _replace(connection, known, [
        Usage(**rows.columns(kinds[k]) | {'refused': amount})
        for k, amount in sums.items()
    ], since)


def _replace(
    connection: sa.Connection, old: Iterable[Usage], new: Sequence[Usage],
    since: int,
) -> None:
    """Replace the usages of reservations on a day and later."""
    ids = {each.reservation_id for each in new}
    connection.execute(sa.delete(UsageDay).where(_of(ids, since)))
    rows.add(connection, UsageDay, list(map(rows.columns, new)))
    grown: Counter[tuple[str, int, str]] = Counter()
    for sign, usages in ((1, new), (-1, old)):
        for each in usages:
            key = each.project_id, each.day, each.resource_class
            grown[key] += sign * each.reserved
    table = ReservedDay
    touched = {key for key, amount in grown.items() if amount}
    if not touched:
        return
    days = sa.and_(
        table.project_id.in_({project for project, _, _ in touched}),
        table.day.in_({day for _, day, _ in touched}),
    )
    for row in connection.execute(sa.select(table).where(days)):
        grown[row.project_id, row.day, row.resource_class] += row.reserved
        touched.add((row.project_id, row.day, row.resource_class))
    connection.execute(sa.delete(table).where(days))
    rows.add(connection, table, [
        {
            'project_id': project, 'day': day, 'resource_class': name,
            'reserved': grown[project, day, name],
        }
        for project, day, name in touched
    ])


def delete(connection: sa.Connection, before: int, limit: int) -> int:
    """Delete the usage of days before a time, of some reservations.

    :returns: the number of the reservations
    """
    is_old = UsageDay.day < before
    ids = list(connection.scalars(
        sa.select(UsageDay.reservation_id).where(is_old).distinct()
        .limit(limit)
    ))
    connection.execute(sa.delete(UsageDay).where(
        UsageDay.reservation_id.in_(ids), is_old
    ))
    connection.execute(sa.delete(ReservedDay).where(ReservedDay.day < before))
    return len(ids)


def sums(
    connection: sa.Connection, window: Window, project_id: str | None,
    group_by: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the sums of the usage on the days that start in a window.

    :param project_id: None for all projects
    :returns: a row for each group and resource class, by these
    :raises InvalidInput: for more than usage.MAX_ROWS rows
    """
    table = UsageDay
    condition = rows.of_project(
        table, project_id, table.day >= window.start, table.day < window.end
    )
    until = measured_at(connection) or 0
    seconds = sa.case((table.since < until, until - table.since), else_=0)
    columns = sa.inspect(table).columns
    reserved, used, late = (
        columns[name] + columns[f'{name}_rate'] * seconds for name in SUMS
    )
    # The reservations that had a server on any of the days. SQLite would scan
    # the result of a DISTINCT again for each joined row, and makes an index of
    # the result of a GROUP BY.
    shown = (
        sa.select(table.reservation_id)
        .where(condition, used > 0).group_by(table.reservation_id).subquery()
    )
    groups = [
        (
            sa.case((table.lease_id == '', ''), else_=table.reservation_id)
            if name == 'reservation_id' else columns[name]
        ).label(name)
        for name in (*group_by, 'resource_class')
    ]
    found = connection.execute(
        sa.select(
            *groups,
            *(sa.func.sum(value).label(name) for name, value in (
                ('reserved', reserved), ('used', used),
                ('idle', reserved - used),
                ('no_show', sa.case(
                    (shown.c.reservation_id.is_(None), reserved), else_=0
                )),
                ('late', late), ('refused', table.refused),
            )),
        )
        .select_from(table)
        .outerjoin(shown, shown.c.reservation_id == table.reservation_id)
        .where(condition)
        .group_by(*groups).limit(usage.MAX_ROWS + 1)
    ).mappings().all()
    if len(found) > usage.MAX_ROWS:
        raise exception.InvalidInput(
            f'the report would have more than {usage.MAX_ROWS} rows: group '
            'by less, or shorten the window', field='group_by',
        )
    names = [*group_by, 'resource_class']
    return sorted(
        (
            {
                **row, **{name: int(row[name]) for name in FIGURES},
                **({'day': _date(row['day'])} if 'day' in group_by else {}),
            }
            for row in found
        ),
        key=operator.itemgetter(*names),
    )


def _date(day: int) -> str:
    at = datetime.datetime.fromtimestamp(day, datetime.UTC)
    return at.date().isoformat()


def of_day(
    connection: sa.Connection, day: int, after: str, limit: int
) -> list[list[Usage]]:
    """Return the usages on a day by reservation, in the order of the ids.

    :param after: the id before the first
    :param limit: the maximum number of reservations
    """
    ids = connection.scalars(
        sa.select(UsageDay.reservation_id)
        .where(
            UsageDay.day == day, UsageDay.reservation_id > after,
            UsageDay.lease_id != '',
        )
        .distinct().order_by(UsageDay.reservation_id).limit(limit)
    ).all()
    found = _select(connection, sa.and_(
        UsageDay.day == day, UsageDay.reservation_id.in_(ids)
    ))
    return [list(each) for _, each in itertools.groupby(found, _RESERVATION)]


def reserved(
    connection: sa.Connection, project_id: str, first: int, now: int
) -> Counter[str]:
    """Return what a project has reserved up to now, by resource class.

    :param first: what was reserved on the days that start before is left out
    :returns: amount x seconds
    """
    table, seen = ReservedDay, measured_at(connection) or 0
    found: Counter[str] = Counter()
    for name, amount in connection.execute(
        sa.select(table.resource_class, sa.func.sum(table.reserved))
        .where(table.project_id == project_id, table.day >= first)
        .group_by(table.resource_class)
    ):
        found[name] += int(amount)
    # What is not closed, or has ended since the last measurement.
    for each in _held(
        connection, seen, now, models.Lease.project_id == project_id
    ):
        found.update(each.reserved(max(first, each.since(seen)), now))
    return found


def reserved_now(connection: sa.Connection) -> Counter[tuple[str, ...]]:
    """Return the amounts that were reserved at the last measurement.

    :returns: the amounts by project and resource class
    """
    seen = measured_at(connection) or 0
    found = connection.execute(
        sa.select(
            UsageDay.project_id, UsageDay.resource_class,
            sa.func.sum(UsageDay.reserved_rate),
        )
        .where(UsageDay.day >= seen - seen % DAY, _OPEN)
        .group_by(UsageDay.project_id, UsageDay.resource_class)
    )
    return Counter({
        (project, name): int(amount) for project, name, amount in found
    })


GAUGES = {
    Metric(
        prometheus_client.Gauge, 'blazar_sched_manager_reserved',
        'Amount that the leases of each project had reserved when the usage '
        'was measured last, by resource class; every manager reports the same '
        'number',
        ('project_id', 'resource_class'),
    ): reserved_now,
}


def _select(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> list[Usage]:
    """Return usages, those of a reservation one after another."""
    columns = sa.inspect(UsageDay).columns
    found = connection.execute(
        sa.select(*(columns[name] for name in Usage.__slots__))
        .where(condition)
        .order_by(
            UsageDay.reservation_id, UsageDay.day, UsageDay.resource_class
        )
    )
    return list(itertools.starmap(Usage, found))
