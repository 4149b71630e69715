# SPDX-License-Identifier: Apache-2.0
"""The handlers that show the versions of the API."""

from typing import Any

import falcon

from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.views.version import VERSION
from blazar_sched.service.api.views.version import version


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
