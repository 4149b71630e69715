# SPDX-License-Identifier: Apache-2.0
"""Which versions of the API there are."""

from typing import Any

import falcon

from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.views import version as views


def list_versions(
    req: falcon.Request, caller: Caller | None
) -> dict[str, Any]:
    """List them, in the form that OpenStack clients discover."""
    return {'versions': [views.version(req.prefix)]}
