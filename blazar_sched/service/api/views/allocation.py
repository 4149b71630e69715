# SPDX-License-Identifier: Apache-2.0
"""How the allocations of a host are shown."""

from typing import Any

from blazar_sched.service.api.views import time


def allocation(noun: dict[str, Any]) -> dict[str, Any]:
    """Show a host's allocations, a reservation each."""
    return {
        'resource_id': noun['host_id'],
        'reservations': [
            {
                'id': r['id'],
                'lease_id': r['lease_id'],
                'start_date': time.date(r['start']),
                'end_date': time.date(r['end']),
            }
            for r in noun['reservations']
        ],
    }
