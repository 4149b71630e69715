# SPDX-License-Identifier: Apache-2.0
"""Maintenances: windows in which nothing may be on some hosts.

Each host has a copy of the maintenance, so every index knows when the host is
closed: nothing is placed there, and the core vacates the host. Whether other
hosts have room for all reservations is searched for before the first commit.
The loop of any manager goes on with a maintenance that was left unfinished.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
import uuid

from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain import plural
from blazar_sched.domain import requirements
from blazar_sched.domain.host import Host
from blazar_sched.domain.window import Window
from blazar_sched.parts.maintenance import execution
from blazar_sched.parts.maintenance import models
from blazar_sched.parts.maintenance.exception import InTheWay
from blazar_sched.parts.maintenance.maintenance import Maintenance
from blazar_sched.service import loop
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values
from blazar_sched.service.manager import paging
from blazar_sched.service.manager.manager import Manager
from blazar_sched.service.manager.running import Running

LOG = log.getLogger(__name__)

NOTIFICATIONS = (execution.LEASE_MAINTENANCE,)

# The most leases that a refusal names.
_NAMED = 5
# How often a request begins again because other commits came between.
MAX_REPEATS = 5
# The seconds between two looks at all maintenances.
INTERVAL = 10.0
# The seconds after which a maintenance counts as left unfinished.
RESUME_AFTER = 300


class Maintenances(loop.Looped):
    """The operations on maintenances, and the loop that goes on with them."""

    def __init__(self, manager: Manager) -> None:
        self._conf = manager.conf.manager
        self._ledger = manager.ledger
        self._clock = manager.clock
        self._execution = execution.Execution(
            manager.ledger, manager.healer, manager.runner.wake
        )
        self._loop = loop.Loop('maintenance', self.step, lambda: INTERVAL)

    def create(
        self, values: Values, force: bool = False, dry_run: bool = False
    ) -> Values:
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
        _check_end(Window(start, values['end']), now)
        hosts = self._ledger.read_replica(
            lambda replica: _chosen(replica.hosts.values(), values)
        )
        new = Maintenance(
            str(uuid.uuid4()), values['name'], values['reason'], start,
            values['end'], tuple(host.uuid for host in hosts), created_at=now,
        )
        return _repeated(lambda: self._close(None, new, force, dry_run, now))

    def update(
        self, maintenance_id: str, values: Values, force: bool = False,
        dry_run: bool = False,
    ) -> Values:
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

        def attempt() -> Values:
            old = self._ledger.run(models.get, maintenance_id)
            new = _changed(old, values, now)
            return self._close(old, new, force, dry_run, now)

        return _repeated(attempt)

    def delete(self, maintenance_id: str) -> None:
        """End or cancel a maintenance, and open its hosts.

        :raises MaintenanceNotFound: if there is no such maintenance
        """
        self._ledger.run(models.get, maintenance_id)
        self._ledger.write(lambda tx: tx.run(models.delete, maintenance_id))
        # This opens the hosts of a maintenance that is not known.
        self._execution.settle(int(self._clock()))

    def get(self, maintenance_id: str) -> Values:
        """Return a maintenance with the leases that are in its way now.

        :raises MaintenanceNotFound: if there is no such maintenance
        """
        found = self._ledger.run(models.get, maintenance_id)
        now = int(self._clock())
        affected = execution.find_affected(self._ledger, found, now)
        return self._shown(
            found, now, in_the_way=execution.in_its_way(affected)
        )

    def list_all(self, marker: str | None = None) -> Page:
        """Return a page of the maintenances, by id."""
        now, names = int(self._clock()), _names(self._ledger.hosts())
        found = self._ledger.run(models.list_, marker)
        return paging.page(
            (self._fields(each, now, names) for each in found), 'id'
        )

    def step(self) -> None:
        """Settle what is over, and go on with what was left unfinished.

        Any manager may do so: what is written is decided in a commit.
        """
        now = int(self._clock())
        self._execution.settle(now)
        for each in self._ledger.run(models.list_):
            since = each.updated_at or each.created_at or 0
            if each.end > now and since + RESUME_AFTER <= now and (
                self._execution.is_unfinished(each, now)
            ):
                LOG.warning('Going on with maintenance %s', each.id)
                self._execution.carry_on(each, now)

    def _close(
        self, old: Maintenance | None, new: Maintenance, force: bool,
        dry_run: bool, now: int,
    ) -> Values:
        """Write a maintenance, and move reservations off its hosts.

        :param old: the maintenance before its change, None if it is new
        :raises InTheWay: if reservations cannot leave the hosts, unless
            `force`
        :raises Overtaken: if the maintenance, or what is on its hosts, has
            changed since the search
        """
        affected = execution.find_affected(self._ledger, new, now)
        moved: list[Values] = []
        in_the_way = execution.in_its_way(affected)
        moves = old is None or not old.window.includes(new.window)
        if moves:
            moved, in_the_way = self._execution.search(new, affected, now)
            if in_the_way and not (force or dry_run):
                raise _refusal(in_the_way)
        if not dry_run:
            moved, in_the_way = self._execution.begin(
                old, new, affected, now, moves
            )
        return self._shown(new, now, moved=moved, in_the_way=in_the_way)

    def _shown(
        self, found: Maintenance, now: int, **concerned: list[Values]
    ) -> Values:
        """Return a maintenance, with reservations on its hosts by field."""
        names = _names(self._ledger.hosts(found.hosts))
        servers = [
            each for each in self._ledger.instances(list(names))
            if each.leaves_at > found.start
        ]
        return {
            **self._fields(found, now, names),
            'servers': len(servers),
            **{
                field: [
                    {**item, 'hosts': [names[uuid] for uuid in item['hosts']]}
                    for item in items
                ]
                for field, items in concerned.items()
            },
        }

    def _fields(
        self, found: Maintenance, now: int, names: Mapping[str, str]
    ) -> Values:
        return {
            **dataclasses.asdict(found),
            'hosts': sorted(names[h] for h in found.hosts if h in names),
            'status': found.status(now, self._conf.vacate_lead_time),
        }


def _repeated(attempt: Callable[[], Values]) -> Values:
    """Return the result of an attempt that no other commit has overtaken.

    :raises Unavailable: if other commits overtake each attempt
    """
    for _ in range(MAX_REPEATS):
        with contextlib.suppress(execution.Overtaken):
            return attempt()
    raise exception.Unavailable('the leases on the hosts change all the time')


def _changed(old: Maintenance, values: Values, now: int) -> Maintenance:
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
        _check_end(new.window, now)
    return new


def _check_end(window: Window, now: int) -> None:
    """Refuse a maintenance that is over.

    :raises InvalidInput: naming the field
    """
    if window.end <= now:
        raise exception.InvalidInput(
            'a maintenance must end in the future', field='end_date'
        )


def _chosen(known: Collection[Host], values: Values) -> list[Host]:
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


def _refusal(in_the_way: list[Values]) -> InTheWay:
    leases = list(dict.fromkeys(each['lease_id'] for each in in_the_way))
    shown = ', '.join(
        f'{each["lease_id"]} ({each["why"]})' for each in in_the_way[:_NAMED]
    )
    return InTheWay(
        f'{plural.counted(len(leases), "lease")} cannot leave the hosts: '
        f'{shown}',
        field='hosts',
    )


def _names(hosts: Iterable[Host]) -> dict[str, str]:
    return {host.uuid: host.hypervisor_hostname for host in hosts}


def start(manager: Manager) -> Running:
    """Answer the calls for maintenances, and go on with them."""
    maintenances = Maintenances(manager)
    manager.hosts.fill_in.append(execution.fill_in)
    return Running({
        'create_maintenance': maintenances.create,
        'list_maintenances': maintenances.list_all,
        'get_maintenance': maintenances.get,
        'update_maintenance': maintenances.update,
        'delete_maintenance': maintenances.delete,
    }, (maintenances,))
