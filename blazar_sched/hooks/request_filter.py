# SPDX-License-Identifier: Apache-2.0
"""A request filter for nova-scheduler that narrows the query to Placement.

Placement returns the same first ``max_placement_results`` hosts again and
again, and the hosts of a reservation may not be among them.
"""

from typing import Any

from nova.objects.request_spec import Destination
from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.domain.host import IRONIC
from blazar_sched.replica import limited_log
from blazar_sched.worker import nova_objects
from blazar_sched.worker import process
from blazar_sched.worker.nova_objects import RequestSpec
from blazar_sched.worker.request import read_request

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

failure = limited_log.LimitedLog(LOG)


def install() -> None:
    """Register the request filter in this process."""
    nova_objects.add_request_filter(narrow_to_reservation)


def narrow_to_reservation(ctxt: Any, spec: RequestSpec) -> bool:
    """Require the host aggregate of the reservation that a request names.

    The request filter only narrows the hosts that the filters decide about, so
    any unclear case is left to the filters.

    :returns: whether the aggregate was required
    """
    if not CONF.blazar_sched.narrow_placement:
        return False
    try:
        aggregate = _aggregate(spec)
        if not aggregate:
            return False
        if (
            'requested_destination' not in spec
            or spec.requested_destination is None
        ):
            spec.requested_destination = Destination()
        spec.requested_destination.require_aggregates([aggregate])
    except Exception as e:
        failure.report(
            'The query to Placement is not narrowed to a reservation: '
            f'{type(e).__name__}: {e}',
            trace=True,
        )
        return False
    return True


def _aggregate(spec: RequestSpec) -> str | None:
    """Return the uuid of the aggregate, or None if no aggregate is known."""
    replica, stale = process.current()
    if replica is None or stale:
        return None
    request = read_request(spec, replica, process.now(), CONF.blazar_sched)
    known = replica.reservations.get(request.reservation_id or '')
    # Of all nodes of a nova-compute, Nova puts one into an aggregate of
    # Placement.
    if known is None or any(
        replica.hosts[host].hypervisor_type == IRONIC
        for _, host, *_ in replica.indexes.main.held(known.id)
    ):
        return None
    return known.aggregate
