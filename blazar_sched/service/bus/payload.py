# SPDX-License-Identifier: Apache-2.0
"""Payloads of notifications: leases and hosts in Blazar's format, moves."""

from collections.abc import Mapping
import dataclasses
import datetime
from typing import Any

from blazar_sched.domain import duration
from blazar_sched.domain import event
from blazar_sched.domain import window
from blazar_sched.domain.host import Host
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import as_blazar
from blazar_sched.domain.reservation import Reservation

# The UUIDs of servers that may be those of other projects.
IN_THE_WAY = 'in_the_way'
_EPOCH = datetime.datetime(1970, 1, 1)


def lease(lease: Lease) -> dict[str, Any]:
    """Return the payload of a notification of a lease."""
    return {
        'lease_id': lease.id,
        'name': lease.name,
        'user_id': lease.user_id,
        'project_id': lease.project_id,
        'trust_id': lease.trust_id,
        'start_date': date(lease.start),
        'end_date': date(lease.end),
        'status': lease.status,
        'degraded': lease.degraded,
        'reservations': list(map(_reservation, lease.reservations)),
        'events': [
            _dated(dataclasses.asdict(e), 'time', 'created_at', 'updated_at')
            for e in lease.events if e.event_type in event.BLAZARS
        ],
        'created_at': date(lease.created_at),
        'updated_at': date(lease.updated_at),
    }


def degraded(lease_: Lease) -> dict[str, Any]:
    """Return the payload of a notification of a lease that is degraded.

    IN_THE_WAY has the UUIDs of the servers that the start of the lease has
    found in its way and left as they were.
    """
    return {
        **lease(lease_),
        IN_THE_WAY: [
            uuid
            for reservation in lease_.reservations
            for uuid in reservation.made.get('in_the_way', ())
        ],
    }


def _reservation(reservation: Reservation) -> dict[str, Any]:
    return _dated(as_blazar(reservation.encode()), 'created_at', 'updated_at')


def host(host: Host) -> dict[str, Any]:
    """Return the payload of a notification of a host."""
    fields = dataclasses.asdict(host)
    return {
        'host_id': fields.pop('id'),
        **_dated(fields, 'created_at', 'updated_at'),
    }


def relocation(instance: Instance, source: str, target: str) -> dict[str, Any]:
    """Return the payload of a notification of a move.

    :param instance: the record of the server before the move
    :param source: the hypervisor hostname of the host that is left
    :param target: the hypervisor hostname of the next host
    """
    stay = instance.relocations[0]
    return {
        'instance_id': instance.uuid,
        'project_id': instance.project_id,
        'hypervisor_hostname': source,
        'target_hypervisor_hostname': target,
        'vacate_at': duration.format_time(instance.leaves_at),
        'start_date': date(stay.start),
        'end_date': date(stay.end),
    }


def _dated(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {**fields, **{name: date(fields[name]) for name in names}}


def date(seconds: int | None) -> str | None:
    """Return ``2026-01-31T09:30:00.000000``, the format of Blazar's dates."""
    if seconds is None or seconds == window.FOREVER:
        return None
    at = _EPOCH + datetime.timedelta(seconds=seconds)
    return at.isoformat(timespec='microseconds')
