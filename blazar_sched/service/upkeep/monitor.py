# SPDX-License-Identifier: Apache-2.0
"""Monitoring of hosts, and the healing of leases on failed hosts.

Nova is queried regularly, and whenever a notification says that a nova-compute
service was changed.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import functools

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain.host import Host
from blazar_sched.replica import limited_log
from blazar_sched.service import loop
from blazar_sched.service import slices
from blazar_sched.service.bus import payload
from blazar_sched.service.bus.notifier import HOST_FAILURE
from blazar_sched.service.bus.notifier import HOST_RECOVERY
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.upkeep import healing
from blazar_sched.service.upkeep import host as host_upkeep
from blazar_sched.service.upkeep import replanning

LOG = log.getLogger(__name__)

# Seconds until Placement, and then this service, know that a node of Ironic is
# free again: Nova and this service look once a minute.
SETTLING = 300


class Monitor(loop.Looped):
    """The monitor, which updates the hosts' `reservable` from Nova.

    See `healing.Healer`. Several managers may do the same: only differences
    are written.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, nova: Nova,
        hosts: host_upkeep.Hosts, healer: healing.Healer,
        replanner: replanning.Replanner, notifier: Notifier,
        clock: Callable[[], float],
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._nova = nova
        self._hosts = hosts
        self._healer = healer
        self._replanner = replanner
        self._notifier = notifier
        self._clock = clock
        # When nodes of Ironic that are not ready have failed, by uuid.
        self._failing: dict[str, int] = {}
        self._noticed = False
        self._loop = loop.Loop('host monitor', self.step)
        self._away = limited_log.LimitedLog(LOG)

    def notice(self) -> None:
        """Look at the hosts now."""
        self._noticed = True
        self.wake()

    def wake(self) -> None:
        """Heal and replan now."""
        self._loop.wake()

    def step(self) -> float:
        """Look at the hosts, if due; heal and replan."""
        noticed, self._noticed = self._noticed, False
        back: list[str] = []
        if noticed or self._conf.enable_polling_monitor:
            try:
                back = self.poll()
            except exception.Unavailable as e:
                self._away.report_away('host monitor', e)
                self._noticed = noticed
        self._healer.heal()
        self._replanner.replan()
        if back:
            # Leases have got their hosts back, with the servers on them. From
            # now on the other servers on these hosts count for themselves.
            for some in slices.of(back, slices.HOSTS):
                self._ledger.commit(functools.partial(
                    PlacingTx.bind_instances, hosts=some
                ))
        interval: float = self._conf.polling_interval
        return interval

    def poll(self) -> list[str]:
        """Write which hosts have failed or come back, slice by slice.

        :returns: the uuids of the hosts that have come back
        :raises Unavailable: if Nova does not answer
        """
        hosts = self._ledger.hosts()
        if not hosts:
            return []
        up = {h.uuid for h in self._nova.hypervisors() if h.up}
        unready = self._find_unready(hosts)
        changed = [h.uuid for h in _changed(hosts, up, unready)]
        if not changed:
            return []

        def work(tx: PlacingTx, some: Sequence[str]) -> list[Host]:
            found = _changed(tx.hosts(some), up, unready)
            return [tx.put_host(h) for h in found]

        written = [
            host for some in slices.of(changed, slices.HOSTS)
            for host in self._ledger.commit(functools.partial(work, some=some))
        ]
        for host in written:
            if host.reservable:
                LOG.info('Host %s is up again', host.hypervisor_hostname)
                self._notifier.tell(HOST_RECOVERY, payload.host(host))
            else:
                LOG.warning('Host %s has failed', host.hypervisor_hostname)
                self._notifier.tell(HOST_FAILURE, payload.host(host))
        return [host.uuid for host in written if host.reservable]

    def _find_unready(self, hosts: list[Host]) -> dict[str, bool]:
        """Return the nodes of Ironic that are reserved without a server.

        Such a node is being cleaned, or is out of service. Nova does not tell
        which: a node that takes longer than its cleaning time has failed.

        :returns: whether the node has failed, by uuid; False for a node that
            is not known yet
        :raises Unavailable: if Nova does not answer
        """
        reserved = {h.uuid: self._hosts.is_reserved_node(h) for h in hosts}
        nodes = [h for h in hosts if reserved[h.uuid]]
        on = self._ledger.instances([h.uuid for h in nodes]) if nodes else []
        used = {instance.host for instance in on}
        nodes = [h for h in nodes if h.uuid not in used]
        # A server that has just come has no record yet.
        names = {h.service_name for h in nodes}
        coming = {s.node for n in names for s in self._nova.servers(host=n)}
        now = int(self._clock())
        otherwise = 60 * self._conf.cleaning_time
        self._failing = {
            h.uuid: self._failing.get(
                h.uuid, now + max(SETTLING, h.cleaning_seconds(otherwise))
            )
            for h in nodes if h.hypervisor_hostname not in coming
        }
        return {
            **{uuid: False for uuid, is_ in reserved.items() if is_ is None},
            **{uuid: at <= now for uuid, at in self._failing.items()},
        }


def _changed(
    hosts: list[Host], up: Collection[str], unready: Mapping[str, bool]
) -> Iterator[Host]:
    """Yield the hosts whose `reservable` has changed, as changed.

    A host that is not ready, but has not failed, stays as it is: another
    manager may know for longer that the host is not ready.

    :param unready: as `Monitor._find_unready` returns
    """
    for host in hosts:
        reservable = host.uuid in up and (
            host.uuid not in unready
            or host.reservable and not unready[host.uuid]
        )
        if host.reservable != reservable:
            yield dataclasses.replace(host, reservable=reservable)
