# SPDX-License-Identifier: Apache-2.0
"""Request filters for nova-scheduler, which change the query to Placement.

Placement returns the same first ``max_placement_results`` hosts again and
again, and the hosts of a reservation may not be among them. A server that was
booted with the flavor of a reservation requests a slot for ever, and no host
has slots once the reservation is over.
"""

from typing import Any

from nova.objects.request_spec import Destination
from nova.scheduler.client import report
from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.domain import flavor
from blazar_sched.domain import inventory
from blazar_sched.domain.host import IRONIC
from blazar_sched.replica import limited_log
from blazar_sched.worker import nova_objects
from blazar_sched.worker import process
from blazar_sched.worker.nova_objects import RequestSpec
from blazar_sched.worker.request import extra_specs_of
from blazar_sched.worker.request import is_new
from blazar_sched.worker.request import read_request

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

# The first microversion of Placement that shows a resource class.
MICROVERSION = '1.2'
_SLOT = 'resources:' + inventory.SLOT_PREFIX
# The extra specs of the flavor of a reservation, beside its slot, that this
# service or Blazar has set.
_NAMING = (flavor.RESERVATION, flavor.BLAZARS, flavor.BLAZARS_GROUP)

failure = limited_log.LimitedLog(LOG)


def install() -> None:
    """Register the request filters in this process."""
    # The first request filter decides whether a request names a reservation.
    nova_objects.add_request_filter(leave_reservation)
    nova_objects.add_request_filter(narrow_to_reservation)


def leave_reservation(ctxt: Any, spec: RequestSpec) -> bool:
    """Make a request to move a server that has outlived its reservation plain.

    The server keeps the flavor of the reservation, whose slots no host has
    any more. Without the extra specs of the reservation the server is moved
    as any other server. The first boot of a server keeps the extra specs, and
    so finds no host.

    Placement says whether the reservation is over: the end of a reservation
    removes the resource class of the slots. So the answer depends neither on
    the replica nor on the ledger.

    :returns: whether the extra specs were removed
    """
    try:
        extra_specs = extra_specs_of(spec)
        slot = next((each for each in extra_specs if _is_slot(each)), None)
        if slot is None or is_new(spec) or _has_class(slot):
            return False
        spec.flavor.extra_specs = {
            name: value for name, value in extra_specs.items()
            if name not in _NAMING and not _is_slot(name)
        }
    except Exception as e:
        failure.report(
            'A request is not freed of a reservation that may be over: '
            f'{type(e).__name__}: {e}',
            trace=True,
        )
        return False
    return True


def _is_slot(extra_spec: str) -> bool:
    return extra_spec.startswith(_SLOT)


def _has_class(slot: str) -> bool:
    """Return whether Placement has, or may have, the class of a slot."""
    name = slot.removeprefix('resources:')
    answer = report.report_client_singleton().get(
        f'/resource_classes/{name}', version=MICROVERSION
    )
    return bool(answer.status_code != 404)


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
