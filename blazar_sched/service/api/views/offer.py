# SPDX-License-Identifier: Apache-2.0
"""The view of an offer, and its schema."""

from collections.abc import Mapping
from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time


def offer(
    values: Mapping[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    """Show an offer: the amount and the window for which there is room."""
    form = time.form(version)
    start, end = values['start'], values['end']
    return {
        'reservation': values.get('reservation'),
        'available': values.get('available'),
        'start_date': None if start is None else form.date(start),
        'end_date': None if end is None else form.date(end),
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe the view of an offer."""
    date = time.form(version).date_schema
    whole = shape.whole(
        {
            'reservation': meaning.said(
                'The position in the request of the reservation that finds no '
                'room, from 0 on',
                shape.INTEGER_OR_NULL,
            ),
            'available': meaning.said(
                'How many hosts or instances the window asked for has room '
                'for',
                shape.INTEGER_OR_NULL,
            ),
            'start_date': meaning.said(
                'A later start, from which all of a new lease would find room '
                'for as long; the start of a lease that cannot be as long as '
                'asked; null if none is known',
                date,
            ),
            'end_date': meaning.said(
                'The end of that, for a change the latest one that would do; '
                'null if there is none',
                date,
            ),
        }
    )
    return meaning.said(
        'What there is room for in the place of a lease that is refused for '
        'want of it; nothing is held for it',
        whole,
    )
