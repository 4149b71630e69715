# SPDX-License-Identifier: Apache-2.0
"""The view of the capacity, and its schema."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time

# A capacity in the form of the manager; the document has the view of a
# version.
EXAMPLE = {
    'start': 1767229200,
    'end': 1767232800,
    'hosts': 2,
    'parts': [
        {
            'start': 1767229200,
            'end': 1767232800,
            'hosts': 1,
            'instances': None,
            'resources': [
                {
                    'resource_class': 'VCPU',
                    'total': 32,
                    'reserved': 8,
                    'used': 4,
                    'available': 20,
                },
            ],
        },
    ],
}


def capacity(
    capacity: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    """Show how much capacity there is, and is left, part by part."""
    return {
        **_dates(capacity, version),
        'hosts': capacity['hosts'],
        'parts': [
            {
                **_dates(part, version),
                'hosts': part['hosts'],
                'instances': part['instances'],
                'resources': part['resources'],
            }
            for part in capacity['parts']
        ],
    }


def _dates(
    capacity: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    form = time.form(version)
    return {
        'start_date': form.date(capacity['start']),
        'end_date': form.date(capacity['end']),
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe the view of the capacity."""
    date = time.form(version).date_schema
    dates = {
        'start_date': meaning.said(meaning.START, date),
        'end_date': meaning.said(meaning.END, date),
    }
    resource = shape.whole(
        {
            'resource_class': meaning.said("Placement's resource class"),
            'total': meaning.said('What the hosts have of it', shape.INTEGER),
            'reserved': meaning.said(
                "What is reserved at the part's start, used or not",
                shape.INTEGER,
            ),
            'used': meaning.said(
                'What servers have then that draw on no reservation, as far '
                'as their ends are known',
                shape.INTEGER,
            ),
            'available': meaning.said(
                'What is free throughout the part', shape.INTEGER
            ),
        }
    )
    part = shape.whole(
        {
            **dates,
            'hosts': meaning.said(
                'How many of them are wholly free throughout', shape.INTEGER
            ),
            'instances': meaning.said(
                'How many instances of the flavor have room throughout; null '
                'if none was asked for',
                shape.INTEGER_OR_NULL,
            ),
            'resources': meaning.said(
                'Each resource class that any of the hosts has',
                shape.many(resource),
            ),
        }
    )
    return shape.described(
        'What there is of hosts in a window',
        {
            **dates,
            'hosts': meaning.said(
                'How many hosts it is about: those that are asked for, and '
                'that the project may use',
                shape.INTEGER,
            ),
            'parts': meaning.said('One after the other', shape.many(part)),
        },
        capacity(EXAMPLE, version),
    )
