# SPDX-License-Identifier: Apache-2.0
"""Leases and hosts as payloads of notifications, in Blazar's format."""

from collections.abc import Mapping
import dataclasses
import datetime
from typing import Any

from blazar_sched.domain import window
from blazar_sched.domain.host import Host
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation

_EPOCH = datetime.datetime(1970, 1, 1)


def lease(lease: Lease) -> dict[str, Any]:
    """Return the payload of a notification of a lease."""
    return {
        'lease_id': lease.id,
        'name': lease.name,
        'user_id': lease.user_id,
        'project_id': lease.project_id,
        'trust_id': lease.trust_id,
        'start_date': _date(lease.start),
        'end_date': _date(lease.end),
        'status': lease.status,
        'degraded': lease.degraded,
        'reservations': list(map(_reservation, lease.reservations)),
        'events': [
            _dated(dataclasses.asdict(e), 'time', 'created_at', 'updated_at')
            for e in lease.events
        ],
        'created_at': _date(lease.created_at),
        'updated_at': _date(lease.updated_at),
    }


def _reservation(reservation: Reservation) -> dict[str, Any]:
    fields = dataclasses.asdict(reservation)
    return {
        **fields.pop('parameters'),
        'resource_id': reservation.id,
        **_dated(fields, 'created_at', 'updated_at'),
    }


def host(host: Host) -> dict[str, Any]:
    """Return the payload of a notification of a host."""
    fields = dataclasses.asdict(host)
    return {
        'host_id': fields.pop('id'),
        **_dated(fields, 'created_at', 'updated_at'),
    }


def _dated(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {**fields, **{name: _date(fields[name]) for name in names}}


def _date(seconds: int | None) -> str | None:
    """Return ``2026-01-31T09:30:00.000000``, the format of Blazar's dates."""
    if seconds is None or seconds == window.FOREVER:
        return None
    at = _EPOCH + datetime.timedelta(seconds=seconds)
    return at.isoformat(timespec='microseconds')
