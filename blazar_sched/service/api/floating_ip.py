# SPDX-License-Identifier: Apache-2.0
"""Floating IPs: handlers that translate requests into calls to the manager."""

from typing import Any

import falcon

from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.schemas import floating_ip as schemas
from blazar_sched.service.api.views.floating_ip import FLOATING_IP

Body = dict[str, Any]


def create_floating_ip(req: falcon.Request, caller: Caller) -> Body:
    """Register a floating IP of an external network as reservable."""
    validation.check_body(schemas.CREATE, caller.version, req.media)
    return caller.manager.create_floating_ip(
        network_id=req.media['floating_network_id'],
        address=req.media['floating_ip_address'],
    )


FLOATING_IPS = Collection(
    '/v1/floatingips', Field('floating_ip_id', meaning.FLOATING_IP_ID),
    'floatingip', 'floatingips', 'blazar:floatingips', PROJECT_READER_OR_ADMIN,
    ADMIN, FLOATING_IP,
)
ROUTES = (
    FLOATING_IPS.to_list(
        'List the reservable floating IPs.',
        lambda manager: manager.list_floating_ips,
    ),
    FLOATING_IPS.to_create(create_floating_ip, schemas.CREATE),
    FLOATING_IPS.to_show(
        'Show a reservable floating IP.',
        lambda manager: manager.get_floating_ip,
    ),
    FLOATING_IPS.to_delete(
        'Make a floating IP no longer reservable.',
        lambda manager: manager.delete_floating_ip,
    ),
)
