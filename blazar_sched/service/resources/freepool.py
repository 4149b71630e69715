# SPDX-License-Identifier: Apache-2.0
"""Nova's aggregate of the hosts that are held the dedicated way.

A dedicated host is in it from its registration to its deletion, but for the
windows of the reservations that have it as a whole: as Blazar's own
filter, and whatever else goes by that aggregate, expects it.
"""

from collections.abc import Collection

from oslo_config import cfg

from blazar_sched.service.clients.nova import Nova


class Freepool:
    """The aggregate; both steps may be done twice.

    Hosts are given by the names of their nova-compute services.
    """

    def __init__(self, conf: cfg.ConfigOpts, nova: Nova) -> None:
        self._name = conf.manager.freepool_aggregate_name
        self._nova = nova

    def join(self, hosts: Collection[str]) -> None:
        """Make sure that hosts are in it; it is made for the first."""
        if not hosts:
            return
        pool = self._nova.aggregate(self._name)
        pool = pool or self._nova.create_aggregate(self._name, {})
        for host in hosts:
            self._nova.add_to_aggregate(pool, host)

    def leave(self, hosts: Collection[str]) -> None:
        """Make sure that hosts are not in it."""
        pool = self._nova.aggregate(self._name)
        if pool is None:
            return
        for host in hosts:
            self._nova.remove_from_aggregate(pool, host)
