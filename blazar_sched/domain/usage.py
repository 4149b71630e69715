# SPDX-License-Identifier: Apache-2.0
"""The usage of reservations: what is reserved, used and lent, by day.

An amount of a resource class is multiplied by the seconds for which it is
reserved, used or lent. The class HOST counts whole hosts.
"""

from collections import Counter
from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import datetime
import itertools
import operator
import uuid

from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.demand import Addresses
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.lending import Lending
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from blazar_sched.domain.window import Window

HOST = 'HOST'
FLOATING_IP = 'FLOATING_IP'
DAY = 86400
# The most days of a report, and the days of a report without a start.
MAX_DAYS, DEFAULT_DAYS = 366, 30
# By what a report can be grouped; the resource class is always told.
GROUPS = (
    'project_id', 'lease_id', 'reservation_id', 'resource_type', 'flavor',
    'product', 'day',
)
# The figures of a row of a report.
FIGURES = (
    'reserved', 'used', 'idle', 'lent', 'no_show', 'late', 'refused',
)
# The most rows of a report.
MAX_ROWS = 10_000

# The namespace of the ids of usages of what was refused.
_REFUSED = uuid.UUID('5e0a1d8e-7c1c-4f5b-9d38-0b6f2f4f5c11')
_RESERVATION = operator.attrgetter('reservation_id')

# Amounts by resource class.
Amounts = Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a reservation on one day.

    :param day: the start of the day in UTC, epoch seconds
    :param flavor: the id of the flavor of the instances, '' for none
    :param product: the product of the reservation, '' for none
    :param reserved: amount x seconds by resource class
    :param used: the same of the servers in the reservation
    :param lent: the same of what the reservation has lent
    :param late: seconds for which the start was due and not done
    :param until: when the usage was measured last, epoch seconds
    :param refused: amount x seconds of the leases that were refused on the
        day; only in a usage without a lease, see `refused`
    """

    reservation_id: str
    day: int
    lease_id: str
    project_id: str
    resource_type: str
    flavor: str
    product: str
    reserved: Amounts
    used: Amounts
    lent: Amounts
    late: int
    until: int
    refused: Amounts | None = None

    def plus(self, later: 'Usage') -> 'Usage':
        """Return the sum of two measurements of one day."""
        return dataclasses.replace(
            self,
            reserved=_sum(self.reserved, later.reserved),
            used=_sum(self.used, later.used),
            lent=_sum(self.lent, later.lent),
            late=self.late + later.late,
            until=later.until,
            refused=_sum(self.refused or {}, later.refused or {}),
        )


def measure(
    lease: Lease,
    reservation: Reservation,
    held: Iterable[Allocation],
    servers: Iterable[Instance],
    capacities: Mapping[str, Amounts],
    measured: Window,
) -> Iterator[Usage]:
    """Yield the usage of a reservation within a window, by day.

    :param held: the allocations of the reservation, also those that are over
    :param servers: the servers that were in the reservation all the time
    :param capacities: the capacities of the hosts of `held`, by the uuids
    """
    allocations, used = list(held), _used(servers)
    lent = Lending.decode(reservation.made).lent
    for part in _days(measured, lease.window):
        seconds = part.end - part.start
        reserved: Counter[str] = Counter()
        lent_by_class: Counter[str] = Counter()
        for each in allocations:
            overlap = min(each.end, part.end) - max(each.start, part.start)
            if overlap <= 0:
                continue
            amounts = capacities.get(each.host, {}) if each.whole else (
                each.amounts
            )
            whole = {HOST: 1, **amounts} if each.whole else amounts
            unit = whole if each.whole else reservation.demand.slot
            _add(reserved, whole, overlap)
            _add(lent_by_class, unit, overlap * lent.get(each.host, 0))
        if isinstance(reservation.demand, Addresses):
            reserved[FLOATING_IP] = reservation.demand.amount * seconds
        if reserved:
            is_late = reservation.status == states.RESERVATION_PENDING
            yield Usage(
                reservation.id, part.start - part.start % DAY, lease.id,
                *_kind(lease, reservation), reserved,
                {c: used.get(c, 0) * seconds for c in reserved},
                lent_by_class, seconds if is_late else 0, measured.end,
            )


def refused(lease: Lease, now: int) -> Iterator[Usage]:
    """Yield what a lease has asked for that is refused, by reservation.

    The usages of one project, resource type, flavor and product have one id,
    so that there are few of them, however many leases are refused. A whole
    host counts as HOST alone, and a lease without an end as one of
    DEFAULT_DAYS.

    :param now: epoch seconds
    """
    seconds = (
        DEFAULT_DAYS * DAY if lease.end == FOREVER else lease.window.duration
    )
    for each in lease.reservations:
        demand = each.demand
        kind = _kind(lease, each)
        amounts = {HOST: 1} if demand.whole else demand.slot
        if isinstance(demand, Addresses):
            amounts = {FLOATING_IP: 1}
        yield Usage(
            str(uuid.uuid5(_REFUSED, '\n'.join(kind))), now - now % DAY, '',
            *kind, {}, {}, {}, 0, now,
            {c: n * demand.least * seconds for c, n in amounts.items()},
        )


def _kind(
    lease: Lease, reservation: Reservation
) -> tuple[str, str, str, str]:
    """Return the project, resource type, flavor and product of a usage."""
    flavor = reservation.demand.encode().get('flavor_id') or ''
    return (
        lease.project_id, reservation.resource_type, flavor,
        reservation.product,
    )


def sums(
    usages: Iterable[Usage], group_by: Collection[str]
) -> dict[tuple[str, ...], Counter[str]]:
    """Return sums of usages, by group and resource class.

    The usages of one reservation are held at a time.

    :param usages: the usages, those of a reservation one after another
    :param group_by: some of GROUPS
    :raises InvalidInput: for more than MAX_ROWS sums
    """
    found: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for _, days in itertools.groupby(usages, _RESERVATION):
        of_one = list(days)
        is_shown = any(any(each.used.values()) for each in of_one)
        for each in of_one:
            group = [_shown(each, name) for name in group_by]
            for name, reserved in each.reserved.items():
                used = min(reserved, each.used.get(name, 0))
                row = found[*group, name]
                row['reserved'] += reserved
                row['used'] += used
                row['idle'] += reserved - used
                row['lent'] += each.lent.get(name, 0)
                row['no_show'] += 0 if is_shown else reserved
                row['late'] += each.late
            for name, asked in (each.refused or {}).items():
                found[*group, name]['refused'] += asked
        if len(found) > MAX_ROWS:
            raise exception.InvalidInput(
                f'the report would have more than {MAX_ROWS} rows: group by '
                'less, or shorten the window', field='group_by',
            )
    return found


def _shown(each: Usage, name: str) -> str:
    """Return an attribute of a usage as a report shows it."""
    if name == 'reservation_id' and not each.lease_id:
        return ''
    value: str | int = getattr(each, name)
    if isinstance(value, str):
        return value
    day = datetime.datetime.fromtimestamp(value, datetime.UTC)
    return day.date().isoformat()


def _days(measured: Window, lease: Window) -> Iterator[Window]:
    """Yield the common part of two windows, cut at the ends of days."""
    start = max(measured.start, lease.start)
    end = min(measured.end, lease.end)
    while start < end:
        midnight = start - start % DAY + DAY
        yield Window(start, min(midnight, end))
        start = midnight


def _used(servers: Iterable[Instance]) -> Counter[str]:
    used: Counter[str] = Counter()
    hosts = set()
    for each in servers:
        _add(used, each.amounts, 1)
        hosts.add(each.host)
    used[HOST] = len(hosts)
    return used


def _add(sums: Counter[str], amounts: Amounts, times: int) -> None:
    if times:
        for resource_class, amount in amounts.items():
            sums[resource_class] += amount * times


def _sum(one: Amounts, other: Amounts) -> dict[str, int]:
    return {
        c: one.get(c, 0) + other.get(c, 0) for c in sorted({*one, *other})
    }
