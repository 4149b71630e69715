# SPDX-License-Identifier: Apache-2.0
"""Export of the ledger into Blazar's database, in a single transaction."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import time

from oslo_config import cfg

from blazar_sched.domain import exception
from blazar_sched.domain import plural
from blazar_sched.domain import states
from blazar_sched.parts.blazar import tables as blazar
from blazar_sched.parts.blazar.exporting.objects import Made
from blazar_sched.parts.blazar.exporting.objects import Objects
from blazar_sched.parts.blazar.exporting.plan import ExportPlan
from blazar_sched.parts.blazar.exporting.plan import Planner
from blazar_sched.parts.blazar.importing import cleanup
from blazar_sched.parts.blazar.importing import comparison
from blazar_sched.parts.blazar.importing.lookup import Lookup
from blazar_sched.parts.blazar.importing.plan import OWN
from blazar_sched.parts.blazar.importing.plan import Plan
from blazar_sched.parts.blazar.importing.plan import Planner as ImportPlanner
from blazar_sched.parts.blazar.importing.plan import RefusedRow
from blazar_sched.service import faults
from blazar_sched.service import parts
from blazar_sched.service import resources
from blazar_sched.service.resources import base


class Exporter:
    """An exporter; Blazar and all managers must be stopped during `write`.

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
        self._services = services
        self._drivers = resources.Drivers(services, parts.running(conf))
        self._tell = tell
        self._clock = clock

    def plan(self, url: str) -> ExportPlan:
        """Return the plan of an export, without any write.

        :param url: the URL of Blazar's database
        :raises NotUpgraded: if the ledger's tables are not this version's
        :raises Conflict: if Blazar's database is of another cloud, or newer
            than the ledger
        :raises InvalidInput: if the database is not that of Blazar 18
        :raises Unavailable: if the database or another service does not
            answer
        """
        ledger = self._read_ledger()
        self._tell("Reading Blazar's database")
        known = blazar.read(url)
        self._tell('Asking Nova, Placement and Neutron')
        plan = Planner(ledger, known, self._as_import).plan()
        return dataclasses.replace(plan, notes=[*plan.notes, *self._skipped()])

    def write(self, url: str, plan: ExportPlan) -> list[str]:
        """Write the whole plan, or nothing to Blazar's database.

        What is created in other services before the only transaction is
        created again, or used, by another export, and by the managers.

        :returns: notes
        :raises Conflict: if either database has changed since the plan, or is
            in use by another program
        :raises InvalidInput: if Blazar's database cannot store a value
        :raises Unavailable: if the database or another service does not
            answer
        """
        blazar.require_stopped(url)
        self._require_unchanged(plan)
        self._tell('Creating aggregates, flavors and server groups')
        objects = Objects(self._services)
        made = objects.make(plan.leases, plan.ledger.hosts)
        faults.point('export:created')
        for kept in plan.deleted:
            # What Blazar has created for leases that were deleted here.
            if kept.lease.status != states.LEASE_TERMINATED:
                for reservation in kept.lease.reservations:
                    cleanup.remove(self._services, reservation)
        faults.point('export:removed')
        self._tell("Writing Blazar's database")
        self._require_unchanged(plan)
        blazar.write(url, plan.known, _with_objects(plan.wanted, made))
        return objects.notes

    def compare(
        self, url: str, plan: ExportPlan | None = None
    ) -> list[RefusedRow]:
        """Return what differs between the ledger and Blazar's database.

        :param plan: the plan that was written: what the plan has refused is
            not compared; None to compare everything
        :raises NotUpgraded: as `plan` does; other errors likewise
        """
        ledger = self._read_ledger()
        blazars = self._as_import(blazar.read(url))
        if plan is not None:
            known = {each.id for each in plan.refused}
            ledger, blazars = _without(ledger, known), _without(blazars, known)
        return comparison.differences(ledger, blazars)

    def _read_ledger(self) -> Plan:
        self._services.ledger.require_current()
        self._tell('Reading the ledger')
        # Commits wait meanwhile, so all is of one state.
        return self._services.ledger.dry_run(comparison.contents)

    def _require_unchanged(self, plan: ExportPlan) -> None:
        if self._read_ledger() != plan.ledger:
            raise exception.Conflict(
                'the ledger has changed since it was read: stop all managers, '
                'and repeat the command'
            )

    def _as_import(self, tables: blazar.Tables) -> Plan:
        """Return what an import of Blazar's tables would create."""
        return ImportPlanner(
            tables, Lookup(self._services, self._conf.nova.region_name or ''),
            self._drivers, int(self._clock()),
            self._conf.manager.vacate_lead_time,
        ).plan()

    def _skipped(self) -> list[str]:
        """Return notes about what Blazar does not have, or does not spare."""
        ledger, now = self._services.ledger, int(self._clock())
        others = Counter(
            each.host for each in ledger.instances() if each.claim is None
        )
        return [
            f'{kind} {each.id} ({each.name}) is not exported'
            for pending in parts.each(
                'models', 'pending', parts.running(self._conf)
            )
            for kind, found in [ledger.run(pending, now)]
            for each in found
        ] + [
            f'host {each.hypervisor_hostname} joins the freepool with '
            f'{plural.counted(others[each.uuid], "server")} of no '
            'reservation: Blazar deletes these when a lease of the whole host '
            'starts'
            for each in ledger.hosts(sorted(others))
        ]


def _with_objects(
    tables: blazar.Tables, made: Mapping[str, Made]
) -> blazar.Tables:
    """Return the rows with the ids of the objects of each reservation."""
    own = dict.fromkeys(OWN.values())
    return {
        name: [
            {**row, **made.get(row['reservation_id'], {})}
            for row in rows
        ]
        if name in own
        else rows
        for name, rows in tables.items()
    }


def _without(plan: Plan, ids: set[str]) -> Plan:
    return dataclasses.replace(
        plan, leases=[k for k in plan.leases if k.lease.id not in ids]
    )
