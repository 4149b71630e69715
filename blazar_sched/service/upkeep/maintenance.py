# SPDX-License-Identifier: Apache-2.0
"""Maintenances: windows in which nothing may be on some hosts.

Each host has a copy of the maintenance, so every index knows when the host is
closed: nothing is placed there, `closing` vacates the host, and the host is
open at the end without anything being done.

All other commits wait for a commit, so a maintenance is carried out in slices.
Whether other hosts have room for all reservations is searched for before the
first commit. The first commits close the hosts, the next ones move a few
leases each. A lease on a closed host that is not degraded is still to be
moved: the loop of any manager goes on with those of a maintenance that was
left unfinished.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import itertools
from typing import Any
from typing import TypeVar
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
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.maintenance import CHANGING
from blazar_sched.domain.maintenance import Maintenance
from blazar_sched.domain.maintenance import NO_ROOM
from blazar_sched.domain.maintenance import SERVERS
from blazar_sched.domain.window import FOREVER
from blazar_sched.replica import record
from blazar_sched.replica import state
from blazar_sched.service import faults
from blazar_sched.service import loop
from blazar_sched.service import slices
from blazar_sched.service.bus import notifier
from blazar_sched.service.bus.notifier import LEASE_DEGRADED
from blazar_sched.service.bus.notifier import LEASE_HEALED
from blazar_sched.service.bus.notifier import LEASE_MAINTENANCE
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.upkeep import healing
from blazar_sched.service.upkeep.healing import Healer

LOG = log.getLogger(__name__)

# The most leases that a refusal names.
_NAMED = 5
# What one commit closes, and moves.
HOSTS_IN_COMMIT = 10
LEASES_IN_COMMIT = 2
# How often a request begins again because other commits came between.
MAX_REPEATS = 5
# The seconds between two looks at all maintenances.
INTERVAL = 10.0
# The seconds after which a maintenance counts as left unfinished.
RESUME_AFTER = 300

T = TypeVar('T')

_Shown = dict[str, Any]


class _Overtaken(Exception):
    """What was searched for has changed before the first commit."""


class Maintenances(loop.Looped):
    """The operations on maintenances, and the loop that goes on with them.

    :param wake_runner: has the events that are due executed
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, healer: Healer,
        wake_runner: Callable[[], object], clock: Callable[[], float],
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._healer = healer
        self._wake_runner = wake_runner
        self._clock = clock
        self._loop = loop.Loop('maintenance', self.step, lambda: INTERVAL)

    def create(
        self, values: Mapping[str, Any], force: bool = False,
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

        hosts = self._ledger.read_replica(
            lambda replica: _chosen(replica.hosts.values(), values)
        )
        new = dataclasses.replace(
            new, hosts=tuple(host.uuid for host in hosts)
        )
        for _ in range(MAX_REPEATS):
            with contextlib.suppress(_Overtaken):
                return self._close(None, new, force, dry_run, now)
        raise _busy()

    def update(
        self, maintenance_id: str, values: Mapping[str, Any],
        force: bool = False, dry_run: bool = False,
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

        for _ in range(MAX_REPEATS):
            old = self._ledger.maintenance(maintenance_id)
            new = _changed(old, values, now)
            with contextlib.suppress(_Overtaken):
                return self._close(
                    old, new, force, dry_run, now,
                    moves=not old.window.includes(new.window),
                )
        raise _busy()

    def delete(self, maintenance_id: str) -> None:
        """End or cancel a maintenance, and open its hosts.

        :raises MaintenanceNotFound: if there is no such maintenance
        """
        now = int(self._clock())

        # `_settle` opens the hosts of a maintenance that is not known.
        self._ledger.maintenance(maintenance_id)
        self._ledger.commit(lambda tx: tx.delete_maintenance(maintenance_id))
        self._settle(now)

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
        """Settle what is over, and go on with what was left unfinished.

        Any manager may do so: what is written is decided in a commit.
        """
        now = int(self._clock())
        self._settle(now)
        self._resume(now)

    def _settle(self, now: int) -> None:
        """Take maintenances that are over or deleted from their hosts."""
        def open_(source: Reader) -> Callable[[ClosedWindow], bool]:
            known = {each.id for each in source.maintenances()}
            return lambda each: each.end > now and each.id in known

        is_open = open_(self._ledger)
        over = self._ledger.read_replica(lambda replica: [
            host.uuid for host in replica.closing_hosts()
            if not all(map(is_open, host.maintenances))
        ])

        def work(hosts: Sequence[str], tx: PlacingTx) -> None:
            is_open = open_(tx)
            for host in tx.hosts(hosts):
                tx.put_host(dataclasses.replace(
                    host,
                    maintenances=tuple(filter(is_open, host.maintenances)),
                ))

        self._in_slices(over, HOSTS_IN_COMMIT, work)
        if over:
            self._restore(self._on(over, now), now)
            self._wake_runner()

    def _on(
        self, hosts: Collection[str], after: int, before: int = FOREVER
    ) -> list[Lease]:
        """Return the leases that have allocations on hosts in a window."""
        return [
            lease for lease in self._ledger.leases_on(hosts, after)
            if lease.start < before
        ]

    def _restore(self, leases: Iterable[Lease], now: int) -> None:
        """Bring the `degraded` flag of leases up to date, hosts being open."""
        degraded = [each.id for each in leases if each.degraded]
        self._in_slices(
            degraded, LEASES_IN_COMMIT, lambda ids, tx: _restore(tx, ids, now)
        )

    def _in_slices(
        self, all_: Sequence[str], length: int,
        work: Callable[[Sequence[str], PlacingTx], T],
    ) -> list[T]:
        """Commit the work on hosts or leases, so many in each commit."""
        results = []
        for part in slices.of(all_, length):
            faults.point('maintenance:slice')
            results.append(self._ledger.commit(functools.partial(work, part)))
        return results

    def _resume(self, now: int) -> None:
        """Go on with the maintenances that were left unfinished."""
        for each in self._ledger.maintenances():
            since = each.updated_at or each.created_at or 0
            if each.end > now and since + RESUME_AFTER <= now and (
                self._open_hosts(each) or self._unmoved(each, now)
            ):
                LOG.warning('Going on with maintenance %s', each.id)
                self._carry_out(each, now)

    def _open_hosts(self, maintenance: Maintenance) -> list[str]:
        """Return the hosts that lack the copy of a maintenance."""
        return self._ledger.read_replica(lambda replica: [
            uuid for uuid in maintenance.hosts if uuid in replica.hosts
            and maintenance.on_host not in replica.hosts[uuid].maintenances
        ])

    def _unmoved(self, maintenance: Maintenance, now: int) -> list[str]:
        """Return the leases to be moved or flagged, by their ids."""
        return [
            lease.id for lease in self._on(
                maintenance.hosts, max(now, maintenance.start), maintenance.end
            )
            if not lease.degraded
        ]

    def _close(
        self, old: Maintenance | None, new: Maintenance, force: bool,
        dry_run: bool, now: int, moves: bool = True,
    ) -> _Shown:
        """Write a maintenance, and move reservations off its hosts.

        :param old: the maintenance before its change, None if it is new
        :param moves: whether reservations are to leave the hosts
        :raises InTheWay: if reservations cannot leave the hosts, unless
            `force`
        :raises _Overtaken: if the maintenance, or what is on its hosts, has
            changed since the search
        """
        affected = _affected(self._ledger, new, now)
        moved: list[_Shown] = []
        in_the_way = _in_the_way(affected)
        if moves:
            moved, in_the_way = self._searched(new, affected, now)
            if in_the_way and not (force or dry_run):
                raise _refusal(in_the_way)
        if not dry_run:
            before = [] if old is None else _affected(self._ledger, old, now)
            self._ledger.commit(lambda tx: _begin(tx, old, new, affected, now))
            ids = list(dict.fromkeys(id_ for _, id_ in affected))
            moved, in_the_way = self._carry_out(new, now, ids, moves)
            gone = {id_ for _, id_ in before}.difference(ids)
            self._restore(
                self._on({a.host for a, id_ in before if id_ in gone}, now),
                now,
            )
            self._wake_runner()
        shown = self._shown(self._ledger, new, now, in_the_way)
        shown['moved'] = _with_names(self._ledger, moved)
        return shown

    def _searched(
        self, new: Maintenance, affected: list[tuple[Allocation, str]],
        now: int,
    ) -> tuple[list[_Shown], list[_Shown]]:
        """Return what can leave the hosts of a maintenance, and what cannot.

        Other commits wait for a commit, but not for this search.
        """
        changes: list[record.Record] = []
        moved: list[_Shown] = []
        in_the_way: list[_Shown] = []

        def search(leases: Iterable[Lease], replica: state.Replica) -> None:
            with replica.changing() as show:
                show([
                    *map(record.encode, _closing(replica, new)), *changes,
                ], leave_out=True)

                def move(lease: Lease, hosts: set[str], id_: str) -> Lease:
                    held = replica.indexes.allocations(id_)
                    placed = self._healer.plan(
                        replica, lease, hosts, now, {id_}
                    )[id_]
                    shown = [
                        *map(record.removal, held.values()),
                        *map(record.encode, placed),
                    ]
                    show(shown, leave_out=True)
                    changes.extend(shown)
                    return lease

                for lease in leases:
                    _, left, stays = self._leave(
                        self._ledger, lease,
                        [a for a, id_ in affected if id_ == lease.id], now,
                        move,
                    )
                    moved.extend(left)
                    in_the_way.extend(stays)

        for ids in slices.of(
            list(dict.fromkeys(id_ for _, id_ in affected)), LEASES_IN_COMMIT
        ):
            self._ledger.read_replica(functools.partial(
                search, [self._ledger.lease(id_) for id_ in ids]
            ))
        return moved, in_the_way

    def _carry_out(
        self, new: Maintenance, now: int, ids: Collection[str] = (),
        moves: bool = True,
    ) -> tuple[list[_Shown], list[_Shown]]:
        """Close the hosts of a maintenance, and move leases, in slices.

        A slice does nothing once the maintenance has changed: the request that
        has changed it goes on.

        :param ids: the ids of the leases that were known to be in the window
        :returns: what was moved, and what is in the way
        """
        self._in_slices(
            self._open_hosts(new), HOSTS_IN_COMMIT,
            lambda hosts, tx: _set_hosts(tx, new, hosts, now),
        )
        all_ = list(dict.fromkeys((*ids, *self._unmoved(new, now))))
        for id_ in all_ if moves else ():
            with contextlib.suppress(exception.LeaseNotFound):
                self._healer.match(id_)
        done = list(itertools.chain(*self._in_slices(
            all_, LEASES_IN_COMMIT,
            lambda ids, tx: [
                self._leave_in(tx, new, id_, now, moves) for id_ in ids
                if _is_current(tx, new)
            ],
        )))
        return (
            list(itertools.chain(*(moved for moved, _ in done))),
            list(itertools.chain(*(in_the_way for _, in_the_way in done))),
        )

    def _leave_in(
        self, tx: PlacingTx, new: Maintenance, lease_id: str, now: int,
        moves: bool,
    ) -> tuple[list[_Shown], list[_Shown]]:
        """Move a lease off the hosts of a maintenance, or flag the lease."""
        affected = _affected(tx, new, now, lease_id)
        if not affected:
            return [], []
        old = lease = tx.lease(lease_id)
        moved: list[_Shown] = []
        in_the_way = _in_the_way(affected)
        if moves:
            lease, moved, in_the_way = self._leave(
                tx, old, [a for a, _ in affected], now,
                lambda lease, hosts, id_: self._healer.move(
                    tx, lease, hosts, now, {id_}
                ),
            )
        if in_the_way and not lease.degraded:
            tx.set_lease_status(lease_id, lease.status, now, degraded=True)
            lease = dataclasses.replace(lease, degraded=True, updated_at=now)
        notifier.maintenance(tx, LEASE_MAINTENANCE, lease, new)
        if lease.degraded and not old.degraded:
            notifier.lease(tx, LEASE_DEGRADED, lease)
        return moved, in_the_way

    def _leave(
        self, source: Reader, lease: Lease, affected: Collection[Allocation],
        now: int, move: Callable[[Lease, set[str], str], Lease],
    ) -> tuple[Lease, list[_Shown], list[_Shown]]:
        """Move the reservations of a lease off hosts, as far as possible.

        :param affected: the allocations on the hosts
        :param move: moves one reservation, and returns the lease
        :returns: the lease, what was moved, and what is in the way
        """
        moved: list[_Shown] = []
        in_the_way: list[_Shown] = []
        for id_ in dict.fromkeys(a.reservation_id for a in affected):
            hosts = {a.host for a in affected if a.reservation_id == id_}
            of = {'lease_id': lease.id, 'reservation_id': id_}
            why, staying = NO_ROOM, set()
            if not healing.is_healable(lease, now):
                why, leaving = CHANGING, set()
            else:
                if lease.status == states.LEASE_ACTIVE:
                    staying = {
                        each.host for each in source.claiming([id_])
                    } & hosts
                leaving = hosts - staying
            try:
                if leaving:
                    lease = move(lease, leaving, id_)
                    moved.append({**of, 'hosts': sorted(leaving)})
            except exception.NotEnoughHostsAvailable:
                leaving = set()
            blocked = (SERVERS, staying), (why, hosts - leaving - staying)
            in_the_way += [
                {**of, 'hosts': sorted(each), 'why': reason}
                for reason, each in blocked
                if each
            ]
        return lease, moved, in_the_way

    def _shown(
        self, source: Reader, found: Maintenance, now: int,
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


def _chosen(known: Collection[Host], values: Mapping[str, Any]) -> list[Host]:
    """Return the hosts that a request names, or that meet a requirement.

    :raises HostNotFound: if a host is not registered
    :raises InvalidInput: if no host meets the requirement
    """
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
    source: Reader, maintenance: Maintenance, now: int,
    lease_id: str | None = None,
) -> list[tuple[Allocation, str]]:
    """Return the allocations in the window, each with the id of its lease.

    A maintenance that is over affects none.

    :param lease_id: the lease of the allocations, None for all leases
    """
    if maintenance.end <= now:
        return []
    return [
        (allocation, lease_id)
        for allocation, lease_id in source.allocations(
            lease_id=lease_id, hosts=maintenance.hosts,
            after=max(now, maintenance.start),
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


def _begin(
    tx: PlacingTx, old: Maintenance | None, new: Maintenance,
    affected: Iterable[tuple[Allocation, str]], now: int,
) -> None:
    """Write a maintenance, and close the first of its hosts.

    :param affected: the allocations in the window, when that was searched
    :raises _Overtaken: if the search is not true any more
    """
    if old is not None and tx.maintenance(old.id) != old:
        raise _Overtaken
    if _affected(tx, new, now) != affected:
        raise _Overtaken
    tx.put_maintenance(new)
    _set_hosts(tx, new, new.hosts[:HOSTS_IN_COMMIT], now)


def _is_current(tx: PlacingTx, maintenance: Maintenance) -> bool:
    """Tell whether a maintenance is still there, and has not changed."""
    with contextlib.suppress(exception.MaintenanceNotFound):
        return bool(tx.maintenance(maintenance.id) == maintenance)
    return False


def _set_hosts(
    tx: PlacingTx, maintenance: Maintenance, hosts: Collection[str], now: int
) -> None:
    """Give hosts their copy of a maintenance, unless it is over."""
    if maintenance.end <= now or not _is_current(tx, maintenance):
        return
    for host in tx.hosts(hosts):
        others = tuple(
            each for each in host.maintenances if each.id != maintenance.id
        )
        tx.put_host(dataclasses.replace(
            host, maintenances=(*others, maintenance.on_host), updated_at=now
        ))


def _restore(tx: PlacingTx, lease_ids: Iterable[str], now: int) -> None:
    """Bring the `degraded` flag of leases up to date, once hosts are open."""
    for lease_id in sorted(lease_ids):
        try:
            old = tx.lease(lease_id)
        except exception.LeaseNotFound:
            continue
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


def _busy() -> exception.Unavailable:
    return exception.Unavailable('the leases on the hosts change all the time')


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
