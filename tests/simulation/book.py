# SPDX-License-Identifier: Apache-2.0
"""What was promised of each reservation, as it was shown over time.

The promises about servers go by this and by what the cloud did, never by the
project's own accounting.
"""

import dataclasses

from blazar_sched.domain import event
from blazar_sched.domain import reservation
from blazar_sched.domain import states

_OVER = (states.LEASE_DELETING, states.LEASE_TERMINATED)


@dataclasses.dataclass
class Reservation:
    """A reservation as it was last seen.

    :ivar projects: all that could ever use it
    :ivar nodes: all that it ever had, by hostname
    :ivar start: of its lease, and so `end`
    :ivar over_at: since when it is over, None if it is not
    :ivar gone: whether it is not in the ledger any more
    :ivar opened: whether it was ever active
    :ivar told_of: the end that the next two are about
    :ivar notice: when that end was first to be told of
    :ivar noticed_at: when that was first seen done, after it was there
    :ivar trouble: whether something of its lease was given up
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

    def is_over(self, at):
        return self.end <= at or self.over_at is not None

    def owns(self, server, arrived):
        """Tell whether a server is one of its own.

        By a hint of a project that may use it; or by having come to a whole
        host of its own project's, in its window, without a hint.

        :param arrived: when it came to its host
        """
        if self.resource_type == reservation.INSTANCE_LIFETIME:
            return server.uuid == self.instance_id
        if server.reservation_id is not None:
            return (
                server.reservation_id == self.id
                and server.project_id in self.projects
            )
        return (
            self.resource_type == reservation.PHYSICAL_HOST
            and server.project_id == self.project_id
            and server.node in self.nodes
            and self.start <= arrived < self.end
            and (self.over_at is None or arrived <= self.over_at)
        )


class Book:
    """All reservations that there ever were, by id.

    :param ledger: says what is promised now
    """

    def __init__(self, ledger):
        self.reservations = {}
        # The leases that there are now, by id.
        self.leases = {}
        # What is allocated now, by id: `domain.allocation.Allocation`.
        self.allocations = {}
        # The time of the last look.
        self.at = 0
        self._ledger = ledger

    def look(self, now, nodes):
        """Read what is promised by now.

        :param nodes: the hostnames by uuid
        """
        self.at = now
        there = set()
        self.leases = {lease.id: lease for lease in self._ledger.leases()}
        for lease in self.leases.values():
            for r in lease.reservations:
                there.add(r.id)
                self._note(lease, r, now)
        for known in self.reservations.values():
            known.gone = known.id not in there
            if known.gone and known.over_at is None:
                known.over_at = min(now, known.end)
        self.allocations = {}
        for allocation, _ in self._ledger.allocations():
            self.allocations[allocation.id] = allocation
            known = self.reservations[allocation.reservation_id]
            known.nodes.add(nodes[allocation.host])

    def of(self, server, arrived):
        """Yield the reservations that a server is of."""
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
        known.on_end = r.parameters.get('on_end', r.on_end)
        known.before_end = r.parameters.get('before_end', '')
        known.instance_id = r.parameters.get('instance_id')
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
        """Note when an end is to be told of, for the first time, and was.

        It may be told of once more for a reservation that was added: what
        was done for the others stays done.
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
