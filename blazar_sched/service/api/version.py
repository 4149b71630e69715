# SPDX-License-Identifier: Apache-2.0
"""The versions of the API: the routes, and the view."""

from typing import Any

import falcon

from blazar_sched.service.api import microversion
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route

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


def list_versions(
    req: falcon.Request, caller: Caller | None
) -> dict[str, Any]:
    """List the versions in the form that OpenStack clients discover."""
    return {'versions': [version(req.prefix)]}


def show_version(req: falcon.Request, caller: Caller | None) -> dict[str, Any]:
    """Show the version that is at this path, in the same form."""
    return {'version': version(req.prefix)}


_VERSIONS = Answer(VERSION, 'versions', many=True, as_is=True)
ROUTES = (
    Route('GET', '/', list_versions, None, _VERSIONS, 300),
    Route('GET', '/versions', list_versions, None, _VERSIONS, 300),
    Route(
        'GET', '/v1', show_version, None,
        Answer(VERSION, 'version', as_is=True),
    ),
)
