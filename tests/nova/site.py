# SPDX-License-Identifier: Apache-2.0
"""Managers and nova-schedulers around one ledger, for tests of clearing.

Each scheduler has a replica of its own, which follows the ledger only when a
test says so, and decides by Nova's own filter handler and HostStates. Nova and
Placement are in memory: Placement counts a server as soon as a scheduler has
decided, a HostState and the manager see the server once it has arrived.
"""

from collections import Counter
import contextlib
import dataclasses
import os
import shutil

from nova.scheduler import filters as nova_filters
from nova.scheduler import host_manager

from blazar_sched import filters
from blazar_sched.service.clients import placement
from blazar_sched.service.upkeep import clearing
from blazar_sched.worker import process
from blazar_sched.worker import threads
from blazar_sched.worker.pending import Pending
from tests.functional.manager.conftest import ManagerInMemory
from tests.nova import managing
from tests.nova import test_placed

OWNER, OTHERS = 'owner', 'others'
VCPUS = 4
NOTICE = 30


class Scheduler(threads.Worker):
    """A worker of nova-scheduler, without threads and without a bus."""

    def __init__(self, site):
        super().__init__(site.clock)
        self._site = site
        self._tried.set()
        self._filters = [each() for each in filters.all_filters()]
        self.pull()

    def call(self, method, **arguments):
        return getattr(self._site.ledger, method)(**arguments)

    def pull(self):
        self.puller.pull(self.now())

    def add_placed(self, instance, now, ttl):
        super().add_placed(instance, now, ttl)
        self._site.announced(instance)

    def forget(self):
        """Let the time pass after which a placed server counts no more."""
        self.pending = Pending()

    def passing(self, spec, host_states):
        before = process._worker, process._pid
        process._worker, process._pid = self, os.getpid()
        try:
            return nova_filters.HostFilterHandler().get_filtered_objects(
                self._filters, host_states, spec
            ) or []
        finally:
            process._worker, process._pid = before

    def place(self, spec, among=None):
        """Place a server as nova-scheduler does.

        :param among: the hosts that Nova asks about, by name; None for all
        :returns: the name of the host, None if there is no valid host
        """
        before = process._worker, process._pid
        host_states = self._site.host_states(among)
        for h in self.passing(spec, host_states):
            if self._site.claim(h.nodename, spec):
                process._worker, process._pid = self, os.getpid()
                try:
                    h.consume_from_request(spec)
                finally:
                    process._worker, process._pid = before
                return h.nodename
        return None


class Site(ManagerInMemory):
    """Two managers, two schedulers, and hosts of VCPUS."""

    def __init__(self, empty_ledger, folder, names):
        shutil.copy(empty_ledger, folder / 'ledger.sqlite')
        conf = managing.configured(
            folder, clear_notice=NOTICE, vacate_lead_time=0,
            vacate_preemptible_order=['delete'],
        )
        super().__init__(conf)
        self.conf = conf
        for name in names:
            self.add_host(name, VCPUS)
        # What Placement counts, and the hosts of the servers that have not
        # arrived yet.
        self.claimed = {}
        self.building = {}
        # Given the record of each server that is placed: announcements are
        # lost unless a test says otherwise.
        self.announced = lambda instance: None
        self.managers = [self.manager, self.another(conf)]
        self.schedulers = [Scheduler(self), Scheduler(self)]

    def close(self):
        for each in self.managers:
            each.ledger.close()

    def host_states(self, among=None):
        found = []
        for name, node in self.nova.nodes.items():
            if not node.up or among is not None and name not in among:
                continue
            here = [s for s in self.nova.stored.values() if s.node == name]
            used = Counter()
            for each in here:
                used.update(each.amounts)
            made = host_manager.HostState(name, name, 'cell')
            made.uuid = node.uuid
            made.vcpus_total, made.vcpus_used = VCPUS, used['VCPU']
            made.total_usable_ram_mb = VCPUS * 1024
            made.free_ram_mb = VCPUS * 1024 - used['MEMORY_MB']
            made.total_usable_disk_gb = VCPUS * 10
            made.free_disk_mb = (VCPUS * 10 - used['DISK_GB']) * 1024
            made.disk_mb_used = used['DISK_GB'] * 1024
            made.cpu_allocation_ratio = made.ram_allocation_ratio = 1.0
            made.disk_allocation_ratio = 1.0
            made.instances = {each.uuid: None for each in here}
            found.append(made)
        return found

    def claim(self, name, spec):
        """Claim a server in Placement; tell whether it fits.

        Each server of a reservation takes one unit of the resource class that
        the hosts of a reservation of instances have.
        """
        [bound] = spec.scheduler_hints.get('reservation', [None])
        there = [
            (each, vcpus) for uuid, (node, each, vcpus)
            in self.claimed.items()
            if node == name and uuid in self.nova.stored
        ]
        if sum(vcpus for _, vcpus in there) + spec.flavor.vcpus > VCPUS:
            return False
        units = self.placement.children.get(
            (name, placement.resource_class(bound or ''))
        )
        if units is not None and units <= sum(
            each == bound for each, _ in there
        ):
            return False
        self.claimed[spec.instance_uuid] = name, bound, spec.flavor.vcpus
        return True

    def boot(self, scheduler, vcpus=1, among=None, arrives=True, **asked):
        """Boot a server; return it, None if there is no valid host.

        :param asked: `preemptible`, `reservation`, as of test_placed.spec
        """
        spec = test_placed.spec(vcpus=vcpus, **asked)
        bound = asked.get('reservation')
        spec.project_id = OWNER if bound else OTHERS
        node = scheduler.place(spec, among)
        if node is None:
            return None
        server = self.add_server(
            node, spec.project_id, uuid=spec.instance_uuid,
            amounts={'VCPU': vcpus, 'MEMORY_MB': 1, 'DISK_GB': 1},
            preemptible=asked.get('preemptible', False), reservation_id=bound,
            created=self.now,
        )
        if not arrives:
            self.building[server.uuid] = node
            self.nova.stored[server.uuid] = dataclasses.replace(
                server, node=None, status='BUILD', task='spawning'
            )
        return server

    def arrive(self, which=lambda server: True):
        """Let servers that are being built appear on their hosts.

        A server that was deleted meanwhile does not.
        """
        stored = self.nova.stored
        for uuid, node in list(self.building.items()):
            if uuid in stored and not which(stored[uuid]):
                continue
            del self.building[uuid]
            if uuid in stored:
                stored[uuid] = dataclasses.replace(
                    stored[uuid], node=node, status='ACTIVE', task=None
                )
        self.manager.instances.sync()

    def look(self, seconds=0, manager=None):
        """Let time pass, and let a manager look at the servers and leases."""
        self.run(seconds)
        chosen = manager or self.manager
        chosen.instances.sync()
        chosen.clearing.step()
        self.run()

    def pull(self):
        for each in self.schedulers:
            each.pull()

    def settle(self):
        """Let all that is under way come to its end."""
        self.arrive()
        for seconds in 0, clearing.RECHECK, NOTICE, 1, 1:
            self.look(seconds)
        self.pull()
        for each in self.schedulers:
            each.forget()


@contextlib.contextmanager
def interleaved(site, name, between):
    """Call a function once, ahead of a step of the first manager's clearing.

    :param name: the step: ``commit`` or ``vacate``
    :returns: a list that is empty until then
    """
    done = []
    clearing = site.manager.clearing
    attribute = {'commit': '_ledger', 'vacate': '_vacater'}[name]
    real = getattr(clearing, attribute)

    class Interleaved:
        def __getattr__(self, asked):
            if asked == name and not done:
                done.append(True)
                between()
            return getattr(real, asked)

    setattr(clearing, attribute, Interleaved())
    try:
        yield done
    finally:
        setattr(clearing, attribute, real)
