# SPDX-License-Identifier: Apache-2.0
"""The view of the allocations of a host, and its schema."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time

# Allocations in the form of the manager; the document has the view of a
# version.
EXAMPLE = {
    'host_id': '7',
    'reservations': [
        {
            'id': 'b1f5d6c4-0000-4000-8000-000000000001',
            'lease_id': 'b1f5d6c4-0000-4000-8000-000000000000',
            'start': 1767229200,
            'end': 1767232800,
        },
    ],
}


def allocation(
    allocation: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    """Show the allocations of a host, one reservation each."""
    form = time.form(version)
    return {
        'resource_id': allocation['host_id'],
        'reservations': [
            {
                'id': r['id'],
                'lease_id': r['lease_id'],
                'start_date': form.date(r['start']),
                'end_date': form.date(r['end']),
            }
            for r in allocation['reservations']
        ],
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe the view of the allocations of a host."""
    form = time.form(version)
    reservation = {
        'id': meaning.said(meaning.ID),
        'lease_id': meaning.said(meaning.LEASE_ID),
        'start_date': meaning.said(meaning.START, form.date_schema),
        'end_date': meaning.said(meaning.END, form.date_schema),
    }
    return shape.described(
        'What is reserved on a host',
        {
            'resource_id': meaning.said(meaning.HOST_ID),
            'reservations': meaning.said(
                'Those that have allocations on it',
                shape.many(shape.whole(reservation)),
            ),
        },
        allocation(EXAMPLE, version),
    )
