# SPDX-License-Identifier: Apache-2.0
"""The manager: ties its parts to one running object."""

from collections.abc import Callable
import time

from oslo_config import cfg
import oslo_messaging

from blazar_sched.conf import nova as nova_conf
from blazar_sched.conf import placement as placement_conf
from blazar_sched.service import resources
from blazar_sched.service.clients import nova as nova_
from blazar_sched.service.clients import placement as placement_
from blazar_sched.service.clients import rest
from blazar_sched.service.ledger import ledger as ledger_
from blazar_sched.service.manager import endpoint
from blazar_sched.service.manager import event
from blazar_sched.service.manager import host
from blazar_sched.service.manager import instance
from blazar_sched.service.manager import lease
from blazar_sched.service.manager import loop
from blazar_sched.service.manager import rpc


class Manager:
    """A manager over one ledger; its tables must be there.

    :param conf: the service's own configuration
    :param nova: a client, else one made of the [nova] group
    :param placement: a client, else one made of the [placement] group
    :param clock: returns the time in epoch seconds
    :param wait: sleeps for seconds
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        nova: nova_.Nova | None = None,
        placement: placement_.Placement | None = None,
        clock: Callable[[], float] = time.time,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._conf = conf
        nova = nova or nova_.Nova(rest.load_adapter(conf, nova_conf.GROUP))
        placement = placement or placement_.Placement(
            rest.load_adapter(conf, placement_conf.GROUP)
        )
        drivers = resources.Drivers(nova, placement)
        self.ledger = ledger_.Ledger(
            conf.database.connection, conf.database.max_retries
        )
        self.instances = instance.Instances(self.ledger, nova)
        self._sync = loop.Loop('instance sync', self._sync_instances)
        self.runner = event.Runner(
            conf, self.ledger, drivers, clock, self._sync.poke
        )
        self.leases = lease.Leases(
            conf, self.ledger, drivers, self.runner, clock, wait
        )
        self.hosts = host.Hosts(self.ledger, nova, placement, clock)
        self.endpoint = endpoint.Endpoint(
            self.ledger, self.leases, self.hosts
        )
        self._server: oslo_messaging.MessageHandlingServer | None = None

    def start(self) -> None:
        """Answer calls and do what is due, in threads.

        :raises Unavailable: if the ledger's tables are not this version's
        """
        self.ledger.require_current()
        self.runner.start()
        self._sync.start()
        self._server = rpc.serve(rpc.transport(self._conf), [self.endpoint])

    def stop(self) -> None:
        """Take no more calls and return once what is under way is over."""
        if self._server is not None:
            self._server.stop()
            self._server.wait()
        self._sync.stop()
        self.runner.stop()
        self.ledger.close()

    def _sync_instances(self) -> float:
        self.instances.sync()
        interval: float = self._conf.manager.sync_interval
        return interval
