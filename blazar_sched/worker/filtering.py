# SPDX-License-Identifier: Apache-2.0
"""The decision that all filters share, which always returns an answer.

An exception in a filter fails the request, and an exception for each request
fails the cloud. So any error in this module leads to the answer that the
operator has chosen for errors.
"""

import time

from nova.scheduler import utils
from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import limited_log
from blazar_sched.replica import state
from blazar_sched.worker import consumption
from blazar_sched.worker import decision
from blazar_sched.worker import magnetic
from blazar_sched.worker import nova_objects
from blazar_sched.worker import process
from blazar_sched.worker import steps
from blazar_sched.worker.nova_objects import RequestSpec
from blazar_sched.worker.request import read_once
from blazar_sched.worker.steps import StepFactory

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

stale_replica = limited_log.LimitedLog(LOG)
failure = limited_log.LimitedLog(LOG)


def filter_hosts(
    name: str,
    step_factory: StepFactory,
    host_states: list[HostState],
    spec: RequestSpec,
) -> list[HostState]:
    """Return the host states that pass the steps; never raise.

    A rebuild stays on its host. For a stale or missing replica, and for an
    error, see ``on_stale``.
    """
    began = time.perf_counter()
    replica, request, now = process.last_known(), None, 0
    revision = None if replica is None else replica.revision
    try:
        # Nova leaves this check to filters that override filter_all.
        if utils.request_is_rebuild(spec):
            return host_states
        eligible = nova_objects.without_alternates(spec, host_states)
        if len(eligible) < len(host_states):
            return eligible
        now, options = process.now(), CONF.blazar_sched
        # Read the request by the last known replica first, so that the
        # handler of a failure below has the request.
        request = read_once(spec, replica, now, options)
        replica, stale = process.current()
        if replica is None or stale:
            outcome = _report_stale(replica)
            passing = _on_stale(host_states, request.bound)
        else:
            outcome = decision.DECIDED
            revision = replica.revision
            # The replica and its instances may have changed meanwhile.
            request = read_once(spec, replica, now, options)
            passing = steps.either(
                host_states,
                steps.passing(
                    step_factory(replica, request, now), host_states
                ),
                magnetic.hosts_of_project(replica, request, host_states, now),
            )
            consumption.watch(passing, replica, spec)
    except Exception as e:
        outcome = decision.FAILED
        failure.report(f'{name} failed: {type(e).__name__}: {e}', trace=True)
        bound = request is not None and request.bound
        passing = _on_stale(host_states, bound)
    if len(passing) < len(host_states):
        LOG.debug(
            '%s: %d of %d hosts pass for instance %s', name, len(passing),
            len(host_states), request and request.instance_uuid,
        )
    process.note(
        decision.Decision(
            name,
            step_factory,
            request,
            now,
            revision,
            outcome,
            host_states,
            passing,
        ),
        time.perf_counter() - began,
    )
    return passing


def _report_stale(replica: state.Replica | None) -> str:
    """Log why `on_stale` decides; return the outcome."""
    options = CONF.blazar_sched
    if process.reservable_hosts() is not None:
        stale_replica.report(
            f'The replica is {"missing" if replica is None else "stale"}, '
            f'on_stale = {options.on_stale} decides'
        )
        return decision.STALE
    stale_replica.report(
        'There is no copy of the ledger and no list of reservable hosts yet: '
        f'on_stale = {options.on_stale} and on_unknown_hosts = '
        f'{options.on_unknown_hosts} decide'
    )
    return decision.UNKNOWN


def _on_stale(host_states: list[HostState], bound: bool) -> list[HostState]:
    options = CONF.blazar_sched
    if options.on_stale == 'open':
        return host_states
    if bound:
        return []
    reservable = process.reservable_hosts()
    if reservable is None:
        return host_states if options.on_unknown_hosts == 'open' else []
    return [h for h in host_states if h.uuid not in reservable]
