# SPDX-License-Identifier: Apache-2.0
"""The view of a version of the API."""

from typing import Any

from blazar_sched.service.api import microversion
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object

LINKS = Many(
    Object(
        Field('rel', 'Relation of the link', 'self'),
        Field('href', 'URL of the link', 'https://reservation.example.org/v1'),
    )
)
# There is only one major version.
VERSION = Object(
    Field('id', 'ID of the version', 'v1.0'),
    Field('status', 'Status of the version', 'CURRENT'),
    Field('links', 'Links to the version', type=LINKS),
    Field('min_version', 'Oldest microversion', microversion.VERSIONS[0]),
    Field('max_version', 'Newest microversion', microversion.VERSIONS[-1]),
    name='Version', meaning='A version of the API',
)


def version(prefix: str) -> dict[str, Any]:
    """Show the only major version, in the form that clients discover.

    :param prefix: the URL that the API is under
    """
    found = {
        'id': 'v1.0',
        'status': 'CURRENT',
        'links': [{'rel': 'self', 'href': f'{prefix}/v1'}],
        'min_version': microversion.VERSIONS[0],
        'max_version': microversion.VERSIONS[-1],
    }
    return VERSION.show(found, microversion.V1_0)
