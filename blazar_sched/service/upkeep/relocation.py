# SPDX-License-Identifier: Apache-2.0
"""Relocation: the paths of instances, and the moves that the paths ask for.

The ledger keeps the path of each instance that must leave its host before its
end. A move begins at the start of the next stay: Nova migrates the instance to
exactly that host, where the relocation allocation admits this instance and no
other instance. The record of the instance tells that the move is done. Any
manager may ask for a move, and several may: Nova refuses the second request.

A cold migration stops the instance meanwhile. At the start of the next stay
the owner is notified, by MOVE_AT in the metadata of the instance, and may
choose another time until the last possible start. Nova keeps the place that
the instance has left until the migration is confirmed; MOVING in the metadata
lets any manager recognize the migrations that it has to confirm.

An instance that must leave its host and has no path is *unplanned*. A path is
looked for again with each step; such an instance is reported, and is never
removed by this module.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools
import itertools
from typing import TypeVar

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.way import COLD
from blazar_sched.placing import overload
from blazar_sched.placing import relocation
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service import slices
from blazar_sched.service.booking import placing_options
from blazar_sched.service.bus import payload
from blazar_sched.service.bus.notifier import INSTANCE_RELOCATION_END
from blazar_sched.service.bus.notifier import INSTANCE_RELOCATION_ERROR
from blazar_sched.service.bus.notifier import INSTANCE_RELOCATION_LATE
from blazar_sched.service.bus.notifier import INSTANCE_RELOCATION_PLANNED
from blazar_sched.service.bus.notifier import INSTANCE_RELOCATION_START
from blazar_sched.service.bus.notifier import INSTANCE_UNPLANNED
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.clients.nova.server import VERIFY_RESIZE
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.resources import preemption

T = TypeVar('T')

LOG = log.getLogger(__name__)

# Seconds between two looks for moves that are due, and for missing paths.
INTERVAL = 5.0
# The instances whose paths one commit writes.
INSTANCES_IN_COMMIT = 5
# Seconds until Nova is asked again for a move that has not happened.
PAUSE = 30
# The most requests for a move to one host, if a path leads to another host.
MAX_REQUESTS = 3

# Metadata keys of instances: the time of the cold migration, which the owner
# may change, and the host to which an instance is being migrated.
MOVE_AT = 'blazar_move_at'
MOVING = 'blazar_moving'

# An instance waits for its next stay, or is to be moved now, or has nowhere to
# go.
PLANNED, DUE, UNPLANNED = 'planned', 'due', 'unplanned'


def with_path(
    replica: state.Replica, old: Instance | None, new: Instance, now: int,
    rules: Rules | None,
) -> Instance:
    """Return a new record of an instance with the path of the instance.

    The old path is kept as long as the record needs the same on the same host.
    A move along the path ends the path's first stay. Otherwise the path is
    planned anew.
    """
    if rules is None or not new.movable:
        return new
    if old is not None and _needs(old) == _needs(new):
        if old.host == new.host:
            return dataclasses.replace(new, path=old.path)
        if old.relocations and old.relocations[0].host == new.host:
            return dataclasses.replace(new, path=_advanced(old))
    path = relocation.plan(replica, new, now, rules, urgent=True)
    return dataclasses.replace(new, path=path or ())


def _needs(instance: Instance) -> tuple[object, ...]:
    return instance.amounts, instance.end, instance.movable


def _advanced(instance: Instance) -> relocation.Path:
    """Return the path of an instance that has come to its next host."""
    left = instance.relocations
    return left if len(left) > 1 else ()


@dataclasses.dataclass(slots=True)
class _MoveRequests:
    """The requests to Nova for one move.

    :ivar target: the uuid of the host
    :ivar count: how many requests there were
    :ivar next_look: when the instance is looked at again
    :ivar begun: whether Nova has accepted the last request
    """

    target: str
    count: int = 0
    next_look: int = 0
    begun: bool = False


def report_end(
    notifier: Notifier, nodes: Mapping[str, str], old: Instance | None,
    new: Instance,
) -> None:
    """Send a notification if an instance has come to its next host.

    :param nodes: the uuids of the hosts by hypervisor hostname
    :param old: the record before the look at Nova that found the instance
    """
    if old is None or old.host == new.host:
        return
    if old.relocations and old.relocations[0].host == new.host:
        names = {uuid: name for name, uuid in nodes.items()}
        notifier.tell(INSTANCE_RELOCATION_END, payload.relocation(
            old, names.get(old.host, ''), names[new.host]
        ))


class Relocations(loop.Looped):
    """The loop that moves instances along their paths.

    :param clock: returns the time in epoch seconds
    :param notice: has an instance looked at soon
    :param metrics_: the metrics that count what the manager does
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, nova: Nova,
        notifier: Notifier, clock: Callable[[], float],
        notice: Callable[[str], None], metrics_: Metrics,
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._nova = nova
        self._notifier = notifier
        self._clock = clock
        self._notice = notice
        self._metrics = metrics_
        # The requests for moves that are due, by the uuid of the instance.
        self._requests: dict[str, _MoveRequests] = {}
        # The instances whose cold migration may have to be confirmed, by uuid
        # with the hostname of the target; None before the first look, which is
        # at all servers.
        self._unconfirmed: dict[str, str] | None = None
        # The instances that were reported, by the type of the notification.
        self._reported: dict[str, set[str]] = defaultdict(set)
        self._objects = loop.Objects[tuple[Instance, Host]](
            'relocation', metrics_
        )
        self._loop = loop.Loop('relocation', self.step, lambda: INTERVAL)

    def step(self) -> None:
        """Plan the missing paths, and begin the moves that are due.

        :raises Unavailable: if Nova does not answer
        """
        rules_ = placing_options.rules(self._conf)
        if rules_ is None:
            return
        now = int(self._clock())
        self._report(
            INSTANCE_UNPLANNED, metrics.UNPLANNED, self._plan(now, rules_),
            'a reservation starts there, and no other host has room',
        )
        self._drop_needless(now)
        self._report(
            INSTANCE_RELOCATION_LATE, metrics.LATE,
            self._ledger.read_replica(lambda replica: _late(replica, now)),
            'a reservation needs the host now, and another host has room',
        )
        due = self._ledger.read_replica(lambda replica: _due(replica, now))
        self._requests = {
            each.uuid: self._requests_for(each.uuid, target.uuid)
            for each, target in due
        }

        def move(due: tuple[Instance, Host]) -> None:
            instance, target = due
            requests = self._requests[instance.uuid]
            if now >= requests.next_look:
                requests.next_look = now + PAUSE
                self._move(instance, target, requests, now, rules_)

        self._objects.each(((each[0].uuid, each) for each in due), move, now)
        self._confirm({
            each.uuid: target.hypervisor_hostname for each, target in due
            if each.movable == COLD
        })

    def _confirm(self, moving: Mapping[str, str]) -> None:
        """Confirm the cold migrations that have ended.

        :param moving: the hypervisor hostname to which an instance is to be
            migrated now, by its uuid
        """
        # A server may have to be moved on before its last migration has been
        # confirmed, which Nova then refuses.
        before = self._unconfirmed or {}
        if self._unconfirmed is None:
            servers = [*self._nova.servers(status=VERIFY_RESIZE)]
            targets = {
                s.uuid: s.metadata[MOVING] for s in servers
                if MOVING in s.metadata
            }
        else:
            # Kept if a query fails: the next look would not know them.
            targets = self._unconfirmed = {**self._unconfirmed, **moving}
            servers = [
                server for uuid in targets
                if (server := self._nova.server(uuid)) is not None
            ]
        unconfirmed = dict(moving)
        for server in servers:
            target = targets.get(server.uuid)
            if target is None:
                continue
            if server.task is not None:
                unconfirmed.setdefault(server.uuid, target)
            elif server.status == VERIFY_RESIZE and server.node in (
                target, before.get(server.uuid), server.metadata.get(MOVING)
            ):
                self._nova.confirm_migration(server)
                unconfirmed[server.uuid] = target
            elif server.uuid not in moving and MOVING in server.metadata:
                self._nova.set_server_metadata(
                    server, {MOVE_AT: None, MOVING: None}
                )
        self._unconfirmed = unconfirmed

    def _requests_for(self, uuid: str, target: str) -> _MoveRequests:
        """Return the requests for the move of an instance to a host."""
        known = self._requests.get(uuid)
        if known is not None and known.target == target:
            return known
        return _MoveRequests(target)

    def _plan(self, now: int, rules: Rules) -> list[Instance]:
        """Plan paths for the instances that need one; return the others."""
        def work(some: Iterable[Instance], tx: PlacingTx) -> list[Instance]:
            failed, planned = [], []
            for each in some:
                path = relocation.plan(
                    tx.replica, each, now, rules, urgent=True
                )
                if path is None:
                    failed.append(each)
                else:
                    planned.append(dataclasses.replace(each, path=path))
                    tx.expect(planned[-1:])
            tx.put_instances(planned)
            return failed

        return list(itertools.chain(
            *self._in_slices(_unplanned, _is_unplanned, now, work)
        ))

    def _drop_needless(self, now: int) -> None:
        """Drop the due paths of instances that need not leave any more."""
        def work(some: Iterable[Instance], tx: PlacingTx) -> None:
            staying = []
            for each in some:
                staying.append(dataclasses.replace(each, path=()))
                tx.expect(staying[-1:])
            tx.put_instances(staying)

        self._in_slices(_needless, _is_needless, now, work)

    def _in_slices(
        self, find: Callable[[state.Replica, int], list[Instance]],
        is_found: Callable[[state.Replica, Instance, int], bool], now: int,
        work: Callable[[Iterable[Instance], PlacingTx], T],
    ) -> list[T]:
        """Commit the work on instances, a few of them in each commit.

        :param find: looks through the whole replica, outside of the commits
        :param is_found: tells, in a commit, whether an instance is found
            still. Each instance is asked about after the work on the instance
            before, which may need the same room
        """
        found, catalog = self._ledger.read_replica(lambda replica: (
            [(each, replica.hosts[each.host]) for each in find(replica, now)],
            replica.catalog,
        ))
        # The hosts are matched ahead of the commits, as that takes long.
        for each, host in found:
            catalog.relocation_targets(host, each.countable())

        def commit(uuids: Sequence[str], tx: PlacingTx) -> T:
            replica = tx.replica
            replica.advance(now)
            known = map(replica.instances.get, uuids)
            return work((
                each for each in known if each and is_found(replica, each, now)
            ), tx)

        return [
            self._ledger.commit(functools.partial(commit, some))
            for some in slices.of(
                [each.uuid for each, _ in found], INSTANCES_IN_COMMIT
            )
        ]

    def _report(
        self, event_type: str, metric: metrics.Metric,
        instances: Iterable[Instance], problem: str,
    ) -> None:
        """Report the instances of a kind that were not reported yet.

        :param metric: the gauge of their number
        :param problem: what the log says of an instance on its host
        """
        found = {each.uuid: each for each in instances}
        for uuid in found.keys() - self._reported[event_type]:
            instance = found[uuid]
            LOG.warning(
                'Instance %s is still on host %s: %s', uuid, instance.host,
                problem,
            )
            self._notifier.tell(event_type, {
                'instance_id': uuid,
                'project_id': instance.project_id,
                'host_id': instance.host,
            })
        self._reported[event_type] = set(found)
        self._metrics.of(metric).set(len(found))

    def _move(
        self, instance: Instance, target: Host, requests: _MoveRequests,
        now: int, rules: Rules,
    ) -> None:
        """Ask Nova for a move, or look for another path after many requests.
        """
        server = self._nova.server(instance.uuid)
        if server is None or server.task is not None:
            return
        if server.node == target.hypervisor_hostname:
            # The record of the instance is late.
            self._notice(instance.uuid)
            return
        if requests.begun:
            requests.begun = False
            self._tell(INSTANCE_RELOCATION_ERROR, instance, server, target)
        if requests.count:
            self._metrics.of(metrics.MOVES, metrics.FAILED).inc()
            LOG.warning(
                'Instance %s is not on host %s after %d requests to Nova',
                instance.uuid, target.hypervisor_hostname, requests.count,
            )
        if requests.count >= MAX_REQUESTS and self._lead_elsewhere(
            instance, target, now, rules
        ):
            return
        if instance.movable == COLD:
            latest = instance.leaves_at - rules.lead
            if not self._is_time(latest, server, now):
                requests.next_look = min(requests.next_look, latest)
                return
            self._nova.set_server_metadata(
                server, {MOVING: target.hypervisor_hostname}
            )
        self._make_room(instance, target, now)
        LOG.info(
            'Moving instance %s to host %s', instance.uuid,
            target.hypervisor_hostname,
        )
        self._migrate(instance, server, target, requests)
        outcome, event_type = metrics.ACCEPTED, INSTANCE_RELOCATION_START
        if not requests.begun:
            now_there = self._nova.server(instance.uuid)
            if now_there is None or now_there.task is not None:
                # Another manager was first, or the instance is deleted.
                return
            outcome, event_type = metrics.REFUSED, INSTANCE_RELOCATION_ERROR
            LOG.warning(
                'Nova refused to move instance %s to host %s', instance.uuid,
                target.hypervisor_hostname,
            )
        self._metrics.of(metrics.MOVES, outcome).inc()
        self._tell(event_type, instance, server, target)
        self._notice(instance.uuid)

    def _migrate(
        self, instance: Instance, server: Server, target: Host,
        requests: _MoveRequests,
    ) -> None:
        """Ask Nova for a move, and count the request if Nova decides it."""
        try:
            requests.begun = self._nova.migrate_server(
                server, target.service_name, instance.movable
            )
        except exception.Unavailable as e:
            # Nova that can do nothing now has not tried this host.
            requests.count += e.refused
            raise
        requests.count += 1

    def _is_time(self, latest: int, server: Server, now: int) -> bool:
        """Tell whether a cold migration begins now; notify the owner.

        The owner may have chosen any time until the last possible start.

        :param latest: the last possible start
        """
        try:
            chosen = duration.parse_time(server.metadata.get(MOVE_AT), MOVE_AT)
        except exception.InvalidInput:
            chosen = None
        if now < latest and (chosen is None or chosen > latest):
            at = duration.format_time(latest)
            self._nova.set_server_metadata(server, {MOVE_AT: at})
            self._notifier.tell(INSTANCE_RELOCATION_PLANNED, {
                'instance_id': server.uuid,
                'project_id': server.project_id,
                'hypervisor_hostname': server.node,
                'move_at': at,
            })
        return now >= latest or chosen is not None and chosen <= now

    def _tell(
        self, event_type: str, instance: Instance, server: Server, target: Host
    ) -> None:
        self._notifier.tell(event_type, payload.relocation(
            instance, server.node or '', target.hypervisor_hostname
        ))

    def _lead_elsewhere(
        self, instance: Instance, target: Host, now: int, rules: Rules
    ) -> bool:
        """Give an instance a path that avoids a host, if there is such a path.
        """

        def work(tx: PlacingTx) -> bool:
            tx.replica.advance(now)
            path = relocation.plan(
                tx.replica, instance, now, rules, urgent=True,
                avoid=target.uuid,
            )
            is_current = tx.replica.instances.get(instance.uuid) == instance
            if not path or not is_current:
                return False
            tx.put_instances([dataclasses.replace(instance, path=path)])
            return True

        return self._ledger.commit(work)

    def _make_room(self, instance: Instance, target: Host, now: int) -> None:
        """Preempt the instances that yield on a host, as far as needed.

        What open reservations keep and do not use needs room, too.
        """
        taken = self._ledger.read_replica(
            lambda replica: relocation.taken_now(
                replica, target.uuid, now, instance.uuid
            )
        )
        excess = {
            name: instance.amounts.get(name, 0) + amount - held.capacity
            for name, amount in taken.items()
            if (held := target.inventory.get(name)) is not None
            and instance.amounts.get(name, 0) + amount > held.capacity
        }
        if not excess:
            return
        yielding = [
            server
            for server in self._nova.servers(host=target.service_name)
            if server.preemptible
            and server.node == target.hypervisor_hostname
        ]
        going = preemption.choose(
            yielding, excess, now, preemption.preference(self._conf.manager)
        )
        preemption.preempt(self._ledger, self._nova, going)


def _due(replica: state.Replica, now: int) -> list[tuple[Instance, Host]]:
    """Return the instances whose next stay has begun, with its host.

    A host that is down is left out: another path is looked for.
    """
    return [
        (each, replica.hosts[each.relocations[0].host])
        for each in _planned(replica) if _is_due(replica, each, now)
    ]


def _is_due(replica: state.Replica, instance: Instance, now: int) -> bool:
    stays = instance.relocations
    return (
        bool(stays) and stays[0].start <= now
        and replica.hosts[stays[0].host].available
    )


def _late(replica: state.Replica, now: int) -> list[Instance]:
    """Return the instances that should have left their hosts by now."""
    return [each for each in _planned(replica) if each.leaves_at <= now]


def _needless(replica: state.Replica, now: int) -> list[Instance]:
    """Return the instances that are due to move, and could stay to their end.

    The reservation may be gone, or the instances that would have come.
    """
    replica.advance(now)
    return [
        each for each in _planned(replica) if _is_needless(replica, each, now)
    ]


def _is_needless(replica: state.Replica, instance: Instance, now: int) -> bool:
    return _is_due(replica, instance, now) and not relocation.must_leave(
        replica, instance, now
    )


def _unplanned(replica: state.Replica, now: int) -> list[Instance]:
    """Return the instances that need a path, or another path.

    These are the instances that must leave their hosts and have no path, and
    those that cannot go along their paths any more.

    O(hosts).
    """
    replica.advance(now)
    without_path = (
        each
        for host in overload.overloaded_hosts(replica, now)
        for each in replica.present.instances_on(host) if not each.path
    )
    return [
        each for each in (*_planned(replica), *without_path)
        if _is_unplanned(replica, each, now)
    ]


def _is_unplanned(
    replica: state.Replica, instance: Instance, now: int
) -> bool:
    if instance.path:
        return not relocation.is_open(replica, instance, now)
    return (
        instance.movable != ''
        and replica.hosts[instance.host].reservable
        and relocation.must_leave(replica, instance, now)
    )


def _planned(replica: state.Replica) -> list[Instance]:
    """Return the instances that have a path."""
    planned = {uuid for uuids in replica.arriving.values() for uuid in uuids}
    return [replica.instances[uuid] for uuid in sorted(planned)]


def outlook(
    replica: state.Replica, now: int
) -> list[tuple[Instance, int, str]]:
    """Return the instances that must leave their hosts, the next one first.

    :param replica: of the ledger
    :returns: for each instance the time at which it must have left its host,
        and PLANNED, DUE or UNPLANNED
    """
    lost = {each.uuid: each for each in _unplanned(replica, now)}
    due = {each.uuid for each, _ in _due(replica, now)}
    with_path = {uuid for uuids in replica.arriving.values() for uuid in uuids}
    found = [
        (each, each.leaves_at, DUE if each.uuid in due else PLANNED)
        for each in map(replica.instances.__getitem__, with_path - lost.keys())
    ]
    for each in lost.values():
        seconds = replica.indexes.horizon(each, now)
        if now + seconds < each.end:
            found.append((each, now + seconds, UNPLANNED))
    return sorted(found, key=lambda item: (item[1], item[0].uuid))
