# SPDX-License-Identifier: Apache-2.0
"""Floating IPs: the routes, with the view by Neutron's names."""

from operator import itemgetter
from typing import Any
from typing import cast

import falcon

from blazar_sched.parts.floating_ip import calls
from blazar_sched.parts.floating_ip import schemas
from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.times import STAMPS

_ID = 'ID of the floating IP'

Body = dict[str, Any]

FLOATING_IP = Object(
    Field('id', _ID, 'b1f5d6c4-0000-4000-8000-000000000004'),
    Field(
        'floating_network_id', schemas.NETWORK,
        'b1f5d6c4-0000-4000-8000-000000000005', TEXT, itemgetter('network_id'),
    ),
    Field(
        'subnet_id', 'ID of the subnet', 'b1f5d6c4-0000-4000-8000-000000000006'
    ),
    Field(
        'floating_ip_address', schemas.ADDRESS, '192.0.2.7', TEXT,
        itemgetter('address'),
    ),
    Field('reservable', meaning.RESERVABLE, True, BOOLEAN), *STAMPS,
    name='FloatingIP', meaning='A floating IP registered as reservable',
)


def create_floating_ip(req: falcon.Request, caller: Caller) -> Body:
    """Register a floating IP of an external network as reservable."""
    validation.check_body(schemas.CREATE, caller.version, req.media)
    return cast(calls.Calls, caller.manager).create_floating_ip(
        network_id=req.media['floating_network_id'],
        address=req.media['floating_ip_address'],
    )


FLOATING_IPS = Collection(
    '/v1/floatingips', Field('floating_ip_id', _ID), 'floatingip',
    'floatingips', 'blazar:floatingips', PROJECT_READER_OR_ADMIN, ADMIN,
    FLOATING_IP, calls=calls.FLOATING_IPS,
)
ROUTES = (
    FLOATING_IPS.to_list('List the reservable floating IPs.'),
    FLOATING_IPS.to_create(create_floating_ip, schemas.CREATE),
    FLOATING_IPS.to_show('Show a reservable floating IP.'),
    FLOATING_IPS.to_delete('Make a floating IP no longer reservable.'),
)
