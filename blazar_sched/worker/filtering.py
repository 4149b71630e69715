# SPDX-License-Identifier: Apache-2.0
"""The decision that all filters share, which always returns an answer.

An exception in a filter fails the request, and an exception for each request
fails the cloud. So a step that fails refuses the hosts on which it fails, see
`steps.checked`, and an error without a usable replica leads to the answer that
the operator has chosen for a stale replica.
"""

import sys
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
from blazar_sched.worker.request import Request
from blazar_sched.worker.steps import StepFactory

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

stale_replica = limited_log.LimitedLog(LOG)
failure = limited_log.LimitedLog(LOG)


def filter_hosts(
    name: str, step_factory: StepFactory, host_states: list[HostState],
    spec: RequestSpec, leaving: StepFactory | None = None,
) -> list[HostState]:
    """Return the host states that pass the steps; never raise.

    A rebuild stays on its host. For a stale or missing replica, and for an
    error without a usable replica, see ``on_stale``.

    :param leaving: the steps if no reservable host passes and leases leave
    """
    began = time.perf_counter()
    replica, request, now = process.last_known(), None, 0
    failures = None
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
            revision = replica.revision
            # The replica and its instances may have changed meanwhile.
            request = read_once(spec, replica, now, options)
            failures = _Failures(name, replica, request)
            passing = steps.passing(
                step_factory(replica, request, now), host_states,
                failures.refuse,
            )
            if leaving and replica.leavable and not any(
                h.uuid in replica.hosts for h in passing
            ):
                left = [h for h in host_states if h.uuid in replica.leavable]
                passing = steps.either(host_states, passing, steps.passing(
                    leaving(replica, request, now), left, failures.refuse
                ))
            passing = steps.either(host_states, passing, (
                magnetic.hosts_of_project(replica, request, host_states, now)
            ))
            outcome = failures.outcome
            consumption.watch(passing, replica, spec)
    except Exception as e:
        outcome = decision.FAILED
        if failures is None:
            _report_failure(name, e)
            bound = request is not None and request.bound
            passing = _on_stale(host_states, bound)
        else:
            passing = failures.refuse(host_states)
    if len(passing) < len(host_states):
        LOG.debug(
            '%s: %d of %d hosts pass for instance %s', name, len(passing),
            len(host_states), request and request.instance_uuid,
        )
    process.note(
        decision.Decision(
            name, step_factory, request, now, revision, outcome, host_states,
            passing,
        ),
        time.perf_counter() - began,
    )
    return passing


class _Failures:
    """The hosts of one decision on which a step has failed.

    Hosts that are not reservable pass, unless the request names a reservation.
    ``on_stale`` does not matter: the replica is there, and an error that one
    user's request can cause must not open the hosts of others.

    :ivar outcome: DECIDED, or INCOMPLETE after a failure
    """

    def __init__(
        self, name: str, replica: state.Replica, request: Request
    ) -> None:
        self.outcome = decision.DECIDED
        self._name = name
        self._replica = replica
        self._request = request

    def refuse(self, host_states: list[HostState]) -> list[HostState]:
        """Report the exception that is handled; return the hosts that pass."""
        self.outcome = decision.INCOMPLETE
        _report_failure(self._name, sys.exc_info()[1])
        if self._request.bound:
            return []
        hosts = self._replica.hosts
        return [h for h in host_states if h.uuid not in hosts]


def _report_failure(name: str, error: BaseException | None) -> None:
    failure.report(
        f'{name} failed: {type(error).__name__}: {error}', trace=True
    )


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
