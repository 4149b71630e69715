# SPDX-License-Identifier: Apache-2.0
"""Instances that this process has placed, noted as they are placed."""

from collections.abc import Iterable
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.replica import limited_log
from blazar_sched.replica import state
from blazar_sched.worker import nova_objects
from blazar_sched.worker import pending
from blazar_sched.worker import process
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
) -> dict[int, list[Request]]:
    """Return recently placed requests beside a request, by id() of HostState.

    Requests that the figures of the HostState already count are left out.
    """
    by_host = process.pending().by_host(replica)
    if not by_host:
        return {}
    found = {}
    for h in host_states:
        others = [
            each.request for each in by_host.get(h.uuid, ())
            if not _is_counted(h, each, request)
        ]
        if others:
            found[id(h)] = others
    return found


def _is_counted(
    host_state: Any, placed: pending.PendingInstance, request: Request
) -> bool:
    uuid = placed.request.instance_uuid
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
        request = read_once(
            spec, process.last_known(), process.now(), options
        )
        nova_objects.add_consumed(host_state, request.instance_uuid)
        process.pending().add(host_state.uuid, request, options.pending_ttl)
    except Exception as e:
        failure.report(
            f'A placed instance is not noted: {type(e).__name__}: {e}',
            trace=True,
        )
