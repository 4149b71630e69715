# SPDX-License-Identifier: Apache-2.0
"""Relocation: the paths of instances, and the moves that the paths ask for.

The ledger keeps the path of each instance that must leave its host before its
end. A move begins at the start of the next stay: Nova live-migrates the server
to exactly that host, where nova-scheduler admits the server by its relocation
allocation, and nobody else. The record of the server tells that the move is
done. Any manager may ask for a move, and several may: Nova refuses the second
request.

An instance that must leave its host and has no path is *unplanned*. A path is
looked for again with each step; such an instance is reported, and is never
removed by this module.
"""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses

from oslo_config import cfg
from oslo_log import log

from blazar_sched.conf import relocation as relocation_conf
from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.relocation import Rules
from blazar_sched.placing import overload
from blazar_sched.placing import relocation
from blazar_sched.replica import packing
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service.bus.notifier import INSTANCE_UNPLANNED
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.metrics import Metrics
from blazar_sched.service.resources import vacating

LOG = log.getLogger(__name__)

# Seconds until Nova is asked again for a move that has not happened.
PAUSE = 30


def rules(conf: cfg.ConfigOpts) -> Rules | None:
    """Return the rules of relocation; None if no instance is relocated."""
    if not conf.manager.relocate_instances:
        return None
    return relocation_conf.rules(conf.manager)


def with_path(
    replica: state.Replica,
    old: Instance | None,
    new: Instance,
    now: int,
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
    path = relocation.plan(replica, new, now, rules)
    return dataclasses.replace(new, path=path or ())


def _needs(instance: Instance) -> tuple[object, ...]:
    return instance.amounts, instance.end, instance.movable


def _advanced(instance: Instance) -> relocation.Path:
    """Return the path of an instance that has come to its next host."""
    left = instance.relocations
    return left if len(left) > 1 else ()


class Relocations(loop.Looped):
    """The loop that moves instances along their paths.

    :param clock: returns the time in epoch seconds
    :param notice: has a server looked at soon
    :param metrics_: the metrics that count what the manager does
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        nova: Nova,
        notifier: Notifier,
        clock: Callable[[], float],
        notice: Callable[[str], None],
        metrics_: Metrics,
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._nova = nova
        self._notifier = notifier
        self._clock = clock
        self._notice = notice
        self._metrics = metrics_
        # When Nova was last asked to move a server, by uuid.
        self._asked: dict[str, int] = {}
        # The unplanned instances that were reported.
        self._reported: set[str] = set()
        self._loop = loop.Loop(
            'relocation', self.step,
            lambda: self._conf.manager.relocation_interval,
        )

    def step(self) -> None:
        """Plan the missing paths, and begin the moves that are due.

        :raises Unavailable: if Nova does not answer
        """
        rules_ = rules(self._conf)
        if rules_ is None:
            return
        now = int(self._clock())
        self._report(self._plan(now, rules_))
        self._drop_needless(now)
        due = self._ledger.read_replica(lambda replica: _due(replica, now))
        self._asked = {
            each.uuid: self._asked[each.uuid] for each, _ in due
            if each.uuid in self._asked
        }
        for instance, target in due:
            if now - self._asked.get(instance.uuid, 0) >= PAUSE:
                self._asked[instance.uuid] = now
                self._move(instance, target, now)

    def _plan(self, now: int, rules: Rules) -> list[Instance]:
        """Plan paths for the instances that need one; return the others."""
        if not self._ledger.read_replica(
            lambda replica: _unplanned(replica, now)
        ):
            return []

        def work(tx: PlacingTx) -> list[Instance]:
            failed = []
            with tx.replica.changing() as put:
                for each in _unplanned(tx.replica, now):
                    path = relocation.plan(tx.replica, each, now, rules)
                    if path is None:
                        failed.append(each)
                        continue
                    planned = dataclasses.replace(each, path=path)
                    put([planned])
                    tx.put_instance(planned)
            return failed

        return self._ledger.commit(work)

    def _drop_needless(self, now: int) -> None:
        """Drop the due paths of instances that need not leave any more."""
        if not self._ledger.read_replica(
            lambda replica: _needless(replica, now)
        ):
            return

        def work(tx: PlacingTx) -> None:
            for each in _needless(tx.replica, now):
                tx.put_instance(dataclasses.replace(each, path=()))

        self._ledger.commit(work)

    def _report(self, unplanned: Iterable[Instance]) -> None:
        """Report the unplanned instances that were not reported yet."""
        found = {each.uuid: each for each in unplanned}
        for uuid in found.keys() - self._reported:
            instance = found[uuid]
            LOG.warning(
                'Instance %s must leave host %s before a reservation starts '
                'there, and no other host has room for the instance',
                uuid, instance.host,
            )
            self._notifier.instance(
                INSTANCE_UNPLANNED, uuid, project_id=instance.project_id,
                host_id=instance.host,
            )
        self._reported = set(found)
        self._metrics.of(metrics.UNPLANNED).set(len(found))

    def _move(self, instance: Instance, target: Host, now: int) -> None:
        server = self._nova.server(instance.uuid)
        if server is None or server.task is not None:
            return
        self._make_room(instance, target, now)
        LOG.info(
            'Moving server %s to host %s', instance.uuid,
            target.hypervisor_hostname,
        )
        outcome = metrics.ACCEPTED
        if not self._nova.migrate_server(server, target.service_name):
            outcome = metrics.REFUSED
            LOG.warning(
                'Nova refused to move server %s to host %s', instance.uuid,
                target.hypervisor_hostname,
            )
        self._metrics.of(metrics.MOVES, outcome).inc()
        self._notice(instance.uuid)

    def _make_room(self, instance: Instance, target: Host, now: int) -> None:
        """Delete the servers that yield on a host, as far as needed."""
        room = self._ledger.read_replica(
            lambda replica: replica.present.recorded_room([target.uuid])
        )
        excess = {
            name: amount - left
            for name, amount, left in zip(
                inventory.RESOURCE_CLASSES,
                packing.amounts_of(instance.countable()), room, strict=True,
            )
            if amount > left
        }
        if not excess:
            return
        yielding = [
            server
            for server in self._nova.servers(host=target.service_name)
            if server.preemptible
            and server.node == target.hypervisor_hostname
        ]
        self._nova.delete_servers(vacating.choose(yielding, excess, now))


def _due(
    replica: state.Replica, now: int
) -> list[tuple[Instance, Host]]:
    """Return the instances whose next stay has begun, with its host.

    A host that is down is left out: another path is looked for.
    """
    planned = {
        uuid for uuids in replica.arriving.values() for uuid in uuids
    }
    found = [replica.instances[uuid] for uuid in sorted(planned)]
    due = [
        (each, replica.hosts[each.relocations[0].host])
        for each in found if each.relocations[0].start <= now
    ]
    return [(each, host) for each, host in due if host.available]


def _needless(replica: state.Replica, now: int) -> list[Instance]:
    """Return the instances that are due to move, and could stay to their end.

    The reservation may be gone, or the instances that would have come.
    """
    replica.advance(now)
    return [
        each for each, _ in _due(replica, now)
        if not relocation.must_leave(replica, each, now)
    ]


def _unplanned(replica: state.Replica, now: int) -> list[Instance]:
    """Return the instances that need a path, or another path.

    These are the instances that must leave their hosts and have no path, and
    those whose path leads to a host that takes no instances any more.
    """
    replica.advance(now)
    misled = {
        uuid for host, uuids in replica.arriving.items()
        if not replica.hosts[host].takes_relocated for uuid in uuids
    }
    return [
        *map(replica.instances.__getitem__, sorted(misled)),
        *_without_path(replica, now),
    ]


def _without_path(
    replica: state.Replica, now: int
) -> list[Instance]:
    return [
        each
        for host in overload.overloaded_hosts(replica, now)
        for each in replica.present.instances_on(host)
        if each.movable and not each.path
        and relocation.must_leave(replica, each, now)
    ]
