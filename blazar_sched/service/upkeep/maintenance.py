# SPDX-License-Identifier: Apache-2.0
"""Maintenances: windows in which nothing may be on some hosts.

A maintenance is created in one commit, in which reservations leave the hosts
as far as other hosts have room. Each host has a copy of the maintenance, so
every index knows when the host is closed: nothing is placed there, and the
host is open at the end without anything being done. A loop vacates hosts ahead
of each of their closed windows, whatever the host is closed for.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
from typing import Any
import uuid

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import plural
from blazar_sched.domain import requirements
from blazar_sched.domain import states
from blazar_sched.domain.allocation import Allocation
from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import Host
from blazar_sched.domain.maintenance import CHANGING
from blazar_sched.domain.maintenance import Maintenance
from blazar_sched.domain.maintenance import NO_ROOM
from blazar_sched.domain.maintenance import SERVERS
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import LEASE_DEGRADED
from blazar_sched.service.bus.notifier import LEASE_HEALED
from blazar_sched.service.bus.notifier import LEASE_MAINTENANCE
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.resources import vacating
from blazar_sched.service.resources.vacating import Vacater
from blazar_sched.service.upkeep import healing
from blazar_sched.service.upkeep.healing import Healer

LOG = log.getLogger(__name__)

# The most leases that a refusal names.
_NAMED = 5

_Shown = dict[str, Any]


class Maintenances(loop.Looped):
    """The operations on maintenances, and the loop that vacates hosts.

    :param wake_runner: has the events that are due executed
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        healer: Healer,
        vacater: Vacater,
        wake_runner: Callable[[], object],
        clock: Callable[[], float],
        metrics_: Metrics,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._healer = healer
        self._vacater = vacater
        self._wake_runner = wake_runner
        self._clock = clock
        self._metrics = metrics_
        self._objects = loop.Objects[tuple[Host, ClosedWindow]](
            'maintenance', metrics_
        )
        self._loop = loop.Loop(
            'maintenance', self.step,
            lambda: self._conf.maintenance_interval,
        )

    def create(
        self,
        values: Mapping[str, Any],
        force: bool = False,
        dry_run: bool = False,
    ) -> _Shown:
        """Close hosts over a window, and move reservations off the hosts.

        :param values: `name`, `reason`, `start` (None for now), `end`, and
            either `hosts`, by hypervisor hostname, or `resource_properties`,
            which is evaluated now
        :param force: whether reservations that cannot leave are no reason to
            refuse; their leases are degraded
        :param dry_run: return what would be done, and change nothing
        :raises InvalidInput: naming the field that is wrong
        :raises HostNotFound: if a host is not registered
        :raises InTheWay: if reservations cannot leave the hosts
        """
        now = int(self._clock())
        start = now if values['start'] is None else values['start']
        if start < now:
            raise exception.InvalidInput(
                'a maintenance must not start in the past', field='start_date'
            )
        new = Maintenance(
            str(uuid.uuid4()), values['name'], values['reason'], start,
            values['end'], created_at=now,
        )
        _check_end(new, now)

        def work(tx: PlacingTx) -> _Shown:
            hosts = _chosen(tx, values)
            made = dataclasses.replace(
                new, hosts=tuple(host.uuid for host in hosts)
            )
            return self._close(tx, made, force or dry_run, now)

        return self._write(work, dry_run)

    def update(
        self,
        maintenance_id: str,
        values: Mapping[str, Any],
        force: bool = False,
        dry_run: bool = False,
    ) -> _Shown:
        """Change the name, the reason or the window of a maintenance.

        Reservations that are in the new window leave the hosts, as for
        `create`, unless the old window includes the new window: such a change
        moves nothing and is never refused. Leases that are in the old window
        only are not degraded by the maintenance any more.

        :param values: any of `name`, `reason`, `start` (None for now) and
            `end`
        :raises MaintenanceNotFound: if there is no such maintenance
        :raises InvalidInput: naming the field that is wrong
        :raises InTheWay: if reservations cannot leave the hosts
        """
        now = int(self._clock())

        def work(tx: PlacingTx) -> _Shown:
            old = tx.maintenance(maintenance_id)
            new = _changed(old, values, now)
            before = _affected(tx, old, now)
            shown = self._close(
                tx, new, force or dry_run, now,
                moves=not old.window.includes(new.window),
            )
            held = {id_ for _, id_ in _affected(tx, new, now)}
            gone = {id_ for _, id_ in before} - held
            _restore(tx, gone, now)
            return shown

        return self._write(work, dry_run)

    def delete(self, maintenance_id: str) -> None:
        """End or cancel a maintenance, and open its hosts.

        :raises MaintenanceNotFound: if there is no such maintenance
        """
        now = int(self._clock())

        def work(tx: PlacingTx) -> None:
            old = tx.maintenance(maintenance_id)
            held = {id_ for _, id_ in _affected(tx, old, now)}
            _set_hosts(tx, old, None, now)
            tx.delete_maintenance(old.id)
            _restore(tx, held, now)

        self._ledger.commit(work)
        self._wake_runner()

    def get(self, maintenance_id: str) -> _Shown:
        """Return a maintenance with the leases that are in its way now.

        :raises MaintenanceNotFound: if there is no such maintenance
        """
        found: Maintenance = self._ledger.maintenance(maintenance_id)
        now = int(self._clock())
        affected = _affected(self._ledger, found, now)
        return self._shown(self._ledger, found, now, _in_the_way(affected))

    def list_all(self, after: str | None = None) -> list[_Shown]:
        """Return the maintenances by id.

        :param after: the id after which the result begins
        """
        now = int(self._clock())
        names = {
            h.uuid: h.hypervisor_hostname for h in self._ledger.hosts()
        }
        return [
            self._fields(each, now, names)
            for each in self._ledger.maintenances(after)
        ]

    def step(self) -> None:
        """Vacate the hosts that close soon, and settle what is over.

        Any manager may do so, and several may do so at once: each request to
        Nova can be sent twice, and what is written is decided in a commit.
        Nova is queried only about the hosts on which the ledger has servers.

        :raises Unavailable: if Nova does not answer
        """
        now = int(self._clock())
        self._settle(now)
        lead_time = self._conf.vacate_lead_time
        staying: list[Server] = []

        def vacate(each: tuple[Host, ClosedWindow]) -> None:
            host, closed = each
            servers = self._vacater.all_on(host, closed.start, now)
            if closed.start <= now:
                staying.extend(servers)
            self._vacater.vacate(
                vacating.for_closing(host, closed, lead_time), servers, now
            )

        hosts = self._ledger.read_replica(
            lambda replica: [
                each for each in closing(replica, now, lead_time)
                if replica.present.instances_on(each[0].uuid)
            ]
        )
        try:
            self._objects.each(
                ((each[0].uuid, each) for each in hosts), vacate, now
            )
        finally:
            self._metrics.of(metrics.ON_CLOSED).set(len(staying))

    def _settle(self, now: int) -> None:
        """Take the maintenances that are over from their hosts."""

        def is_over(host: Host) -> bool:
            return any(each.end <= now for each in host.maintenances)

        if not self._ledger.read_replica(
            lambda replica: any(map(is_over, replica.closing_hosts()))
        ):
            return

        def work(tx: PlacingTx) -> None:
            over = [h for h in tx.replica.closing_hosts() if is_over(h)]
            held = {
                lease_id
                for _, lease_id in tx.allocations(
                    hosts=[host.uuid for host in over], after=now
                )
            }
            for host in tx.hosts([host.uuid for host in over]):
                tx.put_host(dataclasses.replace(
                    host,
                    maintenances=tuple(
                        each for each in host.maintenances if each.end > now
                    ),
                ))
            _restore(tx, held, now)

        self._ledger.commit(work)
        self._wake_runner()

    def _write(
        self, work: Callable[[PlacingTx], _Shown], dry_run: bool
    ) -> _Shown:
        """Commit a new or changed maintenance."""
        shown = self._ledger.commit(work, dry_run)
        if not dry_run:
            self._wake_runner()
        return shown

    def _close(
        self,
        tx: PlacingTx,
        new: Maintenance,
        force: bool,
        now: int,
        moves: bool = True,
    ) -> _Shown:
        """Write a maintenance, and move reservations off its hosts.

        :param moves: whether reservations are to leave the hosts
        :raises InTheWay: if reservations cannot leave the hosts, unless
            `force`
        """
        tx.replica.advance(now)
        affected = _affected(tx, new, now)
        before = {id_: tx.lease(id_) for _, id_ in affected}
        moved: list[_Shown] = []
        in_the_way = _in_the_way(affected)
        if moves:
            moved, in_the_way = self._leave_all(tx, new, affected, now)
            if in_the_way and not force:
                raise _refusal(in_the_way)
        for id_ in {each['lease_id'] for each in in_the_way}:
            lease = tx.lease(id_)
            if not lease.degraded:
                tx.set_lease_status(id_, lease.status, now, degraded=True)
        tx.put_maintenance(new)
        # `step` takes a maintenance that is over from its hosts.
        if new.end > now:
            _set_hosts(tx, new, new.on_host, now)
        shown = self._shown(tx, new, now, in_the_way)
        shown['moved'] = _with_names(tx, moved)
        for id_, old in before.items():
            lease = tx.lease(id_)
            notifier.maintenance(tx, LEASE_MAINTENANCE, lease, new)
            if lease.degraded and not old.degraded:
                notifier.lease(tx, LEASE_DEGRADED, lease)
        return shown

    def _leave_all(
        self,
        tx: PlacingTx,
        new: Maintenance,
        affected: list[tuple[Allocation, str]],
        now: int,
    ) -> tuple[list[_Shown], list[_Shown]]:
        """Move reservations off hosts, as far as that is possible.

        :returns: what was moved, and what is in the way
        """
        moved: list[_Shown] = []
        in_the_way: list[_Shown] = []
        tx.expect(_closing(tx.replica, new))
        for lease_id, reservation_id in dict.fromkeys(
            (id_, a.reservation_id) for a, id_ in affected
        ):
            hosts = {
                a.host for a, _ in affected
                if a.reservation_id == reservation_id
            }
            of = {'lease_id': lease_id, 'reservation_id': reservation_id}
            left, staying, why = self._leave(
                tx, lease_id, reservation_id, hosts, now
            )
            if left:
                moved.append({**of, 'hosts': sorted(left)})
            blocked = (SERVERS, staying), (why, hosts - left - staying)
            in_the_way += [
                {**of, 'hosts': sorted(each), 'why': reason}
                for reason, each in blocked
                if each
            ]
        return moved, in_the_way

    def _leave(
        self,
        tx: PlacingTx,
        lease_id: str,
        reservation_id: str,
        hosts: Collection[str],
        now: int,
    ) -> tuple[set[str], set[str], str]:
        """Move a reservation off hosts, as far as that is possible.

        :returns: the hosts that the reservation has left, the hosts on which
            it has servers, and why it stays on the others
        """
        lease = tx.lease(lease_id)
        if not healing.is_healable(lease, now):
            return set(), set(), CHANGING
        staying = set()
        if lease.status == states.LEASE_ACTIVE:
            staying = {
                each.host for each in tx.claiming([reservation_id])
            }.intersection(hosts)
        leaving = set(hosts) - staying
        if not leaving:
            return set(), staying, SERVERS
        try:
            self._healer.move(tx, lease, leaving, now, {reservation_id})
        except exception.NotEnoughHostsAvailable:
            return set(), staying, NO_ROOM
        return leaving, staying, NO_ROOM

    def _shown(
        self,
        source: Reader,
        found: Maintenance,
        now: int,
        in_the_way: list[_Shown],
    ) -> _Shown:
        hosts = source.hosts(found.hosts)
        names = {host.uuid: host.hypervisor_hostname for host in hosts}
        servers = [
            each for each in source.instances(list(names))
            if each.leaves_at > found.start
        ]
        return {
            **self._fields(found, now, names),
            'in_the_way': _with_names(source, in_the_way),
            'servers': len(servers),
        }

    def _fields(
        self, found: Maintenance, now: int, names: Mapping[str, str]
    ) -> _Shown:
        return {
            **dataclasses.asdict(found),
            'hosts': sorted(names[h] for h in found.hosts if h in names),
            'status': found.status(now, self._conf.vacate_lead_time),
        }


def _changed(
    old: Maintenance, values: Mapping[str, Any], now: int
) -> Maintenance:
    """Return a maintenance with the changes of a request.

    The name and the reason of a maintenance that is over can be changed.

    :raises InvalidInput: naming the field that is wrong
    """
    wanted = dict(values)
    if wanted.get('start', now) is None:
        wanted['start'] = now
    new = dataclasses.replace(old, **wanted, updated_at=now)
    if new.start != old.start and new.start < now:
        raise exception.InvalidInput(
            'the start of a maintenance must not be moved into the past',
            field='start_date',
        )
    if new.window != old.window:
        _check_end(new, now)
    return new


def _check_end(maintenance: Maintenance, now: int) -> None:
    """Refuse a maintenance that is over.

    :raises InvalidInput: if the window ends before it begins, or is over
    """
    if maintenance.window.end <= now:
        raise exception.InvalidInput(
            'a maintenance must end in the future', field='end_date'
        )


def _chosen(tx: PlacingTx, values: Mapping[str, Any]) -> list[Host]:
    """Return the hosts that a request names, or that meet a requirement.

    :raises HostNotFound: if a host is not registered
    :raises InvalidInput: if no host meets the requirement
    """
    known = tx.hosts()
    if values['hosts'] is not None:
        by_name = {host.hypervisor_hostname: host for host in known}
        missing = [name for name in values['hosts'] if name not in by_name]
        if missing:
            raise exception.HostNotFound(
                f'host {missing[0]!r} is not registered', field='hosts'
            )
        return [by_name[name] for name in dict.fromkeys(values['hosts'])]
    field = 'resource_properties'
    wanted = requirements.parse(values[field], field)
    found = [host for host in known if wanted.matches(host.properties())]
    if not found:
        raise exception.InvalidInput(
            'no host meets the requirement', field=field
        )
    return found


def _affected(
    source: Reader, maintenance: Maintenance, now: int
) -> list[tuple[Allocation, str]]:
    """Return the allocations in the window, each with the id of its lease.

    A maintenance that is over affects none.
    """
    if maintenance.end <= now:
        return []
    return [
        (allocation, lease_id)
        for allocation, lease_id in source.allocations(
            hosts=maintenance.hosts, after=max(now, maintenance.start)
        )
        if allocation.start < maintenance.end
    ]


def _closing(
    replica: state.Replica, maintenance: Maintenance
) -> list[Allocation]:
    """Return allocations that close the hosts of a maintenance."""
    window = maintenance.window
    return [
        Allocation(
            f'{maintenance.id} {host}', maintenance.id, host, window.start,
            window.end, whole=True,
        )
        for host in maintenance.hosts
        if host in replica.hosts
    ]


def _set_hosts(
    tx: PlacingTx,
    maintenance: Maintenance,
    copy: ClosedWindow | None,
    now: int,
) -> None:
    """Give the hosts their copy of a maintenance, None to take it away."""
    for host in tx.hosts(maintenance.hosts):
        others = tuple(
            each for each in host.maintenances if each.id != maintenance.id
        )
        tx.put_host(dataclasses.replace(
            host, maintenances=others if copy is None else (*others, copy),
            updated_at=now,
        ))


def _restore(
    tx: PlacingTx, lease_ids: Iterable[str], now: int
) -> None:
    """Bring the `degraded` flag of leases up to date, once hosts are open."""
    for lease_id in sorted(lease_ids):
        old = tx.lease(lease_id)
        if not old.degraded or not healing.is_healable(old, now):
            continue
        if old.status == states.LEASE_ACTIVE:
            # The start finds what the lease still lacks.
            events = event.start_again(old.events)
            new = dataclasses.replace(old, events=events)
        else:
            hosts = tx.hosts(
                {a.host for a, _ in tx.allocations(lease_id=lease_id)}
            )
            new = dataclasses.replace(
                old,
                degraded=healing.lacks_resources(old.reservations) or any(
                    host.closed_in(old.left(now)) for host in hosts
                ),
            )
        if new != old:
            tx.put_lease(dataclasses.replace(new, updated_at=now))
        if not new.degraded:
            notifier.lease(tx, LEASE_HEALED, new)


def closing(
    replica: state.Replica, now: int, lead_time: int
) -> Iterator[tuple[Host, ClosedWindow]]:
    """Yield the hosts that are closed now or soon, each with its window.

    The time before a host has come is left out: what is on such a host was
    there when the host was registered.
    """
    for host in replica.closing_hosts():
        for each in host.closed_windows:
            if each.start and each.start - lead_time <= now < each.end:
                yield host, each


def _refusal(in_the_way: list[_Shown]) -> exception.InTheWay:
    leases = list(dict.fromkeys(each['lease_id'] for each in in_the_way))
    shown = ', '.join(
        f'{each["lease_id"]} ({each["why"]})' for each in in_the_way[:_NAMED]
    )
    return exception.InTheWay(
        f'{plural.counted(len(leases), "lease")} cannot leave the hosts: '
        f'{shown}',
        field='hosts',
    )


def _in_the_way(affected: Iterable[tuple[Allocation, str]]) -> list[_Shown]:
    """Return what is in the way of a maintenance, without the reasons."""
    return [
        {
            'lease_id': lease_id,
            'reservation_id': allocation.reservation_id,
            'hosts': [allocation.host],
            'why': None,
        }
        for allocation, lease_id in affected
    ]


def _with_names(source: Reader, items: Iterable[_Shown]) -> list[_Shown]:
    """Return items with the hypervisor hostnames of their hosts."""
    items = list(items)
    hosts = source.hosts({uuid for item in items for uuid in item['hosts']})
    names = {host.uuid: host.hypervisor_hostname for host in hosts}
    return [
        {**item, 'hosts': [names[uuid] for uuid in item['hosts']]}
        for item in items
    ]
