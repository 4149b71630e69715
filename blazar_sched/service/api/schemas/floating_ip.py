# SPDX-License-Identifier: Apache-2.0
"""The schema of request bodies about a floating IP."""

from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning

NETWORK = {
    'type': 'string',
    'minLength': 1,
    'maxLength': 36,
    'allOf': [
        {
            'not': {'pattern': '[^!-~]'},
            'x-refusal': 'must be of printable ASCII, without blanks',
        }
    ],
    'description': meaning.NETWORK,
}
# An IPv4 or IPv6 address, which the manager parses.
ADDRESS = {
    'type': 'string',
    'minLength': 1,
    'maxLength': 45,
    'description': meaning.ADDRESS,
}

CREATE = validation.validator(
    {
        'type': 'object',
        'required': ['floating_network_id', 'floating_ip_address'],
        'properties': {
            'floating_network_id': NETWORK,
            'floating_ip_address': ADDRESS,
        },
        'additionalProperties': False,
    }
)
