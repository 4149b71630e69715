# SPDX-License-Identifier: Apache-2.0
"""Observation of instances being placed, which no notification reports.

nova-scheduler calls `consume_from_request` of a HostState right after
Placement has allocated the host, in this process. So each HostState that
passes is made to note this call. A HostState belongs to one request, so
nothing is left behind.
"""

from collections.abc import Collection
from collections.abc import Iterable
import functools
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.replica import limited_log
from blazar_sched.replica import state
from blazar_sched.worker import pending
from blazar_sched.worker import process
from blazar_sched.worker import request

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

failure = limited_log.LimitedLog(LOG)

# The uuids of the instances that a HostState's own figures already count.
_CONSUMED = 'blazar_sched_consumed'


class _Watched:
    """A mixin that precedes the own class of a HostState."""

    def consume_from_request(self, spec: Any) -> None:
        """Let Nova count `spec` on the host, and note the placement."""
        super().consume_from_request(spec)  # type: ignore[misc]
        _note(self, spec)


@functools.cache
def _watched(of: type) -> type:
    if issubclass(of, _Watched):
        return of
    return type(of.__name__, (_Watched, of), {'__module__': of.__module__})


def watch(host_states: Iterable[Any], replica: state.Replica) -> None:
    """Note the instances placed on reservable hosts from now on.

    Each HostState of a reservable host gets another class: for 10,000 of them
    this takes a sixth of the time that it takes to give each HostState a
    method of its own.
    """
    if not CONF.blazar_sched.pending_ttl:
        return
    hosts = replica.hosts
    for h in host_states:
        if h.uuid in hosts:
            h.__class__ = _watched(h.__class__)


def consumed(host_state: Any) -> Collection[str]:
    """Return the uuids of its request's instances that a HostState counts."""
    uuids: Collection[str] = vars(host_state).get(_CONSUMED, ())
    return uuids


def beside(
    replica: state.Replica, asked: request.Request, host_states: Iterable[Any]
) -> dict[int, list[request.Request]]:
    """Return recently placed requests beside a request, by id() of HostState.

    Requests that the figures of the HostState already count are left out.
    """
    by_host = process.pending().by_host(replica)
    if not by_host:
        return {}
    found = {}
    for h in host_states:
        others = [
            each.asked for each in by_host.get(h.uuid, ())
            if not _is_held(h, each, asked)
        ]
        if others:
            found[id(h)] = others
    return found


def _is_held(
    host_state: Any, placed: pending.Placed, asked: request.Request
) -> bool:
    uuid = placed.asked.instance_uuid
    return (
        uuid == asked.instance_uuid
        or uuid in consumed(host_state)
        or uuid in (host_state.instances or ())
    )


def _note(host_state: Any, spec: Any) -> None:
    """Note the request placed on a host; never raise.

    An exception here would leave the allocation in Placement behind.
    """
    try:
        options = CONF.blazar_sched
        asked = request.read_once(
            spec, process.last_known(), process.now(), options
        )
        vars(host_state).setdefault(_CONSUMED, set()).add(
            asked.instance_uuid
        )
        process.pending().add(host_state.uuid, asked, options.pending_ttl)
    except Exception as e:
        failure.report(
            f'What was placed is not noted: {type(e).__name__}: {e}',
            trace=True,
        )
