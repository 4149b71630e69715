# SPDX-License-Identifier: Apache-2.0
"""Instances that this process has placed, noted and announced at once."""

from collections.abc import Iterable
import dataclasses
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.conf import relocation
from blazar_sched.domain.instance import Instance
from blazar_sched.replica import limited_log
from blazar_sched.replica import state
from blazar_sched.worker import nova_objects
from blazar_sched.worker import process
from blazar_sched.worker.paths import Paths
from blazar_sched.worker.request import read_once
from blazar_sched.worker.request import Request

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

failure = limited_log.LimitedLog(LOG)


def watch(host_states: Iterable[Any], replica: state.Replica) -> None:
    """Note the instances placed on reservable hosts from now on."""
    if CONF.blazar_sched.pending_ttl:
        hosts = replica.hosts
        nova_objects.observe_placements(
            (h for h in host_states if h.uuid in hosts), _note
        )


def placed_recently(
    replica: state.Replica, request: Request, host_states: Iterable[Any]
) -> dict[int, list[Instance]]:
    """Return recently placed instances beside a request, by id() of HostState.

    Instances that the figures of the HostState already count are left out.
    """
    by_host = process.pending().by_host(replica)
    if not by_host:
        return {}
    found = {}
    for h in host_states:
        others = [
            each for each in by_host.get(h.uuid, ())
            if not _is_counted(h, each, request)
        ]
        if others:
            found[id(h)] = others
    return found


def _is_counted(
    host_state: Any, placed: Instance, request: Request
) -> bool:
    uuid = placed.uuid
    return (
        uuid == request.instance_uuid
        or uuid in nova_objects.consumed(host_state)
        or uuid in (host_state.instances or ())
    )


def _note(host_state: Any, spec: Any) -> None:
    """Note the request placed on a host; never raise.

    An exception here would leave the allocation in Placement behind.
    """
    try:
        options = CONF.blazar_sched
        now = process.now()
        replica = process.last_known()
        request = read_once(spec, replica, now, options)
        nova_objects.add_consumed(host_state, request.instance_uuid)
        placed = request.placed_on(host_state.uuid)
        if placed.movable and replica is not None:
            found = Paths(
                replica, request, now, relocation.rules(options),
                process.pending().by_host(replica),
            )
            placed = dataclasses.replace(
                placed, path=found.of_placed(placed.host)
            )
        process.add_placed(placed, now, options.pending_ttl)
    except Exception as e:
        failure.report(
            f'A placed instance is not noted: {type(e).__name__}: {e}',
            trace=True,
        )
