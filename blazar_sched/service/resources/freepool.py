# SPDX-License-Identifier: Apache-2.0
"""Nova's aggregate of the hosts that are held as dedicated.

A dedicated host is in the aggregate from its registration to its deletion,
except in the windows of the reservations that have the host as a whole:
Blazar's own filter, and other users of that aggregate, expect this.
"""

from collections.abc import Collection

from oslo_config import cfg

from blazar_sched.service.clients.nova import Nova


class Freepool:
    """The aggregate of dedicated hosts; both operations may be repeated.

    Hosts are given by the names of their nova-compute services.
    """

    def __init__(self, conf: cfg.ConfigOpts, nova: Nova) -> None:
        self._name = conf.manager.freepool_aggregate_name
        self._nova = nova

    def join(self, hosts: Collection[str]) -> None:
        """Make sure that hosts are in the aggregate, making it if missing."""
        if not hosts:
            return
        pool = self._nova.aggregate(self._name)
        pool = pool or self._nova.create_aggregate(self._name, {})
        for host in hosts:
            self._nova.add_to_aggregate(pool, host)

    def leave(self, hosts: Collection[str]) -> None:
        """Make sure that hosts are not in the aggregate."""
        pool = self._nova.aggregate(self._name)
        if pool is None:
            return
        for host in hosts:
            self._nova.remove_from_aggregate(pool, host)
