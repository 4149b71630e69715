# SPDX-License-Identifier: Apache-2.0
"""Import of Blazar's database into an empty ledger, in a single commit."""

from collections.abc import Callable
import functools
import time

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.parts.blazar import tables as blazar
from blazar_sched.parts.blazar.importing.floating_ip import RESOURCE_TYPE
from blazar_sched.parts.blazar.importing.lookup import Lookup
from blazar_sched.parts.blazar.importing.plan import Plan
from blazar_sched.parts.blazar.importing.plan import Planner
from blazar_sched.replica import accounting
from blazar_sched.replica import instance_record
from blazar_sched.replica import state
from blazar_sched.service import parts
from blazar_sched.service import resources
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.ledger.reader import Reader
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.resources import base


class Importer:
    """An importer; Blazar and all managers must be stopped meanwhile.

    :param services: the ledger, and the other services as an admin
    :param tell: called with a description of each step
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, services: base.Services,
        tell: Callable[[str], object] = lambda text: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._conf = conf
        self._ledger = services.ledger
        self._drivers = resources.Drivers(services, parts.running(conf))
        self._lookup = Lookup(services, conf.nova.region_name or '')
        self._tell = tell
        self._clock = clock

    def plan(self, url: str) -> Plan:
        """Return the plan of an import, without any write.

        :param url: the URL of Blazar's database
        :raises NotUpgraded: if the ledger's tables are not this version's
        :raises Conflict: if the ledger is not empty
        :raises InvalidInput: if the database is not that of Blazar 18
        :raises Unavailable: if the database or another service does not
            answer
        """
        self._ledger.require_current()
        revision = self._ledger.snapshot(limit=1)['revision']
        _require_empty(self._ledger, revision)
        self._tell("Reading Blazar's database")
        tables = blazar.read(url)
        self._tell('Asking Nova, Placement and Neutron')
        return Planner(
            tables, self._lookup, self._drivers, int(self._clock()),
            self._conf.manager.vacate_lead_time,
        ).plan()

    def write(self, plan: Plan) -> None:
        """Write the whole plan, or nothing.

        The servers on the hosts are recorded in the same commit, so that no
        host wrongly appears empty to the first new lease.

        :raises Conflict: if the ledger is not empty, or would be inconsistent
        :raises Unavailable: if Nova does not answer
        """
        self._tell('Asking Nova for servers')
        names = {host.hypervisor_hostname: host.uuid for host in plan.hosts}
        servers = self._lookup.servers(names) if names else []
        self._tell('Writing')
        now = int(self._clock())
        self._ledger.commit(
            functools.partial(_write, plan=plan, servers=servers, now=now)
        )


def _require_empty(source: Reader, revision: int) -> None:
    """Refuse a ledger that has, or had, a lease, a host or a floating IP.

    :param source: the ledger, or a commit
    :param revision: the ledger's revision
    """
    if revision or source.off_hosts(RESOURCE_TYPE):
        raise exception.Conflict(
            'the ledger has, or had, leases, hosts or floating IPs: import '
            'into a new database, created by `blazar-sched db upgrade`'
        )


def _write(tx: PlacingTx, plan: Plan, servers: list[Server], now: int) -> None:
    _require_empty(tx, tx.replica.revision)
    # Hosts without an id are inserted after all hosts with an id, so that new
    # ids do not collide with existing ids.
    for host in sorted(plan.hosts, key=lambda host: not host.id):
        if host.id:
            tx.add_host(host)
        else:
            tx.put_host(host)
    for name, private in plan.properties.items():
        tx.put_property(name, private)
    for floating_ip in plan.floating_ips:
        tx.add_off_hosts(RESOURCE_TYPE, floating_ip)
    for kept in plan.leases:
        tx.add_lease(kept.lease, kept.allocations)
        for reservation_id, ids in kept.floating_ips.items():
            tx.put_off_hosts(
                RESOURCE_TYPE, reservation_id, ids, kept.lease.window
            )
    _write_servers(tx, plan, servers, now)
    faults = tx.check()
    if faults:
        raise exception.Conflict(
            'nothing was imported, because the ledger would be inconsistent: '
            + '; '.join(faults[:10])
        )


def _write_servers(
    tx: PlacingTx, plan: Plan, servers: list[Server], now: int
) -> None:
    # The replica of the commit lacks what the commit has written so far.
    replica = state.Replica(accounting.LedgerAccounting)
    replica.apply(0, tx.records)
    nodes = {host.hypervisor_hostname: host.uuid for host in plan.hosts}
    tx.put_instances([
        instance_record.make(replica, nodes[server.node or ''], server, now)
        for server in servers
    ])
