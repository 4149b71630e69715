# SPDX-License-Identifier: Apache-2.0
"""How a lease is shown."""

from typing import Any

from blazar_sched.service.api.views import time


def lease(noun: dict[str, Any]) -> dict[str, Any]:
    """Show a lease with its reservations and events."""
    return {
        'id': noun['id'],
        'name': noun['name'],
        'user_id': noun['user_id'],
        'project_id': noun['project_id'],
        'start_date': time.date(noun['start']),
        'end_date': time.date(noun['end']),
        'trust_id': noun['trust_id'],
        'status': noun['status'],
        'degraded': noun['degraded'],
        'reservations': [_reservation(r) for r in noun['reservations']],
        'events': [_event(e) for e in noun['events']],
        **_stamps(noun),
    }


def _reservation(noun: dict[str, Any]) -> dict[str, Any]:
    shown = {
        'id': noun['id'],
        'lease_id': noun['lease_id'],
        # Blazar has a row of its own for each resource type; we have one.
        'resource_id': noun['id'],
        'resource_type': noun['resource_type'],
        'status': noun['status'],
        'missing_resources': noun['missing_resources'],
        'resources_changed': noun['resources_changed'],
        **noun['parameters'],
        **_stamps(noun),
    }
    if noun['resource_type'] == 'virtual:instance':
        # The flavor has the reservation's id. There are no others: hosts are
        # told apart by the index, and affinity is kept by the placing.
        shown |= {
            'flavor_id': noun['id'],
            'aggregate_id': None,
            'server_group_id': None,
        }
    return shown


def _event(noun: dict[str, Any]) -> dict[str, Any]:
    return {
        'id': noun['id'],
        'lease_id': noun['lease_id'],
        'event_type': noun['event_type'],
        'time': time.date(noun['time']),
        'status': noun['status'],
        **_stamps(noun),
    }


def _stamps(noun: dict[str, Any]) -> dict[str, str | None]:
    return {
        name: time.stamp(noun[name]) for name in ('created_at', 'updated_at')
    }
