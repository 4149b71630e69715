# SPDX-License-Identifier: Apache-2.0
"""The view of a version of the API."""

from typing import Any

from blazar_sched.service.api import microversion
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.schemas import meaning

LINKS = Many(
    Object(
        Field('rel', 'What the link is to this', 'self'),
        Field(
            'href', 'Where that is', 'https://reservation.example.org/v1'
        ),
    )
)
# There is only one major version.
VERSION = Object(
    Field('id', meaning.ID, 'v1.0'),
    Field('status', meaning.STATUS, 'CURRENT'),
    Field('links', 'Where it is', type=LINKS),
    Field(
        'min_version', 'The oldest microversion', microversion.VERSIONS[0]
    ),
    Field(
        'max_version', 'The newest microversion', microversion.VERSIONS[-1]
    ),
    meaning='A version of the API',
)


def version(prefix: str) -> dict[str, Any]:
    """Show the only major version, in the form that clients discover.

    :param prefix: the URL that the API is under
    """
    return {
        **VERSION.example(microversion.V1_0),
        'links': [{'rel': 'self', 'href': f'{prefix}/v1'}],
    }
