# SPDX-License-Identifier: Apache-2.0
"""Watches which reservable hosts are up, and has what failed healed.

Nova is asked regularly, and whenever it notifies of a nova-compute service
that was changed. What a notification says is not believed: it may be old.
"""

from collections.abc import Callable
from collections.abc import Iterator
import dataclasses
from typing import Any

from oslo_config import cfg
from oslo_log import log
import oslo_messaging

from blazar_sched.domain import exception
from blazar_sched.domain import host as host_
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.manager import healing
from blazar_sched.service.manager import loop
from blazar_sched.service.manager import notifier as notifier_
from blazar_sched.service.manager import rpc

LOG = log.getLogger(__name__)

SERVICE_UPDATE = 'service.update'
# Notifications are shared by the managers, and taken from nobody else.
POOL = 'blazar-sched'


class Monitor:
    """Keeps the hosts' `reservable` true to Nova; see `healing.Healer`.

    Several managers may do the same: only what differs is written.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: ledger_.Ledger,
        nova: nova_.Nova,
        healer: healing.Healer,
        notifier: notifier_.Notifier,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._nova = nova
        self._healer = healer
        self._notifier = notifier
        self._noticed = False
        self._loop = loop.Loop('host monitor', self.step)
        self._parts: list[loop.Loop | rpc.Background] = [self._loop]
        if self._conf.enable_notification_monitor:
            self._parts.append(rpc.Background(_listener(conf, self.notice)))

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def stop(self) -> None:
        for part in reversed(self._parts):
            part.stop()

    def notice(self) -> None:
        """Look at the hosts now."""
        self._noticed = True
        self._loop.poke()

    def step(self) -> float:
        """Look at the hosts, if that is due, and heal."""
        noticed, self._noticed = self._noticed, False
        if noticed or self._conf.enable_polling_monitor:
            try:
                self.look()
            except exception.Unavailable as e:
                LOG.warning('It is not known which hosts are up: %s', e)
                self._noticed = noticed
        self._healer.heal()
        interval: float = self._conf.polling_interval
        return interval

    def look(self) -> None:
        """Write which hosts have failed or come back, in one commit at most.

        :raises Unavailable: if Nova does not answer
        """
        hosts = self._ledger.hosts()
        if not hosts:
            return
        up = {h.uuid for h in self._nova.hypervisors() if h.up}
        changed = [h.uuid for h in _changed(hosts, up)]
        if not changed:
            return

        def work(tx: Any) -> list[host_.Host]:
            return [tx.put_host(h) for h in _changed(tx.hosts(changed), up)]

        for host in self._ledger.commit(work):
            if host.reservable:
                LOG.info('Host %s is back', host.hypervisor_hostname)
                self._notifier.host(notifier_.HOST_RECOVERY, host)
            else:
                LOG.warning('Host %s has failed', host.hypervisor_hostname)
                self._notifier.host(notifier_.HOST_FAILURE, host)


def _changed(
    hosts: list[host_.Host], up: set[str]
) -> Iterator[host_.Host]:
    """Yield the hosts that are no longer as they were, as they are."""
    for host in hosts:
        reservable = host.uuid in up
        if host.reservable != reservable:
            yield dataclasses.replace(host, reservable=reservable)


class _Endpoint:
    """Hears of Nova's services."""

    filter_rule = oslo_messaging.NotificationFilter(
        event_type=f'^{SERVICE_UPDATE}$'
    )

    def __init__(self, notice: Callable[[], object]) -> None:
        self._notice = notice

    def info(
        self,
        ctxt: Any,
        publisher_id: str,
        event_type: str,
        payload: Any,
        metadata: Any,
    ) -> None:
        self._notice()


def _listener(
    conf: cfg.ConfigOpts, notice: Callable[[], object]
) -> oslo_messaging.MessageHandlingServer:
    return oslo_messaging.get_notification_listener(
        oslo_messaging.get_notification_transport(conf),
        [
            oslo_messaging.Target(topic=topic)
            for topic in conf.manager.notification_topics
        ],
        [_Endpoint(notice)],
        executor='threading',
        pool=POOL,
    )
