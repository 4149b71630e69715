# SPDX-License-Identifier: Apache-2.0
"""The schemas of floating IPs, and of the reservations of floating IPs."""

from blazar_sched.parts.floating_ip.demand import REQUIRED
from blazar_sched.parts.floating_ip.demand import RESOURCE_TYPE
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import COUNT
from blazar_sched.service.api.field import described
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_0
from blazar_sched.service.api.schemas import text

NETWORK = 'ID of the external network'
ADDRESS = 'IPv4 or IPv6 address'
_NETWORK_ID = Type({
    'type': 'string',
    'minLength': 1,
    'maxLength': 36,
    'allOf': [{
        'not': {'pattern': '[^!-~]'},
        'x-refusal': 'must be printable ASCII without spaces',
    }],
})
# An IPv4 or IPv6 address, which the manager parses.
_ADDRESS = text.up_to(45)
CREATE = validation.by_version(
    Object(
        Field('floating_network_id', NETWORK, type=_NETWORK_ID),
        Field('floating_ip_address', ADDRESS, type=_ADDRESS),
    ).schema
)
PARAMETERS = {
    RESOURCE_TYPE: (
        Field('network_id', NETWORK, type=_NETWORK_ID),
        Field('amount', 'Number of floating IPs', type=COUNT),
        Field(
            REQUIRED, 'Addresses that must be among the floating IPs',
            type=Type({
                'type': 'array',
                'items': described(ADDRESS, _ADDRESS.schema(V1_0)),
                'maxItems': 1000,
                'default': [],
            }),
        ),
    ),
}
