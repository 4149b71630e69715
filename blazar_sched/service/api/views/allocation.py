# SPDX-License-Identifier: Apache-2.0
"""How the allocations of a host are shown."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time


def allocation(
    noun: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    """Show a host's allocations, a reservation each."""
    form = time.form(version)
    return {
        'resource_id': noun['host_id'],
        'reservations': [
            {
                'id': r['id'],
                'lease_id': r['lease_id'],
                'start_date': form.date(r['start']),
                'end_date': form.date(r['end']),
            }
            for r in noun['reservations']
        ],
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe it."""
    form = time.form(version)
    return shape.whole(
        {
            'resource_id': shape.TEXT,
            'reservations': shape.many(
                shape.whole(
                    {
                        'id': shape.TEXT,
                        'lease_id': shape.TEXT,
                        'start_date': form.date_schema,
                        'end_date': form.date_schema,
                    }
                )
            ),
        }
    )
