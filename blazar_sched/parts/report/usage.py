# SPDX-License-Identifier: Apache-2.0
"""The usage of reservations: what is reserved and used, by day.

An amount of a resource class is multiplied by the seconds for which it is
reserved or used. The class HOST counts whole hosts. The usage of a
reservation has sums up to a time, and the rates since then: a reservation of
which nothing changes is written once a day.
"""

from collections import Counter
from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import uuid

from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER

HOST = 'HOST'
FLOATING_IP = 'FLOATING_IP'
# The resource type that another part has.
_FLOATING_IPS = 'virtual:floatingip'
DAY = 86400
# The most days of a report, and the days of a report without a start.
MAX_DAYS, DEFAULT_DAYS = 366, 30
# By what a report can be grouped; the resource class is always told.
GROUPS = (
    'project_id', 'lease_id', 'reservation_id', 'resource_type', 'flavor',
    'product', 'day',
)
# The figures of a row of a report.
FIGURES = ('reserved', 'used', 'idle', 'no_show', 'late', 'refused')
# The most rows of a report.
MAX_ROWS = 10_000

# The namespace of the ids of usages of what was refused.
_REFUSED = uuid.UUID('5e0a1d8e-7c1c-4f5b-9d38-0b6f2f4f5c11')

# The sums of a usage, each of which grows by a rate.
SUMS = ('reserved', 'used', 'late')

# Amounts by resource class.
Amounts = Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a resource class by a reservation on one day.

    :param day: the start of the day in UTC, epoch seconds
    :param flavor: the id of the flavor of the instances, '' for none
    :param product: the product of the reservation, '' for none
    :param reserved: amount x seconds up to `since`
    :param used: the same of the servers in the reservation
    :param late: seconds for which the start was due and not done
    :param refused: amount x seconds of the leases that were refused on the
        day; only in a usage without a lease, see `refused`
    :param since: from when on the rates count, in epoch seconds
    :param reserved_rate: what is reserved since then; the other rates alike
    """

    reservation_id: str
    day: int
    resource_class: str
    lease_id: str
    project_id: str
    resource_type: str
    flavor: str
    product: str
    reserved: int = 0
    used: int = 0
    late: int = 0
    refused: int = 0
    since: int = 0
    reserved_rate: int = 0
    used_rate: int = 0
    late_rate: int = 0

    @property
    def shares(self) -> tuple[int, int]:
        """What is used since `since`, and 1 if the start is late."""
        return self.used_rate, self.late_rate

    def plus(
        self, reserved: int, shares: tuple[int, int], since: int
    ) -> 'Usage':
        """Return the usage with further sums up to a time, without rates."""
        used, late = shares
        return dataclasses.replace(
            self, reserved=self.reserved + reserved, used=self.used + used,
            late=self.late + late, since=since, reserved_rate=0, used_rate=0,
            late_rate=0,
        )

    def closed(self, at: int) -> 'Usage':
        """Return the usage up to a time, from which on nothing is reserved."""
        seconds = max(0, at - self.since)
        amount = self.reserved_rate * seconds
        return self.plus(
            amount, _bounded(self.shares, amount, seconds), max(at, self.since)
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """A reservation, and all from which its usage follows.

    :param start: the start of the lease
    :param end: the end of the lease
    :param allocations: those of the reservation, also those that are over
    :param servers: the servers that are in the reservation
    :param capacities: the capacities of the whole hosts, by uuid
    :param known: the usages of the last days of the reservation
    """

    reservation: Reservation
    project_id: str
    start: int
    end: int
    allocations: Sequence[Allocation]
    servers: Sequence[Instance]
    capacities: Mapping[str, Amounts]
    known: Sequence[Usage]

    def since(self, seen: int) -> int:
        """Return up to when the usage is known.

        :param seen: when all usage was measured last
        """
        return max((each.since for each in self.known), default=seen)

    def reserved(self, start: int, end: int) -> Counter[str]:
        """Return the amounts x seconds that were reserved within a window."""
        start, end = max(start, self.start), min(end, self.end)
        found: Counter[str] = Counter()
        for each in self.allocations:
            seconds = min(each.end, end) - max(each.start, start)
            if seconds > 0:
                _add(
                    found, self._whole(each) if each.whole else each.amounts,
                    seconds,
                )
        demand = self.reservation.demand
        if demand.resource_type == _FLOATING_IPS and start < end:
            found[FLOATING_IP] = demand.least * (end - start)
        return found

    def measure(
        self, seen: int, now: int, is_deleted: bool = False
    ) -> list[Usage]:
        """Return the usages of the last days up to now.

        What is reserved is exact. The servers that are found now, and whether
        the start is late, count since all usage was measured last.
        The servers of a lease that has ended meanwhile are those before.

        :param seen: when all usage was measured last
        :param is_deleted: whether the reservation is about to be deleted: the
            servers that have left since `seen` do not count
        :returns: `known` if nothing has changed but the time
        """
        since, today = self.since(seen), now - now % DAY
        open_ = {k.resource_class: k for k in self.known if k.reserved_rate}
        if now < since:
            return list(self.known)
        found, before = self._shares(), defaultdict(
            lambda: (0, 0), {name: k.shares for name, k in open_.items()}
        )
        after = {} if is_deleted else {
            name: (amount, *_bounded(found(name), amount, 1))
            for name, amount in self.reserved(now, now + 1).items() if amount
        }
        if (
            all(each.day == today for each in open_.values())
            and after == {
                name: (k.reserved_rate, *k.shares)
                for name, k in open_.items()
            }
            and self.reserved(since, now) == Counter({
                name: k.reserved_rate * (now - since)
                for name, k in open_.items()
            })
        ):
            return list(self.known)

        def meanwhile(name: str) -> tuple[int, int]:
            used, late = found(name)
            if now >= self.end:
                used, _ = before[name]
            return 0 if is_deleted else used, late

        new = {
            (k.day, k.resource_class): k.plus(0, (0, 0), now)
            for k in self.known
        }
        middle = min(max(since, seen), now)
        for first, last, shares in (
            *((*day, before.__getitem__) for day in self._days(since, middle)),
            *((*day, meanwhile) for day in self._days(middle, now)),
        ):
            for name, amount in self.reserved(first, last).items():
                if not amount:
                    continue
                key = first - first % DAY, name
                new[key] = self._at(new, *key).plus(
                    amount, _bounded(shares(name), amount, last - first), now
                )
        for name, (reserved, used, late) in after.items():
            new[today, name] = dataclasses.replace(
                self._at(new, today, name), since=now, reserved_rate=reserved,
                used_rate=used, late_rate=late,
            )
        return list(new.values())

    def _at(
        self, new: Mapping[tuple[int, str], Usage], day: int, name: str
    ) -> Usage:
        return new.get((day, name)) or Usage(
            self.reservation.id, day, name, self.reservation.lease_id,
            *_kind(self.project_id, self.reservation),
        )

    def _shares(self) -> Callable[[str], tuple[int, int]]:
        """Return what is used now, and 1 if the start is late."""
        used: Counter[str] = Counter()
        for server in self.servers:
            _add(used, server.amounts, 1)
        used[HOST] = len({server.host for server in self.servers})
        late = int(self.reservation.status == states.RESERVATION_PENDING)
        return lambda name: (used[name], late)

    def _days(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a window of the lease, cut at the ends of days.
        """
        start, end = max(start, self.start), min(end, self.end)
        while start < end:
            midnight = start - start % DAY + DAY
            yield start, min(midnight, end)
            start = midnight

    def _whole(self, allocation: Allocation) -> Amounts:
        return {HOST: 1, **self.capacities.get(allocation.host, {})}


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
        kind = _kind(lease.project_id, each)
        amounts = {HOST: 1} if demand.whole else demand.slot
        if demand.resource_type == _FLOATING_IPS:
            amounts = {FLOATING_IP: 1}
        id_ = str(uuid.uuid5(_REFUSED, '\n'.join(kind)))
        for name, amount in amounts.items():
            yield Usage(
                id_, now - now % DAY, name, '', *kind, since=now,
                refused=amount * demand.least * seconds,
            )


def _kind(
    project_id: str, reservation: Reservation
) -> tuple[str, str, str, str]:
    """Return the project, resource type, flavor and product of a usage."""
    flavor = reservation.demand.encode().get('flavor_id') or ''
    return project_id, reservation.resource_type, flavor, reservation.product


def _bounded(
    shares: tuple[int, int], reserved: int, seconds: int
) -> tuple[int, int]:
    """Return amounts x seconds, no more than what is reserved."""
    used, late = shares
    return min(reserved, used * seconds), late * seconds


def _add(sums: Counter[str], amounts: Amounts, times: int) -> None:
    if times:
        for resource_class, amount in amounts.items():
            sums[resource_class] += amount * times
