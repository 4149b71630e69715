# SPDX-License-Identifier: Apache-2.0
"""Flavors: the handler that translates requests into manager calls."""

import functools
from operator import itemgetter
from typing import Any

import falcon

from blazar_sched.service.api import listing
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.views.flavor import FLAVOR

Body = dict[str, Any]


def list_flavors(req: falcon.Request, caller: Caller) -> Body:
    """List the flavors of Nova that the project may use, by name.

    The list is the copy with which the service places leases. The flavors
    that the service makes of reservations are not in the list.
    """
    found = listing.whole(
        functools.partial(
            caller.manager.list_flavors, project_id=caller.project_id
        )
    )
    found.sort(key=itemgetter('name', 'id'))
    return {'flavors': [FLAVOR.show(each, caller.version) for each in found]}
