# SPDX-License-Identifier: Apache-2.0
"""Floating IPs: handlers that translate requests into calls to the manager."""

from typing import Any

import falcon

from blazar_sched.service.api import listing
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.schemas import floating_ip as schemas
from blazar_sched.service.api.views.floating_ip import FLOATING_IP

Body = dict[str, Any]


def list_floating_ips(req: falcon.Request, caller: Caller) -> Body:
    """List the reservable floating IPs."""
    found = listing.whole(
        caller.manager.list_floating_ips
    )
    return {
        'floatingips': [FLOATING_IP.show(f, caller.version) for f in found]
    }


def show_floating_ip(
    req: falcon.Request, caller: Caller, floating_ip_id: str
) -> Body:
    """Show a reservable floating IP."""
    found = caller.manager.get_floating_ip(floating_ip_id=floating_ip_id)
    return {'floatingip': FLOATING_IP.show(found, caller.version)}


def create_floating_ip(req: falcon.Request, caller: Caller) -> Body:
    """Register a floating IP of an external network as reservable."""
    validation.check_body(schemas.CREATE, caller.version, req.media)
    made = caller.manager.create_floating_ip(
        network_id=req.media['floating_network_id'],
        address=req.media['floating_ip_address'],
    )
    return {'floatingip': FLOATING_IP.show(made, caller.version)}


def delete_floating_ip(
    req: falcon.Request, caller: Caller, floating_ip_id: str
) -> None:
    """Make a floating IP no longer reservable."""
    caller.manager.delete_floating_ip(floating_ip_id=floating_ip_id)
