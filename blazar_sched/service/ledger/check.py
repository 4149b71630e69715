# SPDX-License-Identifier: Apache-2.0
"""Consistency checks of the ledger, made without the timeline index.

The index is not used because these checks are what the index is verified
against. Every row is examined, by a number of queries that does not depend on
the number of rows.
"""

from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterator
import itertools
import operator

import sqlalchemy as sa

from blazar_sched.domain import allocation
from blazar_sched.domain import event
from blazar_sched.domain import states
from blazar_sched.domain import window
from blazar_sched.domain.host import Host
from blazar_sched.service import parts
from blazar_sched.service.ledger import access
from blazar_sched.service.ledger import change
from blazar_sched.service.ledger import models
from blazar_sched.service.ledger import off_hosts
from blazar_sched.service.ledger.allocation import from_row
from blazar_sched.service.ledger.host import list_ as list_hosts
from blazar_sched.service.ledger.models import Allocation
from blazar_sched.service.ledger.models import Change
from blazar_sched.service.ledger.models import Event
from blazar_sched.service.ledger.models import Instance
from blazar_sched.service.ledger.models import Lease
from blazar_sched.service.ledger.models import Reservation

_UNFINISHED = (states.EVENT_UNDONE, states.EVENT_IN_PROGRESS)
_FINISHED = (states.EVENT_DONE, states.EVENT_ERROR)
# The number of rows fetched at a time where there may be millions of rows.
_BATCH = 5000


def check(connection: sa.Connection, now: int | None = None) -> list[str]:
    """Return the inconsistencies of all rows, one line each.

    :param now: the allocations that end after now must fit on their hosts, as
        a reservation may have grown in place of one that is over. None if all
        allocations must fit; parts then take everything for over
    """
    of_parts = parts.each('models', 'check', off_hosts.running(connection))
    at = window.FOREVER if now is None else now
    return [
        *_orphans(connection), *_inconsistent(connection),
        *_over_commitments(connection, 0 if now is None else now),
        *_gaps(connection),
        *(line for check in of_parts for line in check(connection, at)),
    ]


def _orphans(connection: sa.Connection) -> Iterator[str]:
    """Yield a line for every row whose foreign key has no target."""
    there = sa.inspect(connection).get_table_names()
    for table in models.Base.metadata.sorted_tables:
        if table.name not in there:
            # The table of a part that does not run.
            continue
        for constraint in table.foreign_keys:
            child, parent = constraint.parent, constraint.column
            found = connection.execute(
                sa.select(child, *table.primary_key)
                .outerjoin(parent.table, child == parent)
                .where(child.is_not(None), parent.is_(None))
            )
            for missing, *key in found:
                yield (
                    f'{table.name} {"/".join(key)}: there is no '
                    f'{parent.table.name} {missing}'
                )


def _has_event(
    event_type: str, statuses: Collection[str] = ()
) -> sa.ColumnElement[bool]:
    """Match leases with an event of a type, in `statuses` if given."""
    found = sa.exists().where(
        Event.lease_id == Lease.id, Event.event_type == event_type
    )
    return found.where(Event.status.in_(statuses)) if statuses else found


_IN_PROGRESS = Event.status == states.EVENT_IN_PROGRESS
_CLAIM = (Event.owner, Event.token, Event.until)

_Fault = tuple[sa.Executable, str]


def _allocation_faults(model: type[models.Base]) -> tuple[_Fault, ...]:
    """Return the faults of allocations, whatever resource is allocated."""
    held = model.__table__.c
    return (
        (
            sa.select(
                held.id, held.start, held.end,
                Lease.start.label('lease_start'), Lease.end.label('lease_end'),
            )
            .join(Reservation, Reservation.id == held.reservation_id)
            .join(Lease)
            .where(
                sa.or_(
                    held.end <= held.start, held.start < Lease.start,
                    held.end > Lease.end,
                )
            ),
            f'{model.__tablename__} {{id}}: from {{start}} to {{end}}, its'
            ' lease is from {lease_start} to {lease_end}',
        ),
        (
            sa.select(
                held.id, Reservation.status, Lease.status.label('lease_status')
            )
            .join(Reservation, Reservation.id == held.reservation_id)
            .join(Lease)
            .where(
                sa.or_(
                    Lease.status == states.LEASE_TERMINATED,
                    Reservation.status == states.RESERVATION_DELETED,
                )
            ),
            f'{model.__tablename__} {{id}}: left, its reservation is '
            '{status} and its lease {lease_status}',
        ),
    )


def _off_hosts_faults(kind: off_hosts.OffHosts) -> tuple[_Fault, ...]:
    """Return the faults of allocations of resources not on hosts."""
    held, other = kind.table.c, kind.table.alias().c
    name = kind.resource
    return (
        *_allocation_faults(kind.allocation),
        (
            sa.select(held[name], held.id, other.id.label('other')).where(
                other[name] == held[name], other.id > held.id,
                other.start < held.end, other.end > held.start,
            ),
            f'{name.removesuffix("_id")} {{{name}}}: {{id}} and {{other}} '
            'allocate it at once',
        ),
    )


# Queries that select faulty rows, each with the text that reports a row.
_FAULTS: tuple[_Fault, ...] = (
    (
        sa.select(Lease.id, Lease.start, Lease.end).where(
            Lease.end <= Lease.start
        ),
        'lease {id}: from {start} to {end}',
    ),
    (
        # While a lease is being deleted, and if its deletion fails, only its
        # end event is left.
        sa.select(Lease.id, Lease.status).where(
            Lease.status.not_in((
                states.LEASE_CREATING, states.LEASE_DELETING,
                states.LEASE_ERROR,
            )),
            ~_has_event(event.START_LEASE),
        ),
        'lease {id}: {status}, and has no start event',
    ),
    (
        sa.select(Lease.id, Lease.status).where(
            Lease.status != states.LEASE_CREATING, Lease.end != window.FOREVER,
            ~_has_event(event.END_LEASE),
        ),
        'lease {id}: {status}, and has no end event',
    ),
    (
        # A held offer lapses, and has no other event; no lease lapses.
        sa.select(Lease.id, Lease.status).where(
            (Lease.status == states.LEASE_CREATING)
            != _has_event(event.LAPSE_OFFER)
        ),
        'lease {id}: {status}, and must have the event lapse_offer only if it '
        'is CREATING',
    ),
    (
        sa.select(Lease.id, Lease.status).where(
            sa.or_(
                sa.and_(
                    Lease.status.in_(
                        (states.LEASE_PENDING, states.LEASE_STARTING)
                    ),
                    _has_event(event.START_LEASE, _FINISHED),
                ),
                sa.and_(
                    Lease.status.in_(
                        (states.LEASE_TERMINATING, states.LEASE_DELETING)
                    ),
                    _has_event(event.END_LEASE, _FINISHED),
                ),
            )
        ),
        'lease {id}: {status}, though its event is over',
    ),
    (
        sa.select(Event.lease_id, Event.event_type, sa.func.count().label('n'))
        .group_by(Event.lease_id, Event.event_type)
        .having(sa.func.count() > 1),
        'lease {lease_id}: {n} events {event_type}',
    ),
    (
        sa.select(
            Lease.series_id, Lease.occurrence, sa.func.count().label('n')
        )
        .where(Lease.series_id.is_not(None))
        .group_by(Lease.series_id, Lease.occurrence)
        .having(sa.func.count() > 1),
        'series {series_id}: {n} leases of the occurrence {occurrence}',
    ),
    (
        sa.select(
            Event.id, Event.event_type, Event.time, Lease.start, Lease.end
        )
        .join(Lease)
        .where(
            # The deletion of a lease moves its end event.
            Lease.status.in_((states.LEASE_PENDING, states.LEASE_ACTIVE)),
            sa.or_(
                sa.and_(
                    Event.event_type != event.VACATE_HOSTS,
                    Event.time < Lease.start,
                ),
                Event.time > Lease.end,
                sa.and_(
                    Event.event_type == event.START_LEASE,
                    Event.time != Lease.start,
                ),
                sa.and_(
                    Event.event_type == event.END_LEASE,
                    Event.time != Lease.end,
                ),
            ),
        ),
        'event {id}: {event_type} at {time}, its lease is from {start} to'
        ' {end}',
    ),
    (
        sa.select(Event.id).where(
            _IN_PROGRESS, sa.or_(*(column.is_(None) for column in _CLAIM))
        ),
        'event {id}: in progress without a claim',
    ),
    (
        sa.select(Event.id, Event.status).where(
            ~_IN_PROGRESS, sa.or_(*(column.is_not(None) for column in _CLAIM))
        ),
        'event {id}: {status}, and has a claim',
    ),
    (
        sa.select(
            Reservation.id, Reservation.status,
            Lease.status.label('lease_status'),
        )
        .join(Lease)
        .where(
            sa.or_(
                sa.and_(
                    Lease.status == states.LEASE_PENDING,
                    Reservation.status != states.RESERVATION_PENDING,
                ),
                sa.and_(
                    Lease.status == states.LEASE_TERMINATED,
                    Reservation.status != states.RESERVATION_DELETED,
                ),
            )
        ),
        'reservation {id}: {status}, its lease is {lease_status}',
    ),
    *_allocation_faults(Allocation),
    (
        sa.select(Instance.uuid, Instance.claim)
        .outerjoin(Reservation, Reservation.id == Instance.claim)
        .where(Instance.claim.is_not(None), Reservation.id.is_(None)),
        'instance {uuid}: there is no reservation {claim}',
    ),
)


def _inconsistent(connection: sa.Connection) -> Iterator[str]:
    of_parts = map(_off_hosts_faults, off_hosts.kinds(connection))
    for query, text in itertools.chain(_FAULTS, *of_parts):
        for row in connection.execute(query):
            yield text.format_map(row._mapping)


def _over_commitments(connection: sa.Connection, now: int) -> Iterator[str]:
    hosts = {host.uuid: host for host in list_hosts(connection)}
    found = connection.execute(
        sa.select(Allocation)
        .where(Allocation.end > now)
        .order_by(Allocation.host),
        execution_options={'yield_per': _BATCH},
    )
    allocations = map(from_row, found)
    for uuid, held in itertools.groupby(
        allocations, operator.attrgetter('host')
    ):
        if uuid in hosts:
            yield from _judge(hosts[uuid], list(held))


def _judge(
    host: Host, allocations: list[allocation.Allocation]
) -> Iterator[str]:
    """Yield a line for each over-commitment of a host.

    The allocations are added up at every instant at which an allocation
    starts.
    """
    steps = [
        *((a.start, 1, a) for a in allocations),
        *((a.end, -1, a) for a in allocations),
    ]
    steps.sort(key=operator.itemgetter(0))
    count = whole = 0
    used: dict[str, int] = defaultdict(int)
    for at, together in itertools.groupby(steps, operator.itemgetter(0)):
        starts = False
        for _, sign, held in together:
            starts = starts or sign > 0
            count += sign
            whole += sign * held.whole
            for resource_class, amount in held.amounts.items():
                used[resource_class] += sign * amount
        if not starts:
            continue
        if whole and count > 1:
            yield (
                f'host {host.uuid}: {count} allocations at {at}, '
                f'{whole} of them of the whole host'
            )
        for resource_class, amount in sorted(used.items()):
            known = host.inventory.get(resource_class)
            total = 0 if known is None else known.capacity
            if amount > total:
                yield (
                    f'host {host.uuid}: {amount} of {total} '
                    f'{resource_class} allocated at {at}'
                )


def _gaps(connection: sa.Connection) -> Iterator[str]:
    """Compare the stored changes with the ledger's revision."""
    _, newest = change.newest(connection)
    first, last, count = connection.execute(
        sa.select(
            sa.func.min(Change.revision), sa.func.max(Change.revision),
            sa.func.count(Change.revision.distinct()),
        )
    ).one()
    if count and last != newest:
        yield f'ledger: at revision {newest}, the newest change is of {last}'
    if count and count != last - first + 1:
        yield (
            f'changes: of the revisions {first} to {last} there are only '
            f'{count}'
        )
    cut = (
        sa.select(Change.revision)
        .group_by(Change.revision)
        .having(sa.func.count() != sa.func.max(Change.position) + 1)
    )
    for revision in connection.scalars(cut):
        yield f'changes: revision {revision} is not whole'


class Reads(access.Reads):
    """The query for inconsistencies."""

    check = access.read(check)
