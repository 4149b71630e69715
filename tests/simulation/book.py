# SPDX-License-Identifier: Apache-2.0
"""The reservations as the ledger showed them over time.

The promises about servers use these reservations and the history of the cloud,
never the accounting of the service.
"""

import collections
import dataclasses

from blazar_sched.domain import event
from blazar_sched.domain import states
from blazar_sched.domain.demand import INSTANCE_LIFETIME
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.reservation import LEAVABLE

_OVER = (states.LEASE_DELETING, states.LEASE_TERMINATED)


@dataclasses.dataclass
class LeaseRequests:
    """The lease requests as they were seen.

    :ivar asked: the project and the body of each request, by key
    :ivar seen: the status and the lease of each request at the last look, by
        id
    :ivar estimates: the estimate in the first response, by id
    :ivar booked: the start of the lease when it was booked, by id
    """

    asked: dict = dataclasses.field(default_factory=dict)
    seen: dict = dataclasses.field(default_factory=dict)
    estimates: dict = dataclasses.field(default_factory=dict)
    booked: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Series:
    """The series as they were seen.

    :ivar asked: the project and the body of each request, by key
    :ivar keys: the key of each series, by id
    :ivar seen: the occurrences of each series that had a lease, by id
    :ivar covered: the occurrences of each series up to which the series was
        booked, by id
    :ivar faulty: the ids of the series that no manager can book any more
    """

    asked: dict = dataclasses.field(default_factory=dict)
    keys: dict = dataclasses.field(default_factory=dict)
    seen: dict = dataclasses.field(
        default_factory=lambda: collections.defaultdict(set)
    )
    covered: dict = dataclasses.field(
        default_factory=lambda: collections.defaultdict(set)
    )
    faulty: set = dataclasses.field(default_factory=set)

    def roll_on(self, book, series, now):
        """Book the next leases of a series, unless the series is faulty."""
        if series.id in self.faulty:
            raise RuntimeError(f'the series {series.id} is faulty')
        book(series, now)


@dataclasses.dataclass
class Spares:
    """What was seen of spare hosts.

    :ivar spare: the uuids of the spare hosts at the last look
    :ivar held: each reservation with each of its hosts at the last look
    :ivar bereft: the ids of the reservations that have lost a host
    """

    spare: set = dataclasses.field(default_factory=set)
    held: set = dataclasses.field(default_factory=set)
    bereft: set = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Reservation:
    """A reservation as it was last seen.

    :ivar projects: all projects that could ever use the reservation
    :ivar nodes: the hostnames of all hosts that it ever had
    :ivar start: the start of the lease; `end` is the end of the lease
    :ivar over_at: when the reservation was over, None if it is not
    :ivar gone: whether the reservation was deleted from the ledger
    :ivar opened: whether the reservation was ever active
    :ivar told_of: the end to which the next two fields refer
    :ivar notice: when that end was first to be announced
    :ivar noticed_at: when the announcement was first seen done
    :ivar trouble: whether an event of the lease was given up
    :ivar leavable: the uuids of the hosts that the reservation can leave
    """

    id: str
    lease_id: str
    project_id: str
    resource_type: str
    added_at: int
    start: int = 0
    end: int = 0
    status: str = ''
    lease_status: str = ''
    projects: set = dataclasses.field(default_factory=set)
    nodes: set = dataclasses.field(default_factory=set)
    on_end: str = ''
    before_end: str = ''
    magnetic: bool = False
    instance_id: str | None = None
    over_at: int | None = None
    gone: bool = False
    opened: bool = False
    told_of: int | None = None
    notice: int | None = None
    noticed_at: int | None = None
    trouble: bool = False
    leavable: set = dataclasses.field(default_factory=set)

    def is_over(self, at):
        return self.end <= at or self.over_at is not None

    def owns(self, server, arrived):
        """Tell whether a server belongs to the reservation.

        The server has a hint, of a project that may use the reservation; or it
        came without a hint to a whole host of its project, in the window.

        :param arrived: when the server came to its host
        """
        if self.resource_type == INSTANCE_LIFETIME:
            return server.uuid == self.instance_id
        if server.reservation_id is not None:
            return (
                server.reservation_id == self.id
                and server.project_id in self.projects
            )
        return (
            self.resource_type == PHYSICAL_HOST
            and not server.preemptible
            and server.project_id == self.project_id
            and server.node in self.nodes
            and self.start <= arrived < self.end
            and (self.over_at is None or arrived <= self.over_at)
        )


class Book:
    """All reservations that ever existed, by id.

    :param ledger: has the current reservations
    """

    def __init__(self, ledger):
        self.reservations = {}
        # The current leases, by id.
        self.leases = {}
        # The current allocations, by id: `domain.allocation.Allocation`.
        self.allocations = {}
        # The records of servers, by uuid: `domain.instance.Instance`.
        self.instances = {}
        # The closed windows of each host, by its uuid.
        self.closed = {}
        # The time of the last `look`.
        self.at = 0
        self._ledger = ledger

    def look(self, now, nodes):
        """Read the current reservations.

        :param nodes: the hostnames by uuid
        """
        self.at = now
        there = set()
        self.leases = {lease.id: lease for lease in self._ledger.leases()}
        for lease in (*self.leases.values(), *self._ledger.offers(None)):
            for r in lease.reservations:
                there.add(r.id)
                self._note(lease, r, now)
        for known in self.reservations.values():
            known.gone = known.id not in there
            if known.gone and known.over_at is None:
                known.over_at = min(now, known.end)
        self.instances = {i.uuid: i for i in self._ledger.instances()}
        self.closed = {
            host.uuid: host.closed_windows for host in self._ledger.hosts()
        }
        self.allocations = {}
        for allocation, _ in self._ledger.allocations():
            self.allocations[allocation.id] = allocation
            known = self.reservations[allocation.reservation_id]
            known.nodes.add(nodes[allocation.host])

    def of(self, server, arrived):
        """Yield the reservations to which a server belongs."""
        for known in self.reservations.values():
            if known.owns(server, arrived):
                yield known

    def _note(self, lease, r, now):
        known = self.reservations.get(r.id)
        if known is None:
            known = self.reservations[r.id] = Reservation(
                r.id, lease.id, lease.project_id, r.resource_type, now
            )
        was_active = known.lease_status == states.LEASE_ACTIVE
        known.lease_id = lease.id
        known.start, known.end = lease.start, lease.end
        known.status, known.lease_status = r.status, lease.status
        known.projects |= {lease.project_id, *r.projects}
        known.magnetic |= r.magnetic
        known.on_end = getattr(r.demand, 'on_end', r.on_end)
        known.before_end = r.demand.before_end
        known.leavable = set(r.made.get(LEAVABLE, ()))
        known.instance_id = getattr(r.demand, 'instance_id', None)
        known.opened |= r.status == states.RESERVATION_ACTIVE
        known.trouble |= any(
            e.status == states.EVENT_ERROR
            and not (was_active and e.event_type == event.START_LEASE)
            for e in lease.events
        )
        self._note_notice(lease, known, now)
        if lease.status in _OVER or lease.end <= now:
            if known.over_at is None:
                known.over_at = min(now, lease.end)
        else:
            known.over_at = None

    def _note_notice(self, lease, known, now):
        """Record when an end was first to be announced, and was announced.

        The end may be announced again for an added reservation: the actions of
        the other reservations stay done.
        """
        if known.told_of != lease.end:
            known.told_of = lease.end
            known.notice = known.noticed_at = None
        for e in lease.events:
            if e.event_type != event.BEFORE_END_LEASE:
                continue
            known.notice = min(e.time, known.notice or e.time)
            if e.status == states.EVENT_DONE and known.added_at < now:
                known.noticed_at = known.noticed_at or now
