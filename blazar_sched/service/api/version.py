# SPDX-License-Identifier: Apache-2.0
"""Which versions of the API there are."""

from typing import Any

import falcon

from blazar_sched.service.api import caller as caller_
from blazar_sched.service.api import microversion


def list_versions(
    req: falcon.Request, caller: caller_.Caller | None
) -> dict[str, Any]:
    """List them, in the form that OpenStack clients discover."""
    version = {
        'id': 'v1.0',
        'status': 'CURRENT',
        'links': [{'rel': 'self', 'href': f'{req.prefix}/v1'}],
        'min_version': microversion.VERSIONS[0],
        'max_version': microversion.VERSIONS[-1],
    }
    return {'versions': [version]}
