# SPDX-License-Identifier: Apache-2.0
"""What the filters have in common: they always answer.

An exception in a filter fails the request, and one for each request fails
the cloud. So whatever goes wrong in here has the answer that the operator
chose for it.
"""

from collections.abc import Callable
from typing import Any

from nova.scheduler import utils
from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.replica import request
from blazar_sched.replica import state
from blazar_sched.replica import trouble
from blazar_sched.replica import worker

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

# Returns those of the host states that pass, in their order.
Judge = Callable[[state.Replica, request.Request, list[Any], int], list[Any]]

stale_replica = trouble.Trouble(LOG)
failure = trouble.Trouble(LOG)


def decide(
    name: str, judge: Judge, host_states: list[Any], spec: Any
) -> list[Any]:
    """Return the host states that pass by `judge`; never raise.

    A rebuild stays where it is. Stale or missing replica, or error: see
    ``on_stale``.
    """
    replica, bound = worker.last_known(), False
    try:
        # Nova leaves this to who overrides filter_all.
        if utils.request_is_rebuild(spec):
            return host_states
        now = worker.now()
        asked = request.read(
            spec, {} if replica is None else replica.instances, now,
            CONF.blazar_sched.default_lifetime,
        )
        bound = asked.bound
        replica, stale = worker.current()
        if replica is None or stale:
            stale_replica.report(
                'The replica is '
                + ('missing' if replica is None else 'stale')
                + f', on_stale = {CONF.blazar_sched.on_stale} decides'
            )
            passing = _on_stale(host_states, replica, bound)
        else:
            passing = judge(replica, asked, host_states, now)
    except Exception as e:
        failure.report(f'{name} failed: {type(e).__name__}: {e}', trace=True)
        passing = _on_stale(host_states, replica, bound)
    if len(passing) < len(host_states):
        LOG.debug(
            '%s: %d of %d hosts pass for instance %s', name, len(passing),
            len(host_states), getattr(spec, 'instance_uuid', None),
        )
    return passing


def copies(host_state: Any) -> int:
    """Return how many of the request's instances a host has with this one.

    Of one multi-create, Nova shows the same host states again and counts what
    it has put there since the first look.
    """
    first: int = vars(host_state).setdefault(
        'blazar_sched_num_instances', host_state.num_instances
    )
    return 1 + host_state.num_instances - first


def _on_stale(
    host_states: list[Any], replica: state.Replica | None, bound: bool
) -> list[Any]:
    if CONF.blazar_sched.on_stale == 'open':
        return host_states
    if bound:
        return []
    if replica is None:
        return host_states
    return [h for h in host_states if h.uuid not in replica.hosts]
