# SPDX-License-Identifier: Apache-2.0
"""Bars: what takes a share of a host over a window, for people."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import Host
from blazar_sched.domain.host import MAINTENANCE
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.window import Window
from blazar_sched.placing.options import Options
from blazar_sched.replica import accounting

# The kinds of bars.
LEASE = 'lease'
OFFER = 'offer'
CLEANING = 'cleaning'
SERVER = 'server'
RELOCATION = 'relocation'
PREEMPTIBLE = 'preemptible'
CLOSED = 'closed'
KINDS = (
    LEASE, OFFER, CLEANING, SERVER, RELOCATION, PREEMPTIBLE, MAINTENANCE,
    CLOSED,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Use:
    """An allocation, and the lease that has it."""

    allocation: Allocation
    resource_type: str
    lease_id: str
    project_id: str
    name: str
    status: str
    degraded: bool

    def bar(self, host: Host, resource_class: str | None) -> 'Bar':
        """Return the bar of the allocation on its host.

        :param resource_class: as in `share`
        """
        held = self.allocation
        return Bar(
            OFFER if self.status == states.LEASE_CREATING else LEASE,
            held.start, held.end,
            share(host, held.amounts, held.whole, resource_class),
            self.project_id, self.lease_id, held.reservation_id, self.name,
            self.status, self.degraded,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """What takes a share of a host, or of all hosts of a row, over a window.

    `project_id` is the project that the bar belongs to, '' for the bar of a
    closed host. A bar of a server has no lease.
    """

    kind: str
    start: int
    end: int
    share: float
    project_id: str
    lease_id: str | None = None
    reservation_id: str | None = None
    name: str | None = None
    status: str | None = None
    degraded: bool | None = None
    server_id: str | None = None

    def cleaning(self, seconds: int) -> 'Iterator[Bar]':
        """Yield the cleaning time before and after the bar of a lease."""
        if not seconds:
            return
        around = Window(self.start, self.end).widened(seconds)
        for start, end in ((around.start, self.start), (self.end, around.end)):
            if start < end:
                yield dataclasses.replace(
                    self, kind=CLEANING, start=start, end=end
                )


def widened(window: Window, hosts: Iterable[Host], options: Options) -> Window:
    """Return the window, with the cleaning time of leases beside it."""
    default = max((options.cleaning_time, *options.cleaning_times.values()))
    return window.widened(
        max((host.cleaning_seconds(default) for host in hosts), default=0)
    )


def bars_by_host(
    hosts: Mapping[str, Host], uses: Iterable[Use],
    instances: Iterable[Instance], window: Window, now: int, options: Options,
    resource_class: str | None = None,
) -> dict[str, list[Bar]]:
    """Return all bars of rows of one host each, by key of the row.

    :param hosts: the host of each row, by key
    :param uses: the allocations of these hosts in the widened window
    :param resource_class: as in `share`
    """
    bars = {
        key: list(_bars_of_closed(host, window)) for key, host in hosts.items()
    }
    by_uuid = {host.uuid: (host, bars[key]) for key, host in hosts.items()}
    for use in uses:
        host, own = by_uuid[use.allocation.host]
        bar = use.bar(host, resource_class)
        seconds = host.cleaning_seconds(
            options.cleaning_time_of(use.resource_type)
        )
        own += [
            each for each in (bar, *bar.cleaning(seconds))
            if each.start < window.end and window.start < each.end
        ]
    for instance in instances:
        for kind, uuid, start, end in _stays(instance, now):
            if uuid in by_uuid and start < window.end and window.start < end:
                host, own = by_uuid[uuid]
                own.append(Bar(
                    kind, max(start, window.start), end,
                    share(host, instance.amounts, False, resource_class),
                    instance.project_id, server_id=instance.uuid,
                ))
    return bars


def share(
    host: Host, amounts: Mapping[str, int], whole: bool,
    resource_class: str | None = None,
) -> float:
    """Return the share of a host that amounts take: 1 for the whole host.

    :param resource_class: the only resource class that counts; if None, that
        of which the largest part is taken
    """
    if whole:
        return 1
    found = 0.0
    for name, amount in amounts.items():
        if resource_class not in (None, name):
            continue
        if amount > 0 and name in host.inventory:
            capacity = host.capacity(name)
            found = max(found, amount / capacity if amount < capacity else 1)
    return found


def _bars_of_closed(host: Host, window: Window) -> Iterator[Bar]:
    """Yield the bars of the windows in which a host is closed."""
    for closed in host.closed_in(window):
        kind = MAINTENANCE if closed.kind == MAINTENANCE else CLOSED
        yield Bar(
            kind, max(closed.start, window.start), closed.end, 1, '',
            name=closed.name or None,
        )


def _stays(
    instance: Instance, now: int
) -> Iterator[tuple[str, str, int, int]]:
    """Yield the kind, the host, the start and the end of each stay."""
    if instance.preemptible:
        yield PREEMPTIBLE, instance.host, 0, instance.end
        return
    occupied = accounting.occupancy(instance, instance.leaves_at <= now)
    if occupied is not None:
        yield SERVER, instance.host, *occupied
        for stay in instance.relocations:
            yield RELOCATION, stay.host, stay.start, stay.end
