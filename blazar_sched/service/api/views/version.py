# SPDX-License-Identifier: Apache-2.0
"""The view of a version of the API, and its schema."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views import shape

LINKS = shape.many(
    shape.whole(
        {
            'rel': meaning.said('What the link is to this'),
            'href': meaning.said('Where that is'),
        }
    )
)


def version(prefix: str) -> dict[str, Any]:
    """Show the only major version, in the form that clients discover.

    :param prefix: the URL that the API is under
    """
    return {
        'id': 'v1.0',
        'status': 'CURRENT',
        'links': [{'rel': 'self', 'href': f'{prefix}/v1'}],
        'min_version': microversion.VERSIONS[0],
        'max_version': microversion.VERSIONS[-1],
    }


_EXAMPLE = version('https://reservation.example.org')


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe the view of a version."""
    return shape.described(
        'A version of the API',
        {
            'id': meaning.said(meaning.ID),
            'status': meaning.said(meaning.STATUS),
            'links': meaning.said('Where it is', LINKS),
            'min_version': meaning.said('The oldest microversion'),
            'max_version': meaning.said('The newest microversion'),
        },
        _EXAMPLE,
    )
