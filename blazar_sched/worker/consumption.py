# SPDX-License-Identifier: Apache-2.0
"""Instances that were placed recently, noted and announced at once.

A placed instance is counted here for each figure that is not counted
elsewhere yet. Each figure has a time of its own from which it is:

============================ =============================================
figure                       counted elsewhere
============================ =============================================
VCPU, MEMORY_MB and DISK_GB, by the HostState, once the HostState names the
as far as Nova counts them   instance, or has consumed its request
the amounts of these that    by the record, once the replica has a record of
Placement counts beyond that the instance on the host
other resource classes       by the record
use of a reservation         by the record
stays of a relocation path   by the record
============================ =============================================

Nothing is counted here any more once the record says that Nova names the
host; see also worker.pending.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.domain import flavor
from blazar_sched.domain import inventory
from blazar_sched.domain.instance import Instance
from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import limited_log
from blazar_sched.replica import state
from blazar_sched.worker import nova_objects
from blazar_sched.worker import process
from blazar_sched.worker.nova_objects import RequestSpec
from blazar_sched.worker.paths import Paths
from blazar_sched.worker.request import is_new
from blazar_sched.worker.request import read_once
from blazar_sched.worker.request import Request

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

failure = limited_log.LimitedLog(LOG)


def watch(
    host_states: list[HostState], replica: state.Replica, spec: RequestSpec
) -> None:
    """Note the instances placed on reservable hosts from now on.

    The hosts on which capacity is promised are no alternates.
    """
    hosts = replica.hosts
    if any(h.uuid in hosts for h in host_states):
        nova_objects.set_watched(spec, host_states)
        nova_objects.observe_placements(host_states, _note)


def _promised(
    replica: state.Replica, request: Request, host_states: list[HostState],
    now: int,
) -> list[HostState]:
    """Return the hosts with allocations in the time of an instance.

    A bound instance needs what its reservation has left on the host.
    """
    if request.bound:
        return host_states
    index = replica.indexes.main
    rows = index.rows(h.uuid for h in host_states)
    peaks = index.peak(rows, now, request.end)
    # The last two lanes count the allocations.
    lanes = len(inventory.RESOURCE_CLASSES) + 2
    counts = zip(peaks[lanes - 2::lanes], peaks[lanes - 1::lanes], strict=True)
    return [
        h for h, promised in zip(host_states, counts, strict=True)
        if any(count > 0 for count in promised)
    ]


def placed_recently(
    replica: state.Replica, request: Request, host_states: Iterable[HostState],
    by_host: Mapping[str, Sequence[Instance]],
) -> dict[int, list[Instance]]:
    """Return the instances placed beside a request, by id() of HostState.

    The amounts of an instance are those that are not counted elsewhere: the
    caller must call this function before the caller looks at the records.

    :param by_host: the instances that are pending, see `Pending.by_host`
    """
    found: dict[int, list[Instance]] = {}
    if not by_host and not request.several:
        # This holds for nearly all requests, and there may be many hosts.
        return found
    for h in nova_objects.with_any(host_states, by_host):
        copies = nova_objects.consumed(h)
        left = [
            _uncounted(replica, h, each) for each in by_host.get(h.uuid, ())
            if each.uuid not in copies and each.uuid != request.instance_uuid
        ]
        left += [
            _uncounted(replica, h, each, each.countable_use())
            for each in copies.values()
        ]
        if any(each.amounts for each in left):
            found[id(h)] = left
    return found


def _uncounted(
    replica: state.Replica, host_state: HostState, placed: Instance,
    figures: Mapping[str, int] | None = None,
) -> Instance:
    """Return a placed instance with the amounts that nobody else counts.

    See the docstring of the module.

    :param figures: what the HostState has counted of a request; None for an
        instance of another request
    """
    known = replica.instances.get(placed.uuid)
    if known is not None and known.host != host_state.uuid:
        known = None
    if figures is None and placed.uuid in (host_state.instances or ()):
        # While the instance is resized on its host, HostState may have the
        # figures from before.
        figures = (known or placed).countable_use()
    if known is None and figures is None:
        return placed
    counted = dict(known.countable()) if known is not None else {}
    if placed.reservation_id is None:
        use = known.countable_use() if known is not None else {}
        for name in inventory.RESOURCE_CLASSES:
            beyond = max(0, counted.get(name, 0) - use.get(name, 0))
            counted[name] = beyond + (figures or {}).get(name, 0)
    return dataclasses.replace(placed, amounts={
        name: amount - counted.get(name, 0)
        for name, amount in placed.countable().items()
        if amount > counted.get(name, 0)
    })


def _note(host_state: HostState, spec: RequestSpec) -> None:
    """Note the request placed on a host; never raise.

    An exception here would leave the allocation in Placement behind.
    """
    try:
        options = CONF.blazar_sched
        now = process.now()
        replica = process.last_known()
        request = read_once(spec, replica, now, options)
        watched = nova_objects.watched(spec)
        if replica is not None:
            hosts = replica.hosts
            watched = [h for h in watched if h.uuid in hosts]
        nova_objects.end_alternates(
            spec,
            watched if replica is None
            else _promised(replica, request, watched, now),
            'num_instances' in spec and spec.num_instances > 1
            and is_new(spec),
        )
        if replica is None or host_state.uuid not in replica.hosts:
            return
        placed = request.placed_on(host_state.uuid, replica, now)
        # What HostState has just counted: without swap, and with a root disk.
        nova_objects.add_consumed(host_state, dataclasses.replace(
            placed, used=flavor.figures(
                spec.vcpus, spec.memory_mb, spec.root_gb, spec.ephemeral_gb, 0,
                placed.amounts,
            ),
        ))
        if not options.pending_ttl:
            return
        if placed.movable:
            found = Paths(
                replica, request, now, replica.settings.rules,
                process.ensure_started().pending.by_host(replica),
            )
            placed = dataclasses.replace(
                placed, path=found.of_placed(placed.host)
            )
        process.ensure_started().add_placed(placed, now, options.pending_ttl)
    except Exception as e:
        failure.report(
            f'A placed instance is not noted: {type(e).__name__}: {e}',
            trace=True,
        )
