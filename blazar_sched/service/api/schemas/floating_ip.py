# SPDX-License-Identifier: Apache-2.0
"""The schema of request bodies about a floating IP."""

from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.schemas import text

NETWORK = Type(
    {
        'type': 'string',
        'minLength': 1,
        'maxLength': 36,
        'allOf': [
            {
                'not': {'pattern': '[^!-~]'},
                'x-refusal': 'must be printable ASCII without spaces',
            }
        ],
    }
)
# An IPv4 or IPv6 address, which the manager parses.
ADDRESS = text.up_to(45)
CREATE = validation.by_version(
    Object(
        Field('floating_network_id', meaning.NETWORK, type=NETWORK),
        Field('floating_ip_address', meaning.ADDRESS, type=ADDRESS),
    ).schema
)
