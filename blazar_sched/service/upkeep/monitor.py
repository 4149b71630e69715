# SPDX-License-Identifier: Apache-2.0
"""Monitoring of hosts, and the healing of leases on failed hosts.

Floating IPs are monitored likewise. Nova is queried regularly, and whenever a
notification says that a nova-compute service was changed.
"""

from collections.abc import Iterator
import dataclasses

from oslo_config import cfg
from oslo_log import log

from blazar_sched.domain import exception
from blazar_sched.domain.host import Host
from blazar_sched.service import loop
from blazar_sched.service.bus.notifier import HOST_FAILURE
from blazar_sched.service.bus.notifier import HOST_RECOVERY
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.upkeep import floating_ip_healing
from blazar_sched.service.upkeep import healing
from blazar_sched.service.upkeep import replanning

LOG = log.getLogger(__name__)


class Monitor(loop.Looped):
    """The monitor, which updates the hosts' `reservable` from Nova.

    See `healing.Healer`. Several managers may do the same: only differences
    are written.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        nova: Nova,
        healer: healing.Healer,
        replanner: replanning.Replanner,
        notifier: Notifier,
        floating_ips: floating_ip_healing.Healer,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._nova = nova
        self._healer = healer
        self._replanner = replanner
        self._notifier = notifier
        self._floating_ips = floating_ips
        self._noticed = False
        self._loop = loop.Loop('host monitor', self.step)

    def notice(self) -> None:
        """Look at the hosts now."""
        self._noticed = True
        self.wake()

    def wake(self) -> None:
        """Heal and replan now."""
        self._loop.wake()

    def step(self) -> float:
        """Look at the hosts and the floating IPs, if due; heal and replan."""
        noticed, self._noticed = self._noticed, False
        back: list[str] = []
        if noticed or self._conf.enable_polling_monitor:
            try:
                back = self.poll()
            except exception.Unavailable as e:
                LOG.warning('Could not read the status of hosts: %s', e)
                self._noticed = noticed
        self._healer.heal()
        self._replanner.replan()
        if back:
            # Leases have got their hosts back, with the servers on them. From
            # now on the other servers on these hosts count for themselves.
            self._ledger.commit(lambda tx: tx.bind_instances(back))
        if self._conf.enable_polling_monitor:
            self._floating_ips.heal()
        interval: float = self._conf.polling_interval
        return interval

    def poll(self) -> list[str]:
        """Write which hosts have failed or come back, in one commit at most.

        :returns: the uuids of the hosts that have come back
        :raises Unavailable: if Nova does not answer
        """
        hosts = self._ledger.hosts()
        if not hosts:
            return []
        up = {h.uuid for h in self._nova.hypervisors() if h.up}
        changed = [h.uuid for h in _changed(hosts, up)]
        if not changed:
            return []

        def work(tx: PlacingTx) -> list[Host]:
            return [tx.put_host(h) for h in _changed(tx.hosts(changed), up)]

        written = self._ledger.commit(work)
        for host in written:
            if host.reservable:
                LOG.info('Host %s is up again', host.hypervisor_hostname)
                self._notifier.host(HOST_RECOVERY, host)
            else:
                LOG.warning('Host %s has failed', host.hypervisor_hostname)
                self._notifier.host(HOST_FAILURE, host)
        return [host.uuid for host in written if host.reservable]


def _changed(
    hosts: list[Host], up: set[str]
) -> Iterator[Host]:
    """Yield the hosts whose `reservable` has changed, as changed."""
    for host in hosts:
        reservable = host.uuid in up
        if host.reservable != reservable:
            yield dataclasses.replace(host, reservable=reservable)
