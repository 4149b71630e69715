# SPDX-License-Identifier: Apache-2.0
"""nova-scheduler: Nova's handler and the filters, over a pulling replica.

HostStates are made from the true state of the cloud at that moment.
"""

import contextlib
import dataclasses
import os
from unittest import mock

from nova import objects
from nova.objects import flavor as nova_flavor
from nova.objects import request_spec
from nova.scheduler import filters
from nova.scheduler import host_manager

from blazar_sched.domain import flavor as flavor_rules
from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.flavor import MOVABLE
from blazar_sched.domain.flavor import PREEMPTIBLE
from blazar_sched.domain.hints import LEASE_ON_END
from blazar_sched.domain.hints import LIFETIME
from blazar_sched.domain.hints import RESERVATION
from blazar_sched.domain.relocation import Features
from blazar_sched.filters import lifetime_filter
from blazar_sched.filters import reservation_filter
from blazar_sched.replica import puller
from blazar_sched.worker import filtering
from blazar_sched.worker import pending
from blazar_sched.worker import process
from blazar_sched.worker import threads

objects.register_all()


@dataclasses.dataclass(frozen=True)
class Request:
    """A request to nova-api.

    :param end: the declared end in epoch seconds
    :param on_end: the declared action at the end, None for none
    """

    uuid: str
    project_id: str
    flavor: Flavor
    reservation_id: str | None = None
    end: int = window.FOREVER
    on_end: str | None = None

    @property
    def amounts(self):
        f = self.flavor
        return flavor_rules.resources(
            f.vcpus, f.memory_mb, f.disk_gb, f.extra_specs
        )

    @property
    def preemptible(self):
        return PREEMPTIBLE in self.flavor.extra_specs

    @property
    def movable(self):
        """How the server is moved; '' if it is not."""
        said = self.flavor.extra_specs.get(MOVABLE, 'live')
        return '' if self.preemptible or said == 'false' else said

    @property
    def features(self):
        """What decides whether the server may be live-migrated."""
        f = self.flavor
        return Features(
            f.extra_specs, {}, None, f.memory_mb, local_disk=f.disk_gb > 0,
            devices=False,
        )

    @property
    def claim(self):
        """The reservation on which the server claims to draw."""
        of_flavor = flavor_rules.reservation_id(self.flavor.extra_specs)
        return of_flavor or self.reservation_id

    @property
    def slots(self):
        """The resource class of the slots of its reservation, if any."""
        start = f'resources:{inventory.SLOT_PREFIX}'
        return next(
            (
                spec.removeprefix('resources:')
                for spec in self.flavor.extra_specs if spec.startswith(start)
            ),
            None,
        )


class Scheduler:
    """A worker of nova-scheduler.

    :param call: calls a manager, as `Puller` does
    :param max_age: seconds after which the replica is stale
    """

    def __init__(self, cloud, call, clock, uptime, max_age):
        self._cloud = cloud
        self._clock = clock
        self._worker = threads.Worker(clock)
        self._worker.pending = pending.Pending(uptime)
        self.puller = puller.Puller(call, uptime, lambda: max_age, clock=clock)
        self._worker.puller = self.puller
        self._chain = [
            reservation_filter.ReservationFilter(),
            lifetime_filter.LifetimeFilter(),
        ]
        self._filtered = filters.HostFilterHandler().get_filtered_objects

    def pull(self):
        """Bring the replica up to date.

        :raises Unanswered: and `Unusable`, as `Puller` does
        """
        self.puller.pull(int(self._clock()))
        self._worker.pending.refresh()
        self._worker.decisions.settle(self._worker._replica())

    def place(self, request, choose, target=None):
        """Return the hostname that a request gets, None if none.

        :param choose: chooses one of the hostnames that pass
        :param target: the only hostname that comes into question
        :raises AssertionError: if a filter fails
        """
        names = sorted(self._cloud.nodes) if target is None else [target]
        states = [
            self._state(name) for name in names
            if has_room(self._cloud, name, request)
        ]
        failures = filtering.failure.count
        spec = self._spec(request)
        with self._as_process():
            passing = self._filtered(self._chain, states, spec)
            passing = {h.nodename: h for h in passing or ()}
            if not passing:
                chosen = None
            else:
                chosen = choose(sorted(passing))
                passing[chosen].consume_from_request(spec)
        if filtering.failure.count != failures:
            raise AssertionError('a filter failed')
        return chosen

    def knows_stay(self, uuid, target):
        """Tell whether a stay of a server has begun, as the replica says."""
        copy, now = self.puller.copy, self._clock()
        if copy is None or not self.puller.is_fresh(copy):
            return False
        known = copy.replica.instances.get(uuid)
        host = copy.replica.hosts.get(self._cloud.nodes[target].uuid)
        return (
            known is not None and host is not None and host.takes_relocated
            and any(
                stay.host == host.uuid and stay.start <= now < stay.end
                for stay in known.relocations
            )
        )

    @contextlib.contextmanager
    def _as_process(self):
        """Make the filters use this worker."""
        with mock.patch.multiple(
            process, _worker=self._worker, _pid=os.getpid()
        ):
            yield

    def _state(self, name):
        cloud, node = self._cloud, self._cloud.nodes[name]
        here = [s for s in cloud.servers_.values() if s.node == name]
        # Nova claims the resources of a server on the destination, too.
        coming = cloud.coming_to(name)
        size = cloud.sizes[name]
        used = {
            c: sum(s.amounts.get(c, 0) for s in (*here, *coming))
            for c in inventory.RESOURCE_CLASSES
        }
        total = {c: size[c].total for c in used}
        state = host_manager.HostState(name, name, 'cell')
        state.uuid = node.uuid
        state.vcpus_total = total[inventory.VCPU]
        state.vcpus_used = used[inventory.VCPU]
        state.total_usable_ram_mb = total[inventory.MEMORY_MB]
        state.free_ram_mb = (
            total[inventory.MEMORY_MB] - used[inventory.MEMORY_MB]
        )
        disk_gb = total[inventory.DISK_GB]
        state.total_usable_disk_gb = disk_gb
        state.disk_mb_used = used[inventory.DISK_GB] * 1024
        state.free_disk_mb = (disk_gb - used[inventory.DISK_GB]) * 1024
        state.instances = {s.uuid: s for s in here}
        state.num_instances = len(here)
        return state

    def _spec(self, request):
        hints = {}
        if request.reservation_id is not None:
            hints[RESERVATION] = [request.reservation_id]
        if request.end != window.FOREVER:
            left = request.end - int(self._clock())
            hints[LIFETIME] = [f'{max(1, left)}s']
        if request.on_end is not None:
            hints[LEASE_ON_END] = [request.on_end]
        f = request.flavor
        return request_spec.RequestSpec(
            instance_uuid=request.uuid,
            project_id=request.project_id,
            flavor=nova_flavor.Flavor(
                vcpus=f.vcpus, memory_mb=f.memory_mb, root_gb=f.disk_gb,
                ephemeral_gb=0, swap=0, extra_specs=dict(f.extra_specs),
            ),
            is_bfv=False,
            scheduler_hints=hints,
            # The other fields that `consume_from_request` reads.
            numa_topology=None,
            pci_requests=None,
            instance_group=None,
        )


def has_room(cloud, name, request):
    """Tell whether Placement has room for a request on a node now."""
    if not cloud.nodes[name].up:
        return False
    if request.slots is not None:
        total = cloud.slots.get((name, request.slots), 0)
        if cloud.used(name, request.slots) >= total:
            return False
    here = [
        *(s for s in cloud.servers_.values() if s.node == name),
        *cloud.coming_to(name),
    ]
    return all(
        sum(s.amounts.get(c, 0) for s in here if s.uuid != request.uuid)
        + amount <= cloud.sizes[name][c].capacity
        for c, amount in request.amounts.items()
    )
