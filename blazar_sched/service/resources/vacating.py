# SPDX-License-Identifier: Apache-2.0
"""Vacating: servers that must leave a host are notified, then removed.

Servers have to leave for a lease, or because the host will be closed.

A try sends Nova the requests that are due, for all servers at once, and waits
for none of them: the try is called again. The notice of a server is in the
metadata of the server, so that another manager respects the notice. The
requests sent to Nova are remembered in this process only, because each request
can be sent twice.
"""

from collections import Counter
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain import window
from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import Host
from blazar_sched.domain.host import IRONIC
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import lifetime_id
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.reservation import SHELVE
from blazar_sched.domain.reservation import SNAPSHOT
from blazar_sched.replica import server_reservation
from blazar_sched.replica.record import Reservation as ReservationRecord
from blazar_sched.service.bus.notifier import INSTANCE_VACATE
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.resources import preemption
from blazar_sched.service.resources.servers import Finder

LOG = log.getLogger(__name__)

# The metadata key of servers with the time at which the server has to go.
VACATE_AT = 'blazar_vacate_at'

# The actions as named in the options.
_LIVE_MIGRATE = 'live-migrate'
_SHELVE = 'shelve'
_DELETE = 'delete'

# The end actions after which a server, or a copy of the server, remains.
_LASTING = (SHELVE, SNAPSHOT)

# The statuses of a lease whose end is done, or was given up.
_OVER = (states.LEASE_TERMINATED, states.LEASE_ERROR)

# How often the other actions are tried before a server is deleted.
CHANCES = 3
# Seconds until all actions are requested once more of a server that stays, and
# the most seconds: the pause doubles once the server should be gone.
PAUSE = 60
MAX_PAUSE = 600
# A try ends after this many failures: each may have taken a timeout.
MAX_FAILURES = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """What servers have to leave their hosts for.

    :param id: what distinguishes the cause from all others
    :param name: the cause in the log
    :param start: when the servers have to be gone
    :param end: when the servers that are still there may stay
    :param begun: when the vacating begins, None if now
    :param details: what a notification says about the cause
    :param notice: seconds ahead at which servers are notified, None for
        ``vacate_notice``
    :param last_spared: servers of an open reservation are left alone until
        their reservation is over, if it is over by then; other servers of open
        reservations are never deleted
    """

    id: str
    name: str
    start: int
    end: int
    begun: int | None
    details: Mapping[str, str | None]
    last_spared: int = window.FOREVER
    notice: int | None = None


def for_lease(lease: Lease, reservation: Reservation) -> Cause:
    """Return the cause of vacating ahead of the start of a lease."""
    return Cause(
        reservation.id, f'lease {lease.id}', lease.start, lease.start,
        lease.vacate, {'lease_id': lease.id},
    )


def for_closing(host: Host, closed: ClosedWindow, lead_time: int) -> Cause:
    """Return the cause of vacating a host that will be closed.

    :param lead_time: seconds ahead of the start at which vacating begins
    """
    return Cause(
        f'{host.uuid} {closed.start} {closed.id}',
        f'maintenance {closed.id}' if closed.id else 'a host that goes',
        closed.start, closed.end, closed.start - lead_time,
        {
            'lease_id': None,
            'maintenance_id': closed.id,
            'reason': closed.reason,
        },
        last_spared=closed.start,
    )


def for_clearing(
    lease: Lease, reservation: Reservation, host: Host, at: int, notice: int
) -> Cause:
    """Return the cause of vacating what an active lease holds on a host.

    :param at: since when the host is waited for
    :param notice: seconds ahead at which servers are notified
    """
    return Cause(
        f'{reservation.id} {host.uuid} {at}', f'active lease {lease.id}', at,
        lease.end, at, {'lease_id': lease.id}, notice=notice,
    )


@dataclasses.dataclass(slots=True)
class _Course:
    """The progress of the vacating of a server.

    :param at: when the server has to go
    :param requested: how many of the steps have been requested
    :param last: when the last step was requested
    :param pause: seconds from the last step until the first step again
    """

    at: int
    requested: int = 0
    last: int = 0
    pause: int = PAUSE


class Vacater:
    """The vacater, which has servers leave hosts."""

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, nova: Nova,
        notifier: Notifier,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._nova = nova
        self._notifier = notifier
        self._servers = Finder(ledger, nova)
        # By the id of the cause: the cause, and the courses by server.
        self._courses: dict[str, tuple[Cause, dict[str, _Course]]] = {}

    def all_others(
        self, lease: Lease, reservation: Reservation, hosts: Sequence[Host],
        now: int,
    ) -> list[Server]:
        """Return the servers in the way of a reservation of whole hosts.

        These are all servers on the hosts, except the reservation's own
        servers and the servers that end by themselves before the start.
        """
        others = self._others(lease.start, hosts, now, reservation.id)
        return [server for servers in others.values() for server in servers]

    def all_on(self, host: Host, closed_from: int, now: int) -> list[Server]:
        """Return the servers that must leave a host that will be closed.

        These are all servers that do not end by themselves before.
        """
        return self._others(closed_from, [host], now)[host.uuid]

    def as_needed(
        self, lease: Lease, reservation: Reservation, hosts: Sequence[Host],
        now: int,
    ) -> list[Server]:
        """Return the servers in the way of a reservation of parts of hosts.

        The servers are as few as possible for all reservations on the hosts at
        the start to have their room; see `preemption.choose`.
        """
        at = max(lease.start, now)
        found = []
        others = self._others(lease.start, hosts, now, reservation.id)
        for host in hosts:
            held = [
                allocation
                for allocation, _ in self._ledger.allocations(
                    host=host.uuid, after=at
                )
                if allocation.start <= at
            ]
            inside = {allocation.reservation_id for allocation in held}
            beside = [
                server
                for server in others[host.uuid]
                # A server with an allocation for its own lifetime is in that
                # allocation.
                if inside.isdisjoint(
                    (
                        server.reservation_id,
                        lifetime_id(server.uuid),
                    )
                )
            ]
            taken: Counter[str] = Counter()
            for allocation in held:
                taken.update(allocation.amounts)
            for server in beside:
                taken.update(server.amounts)
            excess = {
                c: taken[c] - host.capacity(c)
                for c, amount in reservation.demand.slot.items()
                if amount
            }
            found += preemption.choose(
                beside, excess, now, preemption.preference(self._conf)
            )
        return found

    def to_clear(
        self, lease: Lease, reservation: Reservation, host: Host, now: int
    ) -> list[Server]:
        """Return the servers that use what an open reservation holds.

        :returns: the preemptible servers, as few as need be for what is
            reserved on the host; without those that the start has let stay
        """
        find = self.all_others if reservation.demand.whole else self.as_needed
        staying = reservation.made.get('in_the_way', ())
        return [
            server for server in find(lease, reservation, [host], now)
            if server.preemptible and server.uuid not in staying
            and not _must_stay(server)
        ]

    def _others(
        self, start: int, hosts: Sequence[Host], now: int,
        reservation_id: str | None = None,
    ) -> dict[str, list[Server]]:
        """Return the servers on hosts, by the uuids of the hosts.

        Excluded are the reservation's own servers, and the servers that end by
        themselves before the start; a server that is past its end has failed
        to end. Each server has the end, and the reservation that it draws on,
        as recorded in the ledger, or the reservation that has kept it.

        :param start: when the servers have to be gone
        """
        at = max(start, now)
        there = [
            (
                dataclasses.replace(
                    server, bare_metal=host.hypervisor_type == IRONIC
                ),
                host.uuid,
            )
            for host in hosts
            for server in self._nova.servers(host=host.service_name)
            if server.node == host.hypervisor_hostname
        ]
        own = set() if reservation_id is None else {
            s.uuid for s in self._servers.drawing(reservation_id, there)
        }
        others = [each for each in there if each[0].uuid not in own]
        found: dict[str, list[Server]] = {h.uuid: [] for h in hosts}
        known = {i.uuid: i for i in self._ledger.instances(found)}
        claims = self._claims(
            [each for each in others if each[0].uuid not in known], now
        )
        named = dict(self._reservations(
            [(server, server.reservation_id) for server, _ in others]
        ))
        for server, host_uuid in others:
            record = known.get(server.uuid)
            kept_by = named.get(server.uuid)
            if record is None:
                server = _unrecorded(server, *claims[server.uuid])
            else:
                server = dataclasses.replace(
                    server, end=_end(server, record, now),
                    reservation_id=record.claim,
                )
            if server.reservation_id is None and kept_by is not None and (
                kept_by.keeps and kept_by.was_open_to(server.project_id)
            ):
                server = dataclasses.replace(server, reservation_id=kept_by.id)
            if not now < server.end <= at:
                found[host_uuid].append(server)
        return found

    def _claims(
        self, servers: Collection[tuple[Server, str]], now: int
    ) -> dict[str, tuple[ReservationRecord | None, Instance | None]]:
        """Return the reservations that servers draw on, by server uuid.

        :param servers: each server with the uuid of its host
        :returns: each with the record of the server on another host, if any
        """
        return self._ledger.read_replica(
            lambda replica: {
                server.uuid: (
                    server_reservation.claim(replica, server, host, now),
                    replica.instances.get(server.uuid),
                )
                for server, host in servers
            }
        )

    def vacate(
        self, cause: Cause, servers: Iterable[Server], now: int
    ) -> bool:
        """Notify servers that they have to go, and remove the due servers.

        Each server is notified `vacate_notice` ahead, but at most half of the
        time ahead that remains until the start, or after the start until the
        end, so that a short time leaves some time for the rest. Then the first
        action of `vacate_order` that Nova accepts is requested; if the server
        is still on the host once it has no task, the next action is requested:
        see `_steps`. After the last action the order begins again, `PAUSE`
        seconds later, and after growing pauses once the server should be
        gone. A server that draws on an open reservation is left alone until
        that reservation is over; see `Cause`.

        :param servers: all servers that are in the way
        :returns: True if no server is in the way
        :raises Unavailable: after the other servers have been handled, if a
            request failed
        """
        in_the_way = [s for s in servers if self._order(s)]
        open_until = self._open_until(in_the_way, now)
        going = [
            s for s in in_the_way
            if s.uuid not in open_until
            or open_until[s.uuid] > cause.last_spared
        ]
        courses = self._follow(cause, going, now)
        failures = []
        for server in going:
            order = self._order(server)
            if server.uuid in open_until:
                order = [action for action in order if action != _DELETE]
            try:
                self._see_to(cause, server, courses[server.uuid], order, now)
            except exception.Unavailable as e:
                failures.append(e)
                if len(failures) == MAX_FAILURES:
                    break
        if failures:
            raise failures[0]
        return not in_the_way

    def evict(
        self, lease: Lease, servers: Sequence[Server], now: int
    ) -> list[str]:
        """Delete the servers that yield when a window opens.

        A server that was to be shelved or copied at its end is shelved, which
        copies the server too; another preemptible server goes as its flavor
        says. A server that was to be shelved stays on a node of Ironic.

        :param servers: all servers that are in the way
        :returns: the uuids of the servers that stay
        """
        going = [s for s in servers if preemption.yields(s, now)]
        shelved = self._shelved(going, now)
        going = [
            s for s in going
            if not (s.bare_metal and s.uuid in shelved or _must_stay(s))
        ]
        self._nova.shelve_servers(s for s in going if s.uuid in shelved)
        preemption.preempt(
            self._ledger, self._nova,
            (s for s in going if s.uuid not in shelved),
        )
        staying = [s for s in servers if s not in going]
        for server in staying:
            LOG.warning(
                'Lease %s starts while server %s of project %s is in the way '
                'on host %s',
                lease.id, server.uuid, server.project_id, server.node,
            )
        return [server.uuid for server in staying]

    def _open_until(
        self, servers: Iterable[Server], now: int
    ) -> dict[str, int]:
        """Return the ends of the open reservations that servers draw on.

        :returns: by the uuids of the servers that draw on one
        """
        return {
            uuid: claimed.end
            for uuid, claimed in self._reservations(
                [(s, s.reservation_id) for s in servers]
            )
            if self._is_open(claimed, now)
        }

    def _is_open(self, claimed: ReservationRecord, now: int) -> bool:
        """Tell whether a reservation has started and its end is not done.

        The end may change the allocations of a server in Placement, and Nova
        fails to move a server whose allocations change.
        """
        if now < claimed.end:
            return claimed.start <= now
        with contextlib.suppress(exception.LeaseNotFound):
            lease = self._ledger.lease(claimed.lease_id)
            return lease.status not in _OVER
        return False

    def _shelved(self, servers: Collection[Server], now: int) -> set[str]:
        """Return the uuids of the servers that are not deleted at their end.

        The end is the end of the reservation that a server draws on, or of the
        server's own lifetime.
        """
        claims = [(s, s.reservation_id) for s in servers]
        lifetimes: list[tuple[Server, str | None]] = [
            (s, lifetime_id(s.uuid))
            for s in servers
            if s.end <= now
        ]
        return {
            uuid for uuid, claimed in self._reservations(claims + lifetimes)
            if claimed.on_end in _LASTING
        }

    def _reservations(
        self, servers: Collection[tuple[Server, str | None]]
    ) -> list[tuple[str, ReservationRecord]]:
        """Return the uuids of servers with their reservations, where known.

        The reservations that are over are returned too.

        :param servers: each server with the id of a reservation
        """
        ids = {id_ for _, id_ in servers if id_ is not None}
        known = self._ledger.reservation_records(ids, over=True)
        return [
            (server.uuid, known[id_]) for server, id_ in servers
            if id_ in known
        ]

    def _order(self, server: Server) -> Sequence[str]:
        order: Sequence[str] = self._conf.vacate_order
        if server.preemptible:
            order = self._conf.vacate_preemptible_order
            if server.preempt_policy is not None:
                order = list(dict.fromkeys([server.preempt_policy, *order]))
        if server.bare_metal:
            return [action for action in order if action == _DELETE]
        return order

    def _follow(
        self, cause: Cause, servers: Iterable[Server], now: int
    ) -> dict[str, _Course]:
        """Return the courses of servers, and drop those that are over."""
        for id_, (each, _) in list(self._courses.items()):
            if each.end <= now:
                self._courses.pop(id_, None)
        before, known = self._courses.get(cause.id, (cause, {}))
        if before.start != cause.start:
            # These courses were computed for another start: they may be too
            # late.
            known = {}
        courses = {
            s.uuid: known.get(s.uuid) or self._begin(cause, s, now)
            for s in servers
        }
        self._courses[cause.id] = cause, courses
        return courses

    def _begin(self, cause: Cause, server: Server, now: int) -> _Course:
        left = (cause.start if now < cause.start else cause.end) - now
        ahead = cause.notice
        if ahead is None:
            ahead = self._conf.vacate_notice
        latest = now + min(ahead, left // 2)
        noticed = self._notice(cause, server, now)
        if noticed is not None and noticed <= latest:
            return _Course(noticed)
        at = duration.format_time(latest)
        LOG.info(
            'Server %s is in the way of %s on host %s, and must leave at %s',
            server.uuid, cause.name, server.node, at,
        )
        self._notifier.tell(INSTANCE_VACATE, {
            'instance_id': server.uuid,
            'project_id': server.project_id,
            'hypervisor_hostname': server.node,
            'vacate_at': at,
            **cause.details,
        })
        return _Course(latest)

    def _notice(self, cause: Cause, server: Server, now: int) -> int | None:
        """Return the time in the metadata at which a server has to go.

        The time counts if the server was notified for the cause, or for
        another lease on the host that has not started, or because the host
        will be closed: a server may be in the way several times, and has to go
        for the first of them. Any other time is left from an earlier vacating,
        or was written by the owner of the server.
        """
        noticed = _notified_until(server)
        begun = now if cause.begun is None else cause.begun
        if noticed is None or begun <= noticed:
            return noticed
        record = self._ledger.instance(server.uuid)
        if record is not None and any(
            begun <= noticed for begun in self._begins(record.host, now)
        ):
            return noticed
        return None

    def _begins(self, host_uuid: str, now: int) -> Iterator[int]:
        """Yield when the vacating of a host begins, for each cause."""
        leases = {
            lease_id for _, lease_id in self._ledger.allocations(
                host=host_uuid, after=now
            )
        }
        with contextlib.suppress(exception.LeaseNotFound):
            for lease in map(self._ledger.lease, sorted(leases)):
                if now < lease.start:
                    yield now if lease.vacate is None else lease.vacate
        for host in self._ledger.hosts([host_uuid]):
            for closed in host.closed_windows:
                if closed.start and now < closed.end:
                    yield closed.start - self._conf.vacate_lead_time

    def _see_to(
        self, cause: Cause, server: Server, course: _Course,
        order: Sequence[str], now: int,
    ) -> None:
        if now < course.at:
            noticed = self._notice(cause, server, now)
            if noticed is None or noticed > course.at:
                self._nova.set_server_metadata(
                    server, {VACATE_AT: duration.format_time(course.at)}
                )
        elif server.task is None:
            self._ask(cause, server, course, order, now)

    def _ask(
        self, cause: Cause, server: Server, course: _Course,
        order: Sequence[str], now: int,
    ) -> None:
        """Request the next action of an order that Nova accepts."""
        steps = _steps(order)
        if course.requested >= len(steps):
            if now < course.last + course.pause:
                return
            course.requested = 0
            if cause.start <= now:
                course.pause = min(2 * course.pause, MAX_PAUSE)
        course.last = now
        for action in steps[course.requested :]:
            # Counted before the request: an action that Nova refuses is also
            # followed by the next action.
            course.requested += 1
            LOG.info('Vacating server %s: %s', server.uuid, action)
            try:
                if self._do(action, server):
                    return
            except exception.Unavailable as e:
                # Nova that can do nothing now has refused nothing.
                if not e.refused:
                    course.requested -= 1
                    course.pause = PAUSE
                raise

    def _do(self, action: str, server: Server) -> bool:
        """Request an action; tell whether the action may help."""
        if action == _LIVE_MIGRATE:
            return self._nova.migrate_server(server)
        if action == _SHELVE:
            preemption.shelve(self._ledger, self._nova, server)
        else:
            self._nova.delete_servers([server])
        return True


def _must_stay(server: Server) -> bool:
    """Tell whether a server was to be shelved, which Ironic cannot do."""
    return server.bare_metal and server.preempt_policy == _SHELVE


def _end(server: Server, record: Instance, now: int) -> int:
    """Return the end of a server as recorded in the ledger.

    A server with a relocation path is on the host until the end of its present
    stay; a server that is there after that has its own end. A server that Nova
    did not shelve before its own start is not past its end: the server is in
    its own time, even if no look at Nova has recorded that yet.
    """
    if record.end == server.start and record.end <= now:
        return server.end
    return record.leaves_at if now < record.leaves_at else record.end


def _unrecorded(
    server: Server, claim: ReservationRecord | None, elsewhere: Instance | None
) -> Server:
    """Return a server without a record, as its future record describes it.

    :param elsewhere: the record of the server on the host that the server has
        left; its end may have changed since the server was booted
    """
    if claim is None:
        end = server.end
        if elsewhere is not None and elsewhere.claim is None:
            end = elsewhere.end
        return dataclasses.replace(server, end=end, reservation_id=None)
    return dataclasses.replace(
        server, end=window.FOREVER if claim.keeps else claim.end,
        reservation_id=claim.id,
    )


def _steps(order: Sequence[str]) -> list[str]:
    """Return the actions requested for a server, one after another.

    An irreversible action must not result from a request that failed, or from
    a server that was busy: all actions before the deletion come several times.
    """
    if _DELETE not in order:
        return list(order)
    ahead = list(order[: order.index(_DELETE)])
    return [*ahead * CHANCES, _DELETE]


def _notified_until(server: Server) -> int | None:
    """Return when a server has to go, None if the server has no notice."""
    try:
        return duration.parse_time(server.metadata.get(VACATE_AT), VACATE_AT)
    except exception.InvalidInput:
        # The owner of the server may write any value.
        return None
