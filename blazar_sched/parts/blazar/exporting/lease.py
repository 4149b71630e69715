# SPDX-License-Identifier: Apache-2.0
"""Conversion of leases to rows of Blazar's tables."""

from collections.abc import Iterator
import json

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import states
from blazar_sched.domain.demand import FLAVOR_INSTANCE
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.event import Event
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import DELETE
from blazar_sched.domain.reservation import Reservation
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.blazar import tables as blazar
from blazar_sched.parts.blazar.importing.comparison import minute

_MAX_NAME = 80
# The operators of Blazar's requirements.
_OPERATORS = frozenset({'==', '=', '!=', '>=', '<=', '>', '<'})
# The properties of a host that Blazar's requirements can name, beside the
# capabilities.
_PROPERTIES = frozenset(
    {
        'availability_zone', 'cpu_info', 'hypervisor_hostname',
        'hypervisor_type', 'hypervisor_version', 'local_gb', 'memory_mb',
        'service_name', 'vcpus',
    }
)  # fmt: skip
# The fields without which Blazar keeps every promise to the lease's project.
_LOST = ('projects', 'magnetic', 'labels', 'product')


def check(lease: Lease, capabilities: frozenset[str]) -> None:
    """Refuse a lease that Blazar cannot have, or would end in another way.

    :param capabilities: the names of the capabilities of all hosts
    :raises Conflict: if the lease is in a transition
    :raises InvalidInput: naming what Blazar cannot have
    """
    if len(lease.name) > _MAX_NAME:
        raise exception.InvalidInput(
            f'the name has more than {_MAX_NAME} characters: rename the lease',
            field='name',
        )
    if lease.is_offer:
        raise exception.Conflict(
            'the lease is a held offer: accept or reject the offer'
        )
    if lease.status not in states.LEASE_STABLE or not lease.is_idle:
        raise exception.Conflict(
            f'the lease is {lease.status}, with an event in progress: start '
            'a manager and wait until the event is done'
        )
    if lease.status == states.LEASE_TERMINATED:
        return
    if lease.end == FOREVER:
        raise exception.InvalidInput('the lease has no end', field='end_date')
    for reservation in lease.reservations:
        _check(lease, reservation, capabilities | _PROPERTIES)


def _check(
    lease: Lease, reservation: Reservation, properties: frozenset[str]
) -> None:
    if reservation.on_end != DELETE:
        raise exception.InvalidInput(
            f'on_end of reservation {reservation.id} is '
            f'{reservation.on_end}, and Blazar would delete the servers',
            field='on_end',
        )
    type_ = reservation.resource_type
    if (
        lease.trust_id is None
        and lease.status == states.LEASE_PENDING
        and type_ != PHYSICAL_HOST
    ):
        raise exception.InvalidInput(
            f'the lease has no trust, and Blazar could not start reservation '
            f'{reservation.id} in the project of the lease',
            field='trust_id',
        )
    if type_ == FLAVOR_INSTANCE:
        return
    for text in reservation.demand.asked:
        if not _is_blazars(text, properties):
            raise exception.InvalidInput(
                f'Blazar cannot read the requirement {text} of reservation '
                f'{reservation.id}',
                field='resource_properties',
            )


def _is_blazars(text: str, properties: frozenset[str]) -> bool:
    """Tell whether Blazar can read a requirement.

    Blazar has comparisons of one property with a text, and 'and' over these.
    """
    tree = json.loads(text or '[]')
    parts = tree[1:] if tree[:1] == ['and'] else [tree] if tree else []
    return tree != ['and'] and all(
        len(part) == 3
        and all(isinstance(each, str) for each in part)
        and part[0] in _OPERATORS
        and part[1][1:] in properties
        for part in parts
    )


def notes(lease: Lease) -> Iterator[str]:
    """Yield what is lost of an exported lease that is not over."""
    if lease.status == states.LEASE_TERMINATED:
        return
    lost = dict.fromkeys(
        name
        for reservation in lease.reservations
        for name in _LOST
        if getattr(reservation, name)
    )
    if lease.labels:
        lost['labels'] = None
    if lease.series_id is not None:
        lost['series_id'] = None
    if lost:
        yield f'lease {lease.id} ({lease.name}): lost are {", ".join(lost)}'


def to_row(lease: Lease, known: blazar.Row | None) -> blazar.Row:
    """Return the row of a lease.

    :param known: the row that Blazar has already
    """
    trust_id = lease.trust_id
    if lease.status == states.LEASE_TERMINATED and (
        known is None or known['status'] != states.LEASE_TERMINATED
    ):
        # The trust was deleted when the lease ended.
        trust_id = None
    return {
        'id': lease.id,
        'name': lease.name,
        'user_id': lease.user_id,
        'project_id': lease.project_id,
        'start_date': minute(lease.start),
        'end_date': minute(lease.end),
        'trust_id': trust_id,
        'status': lease.status,
        'degraded': lease.degraded,
        'created_at': lease.created_at,
        'updated_at': lease.updated_at,
    }


def event_rows(lease: Lease) -> Iterator[blazar.Row]:
    """Yield the rows of the events that Blazar has."""
    for each in lease.events:
        if each.event_type in event.BLAZARS:
            yield _event_row(each)


def _event_row(each: Event) -> blazar.Row:
    return {
        'id': each.id,
        'lease_id': each.lease_id,
        'event_type': each.event_type,
        'time': minute(each.time),
        'status': each.status,
        'created_at': each.created_at,
        'updated_at': each.updated_at,
    }
