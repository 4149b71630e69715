# SPDX-License-Identifier: Apache-2.0
"""The view of a floating IP, and its schema."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time

# A floating IP in the form of the manager; the document has the view of a
# version.
EXAMPLE = {
    'id': 'b1f5d6c4-0000-4000-8000-000000000004',
    'network_id': 'b1f5d6c4-0000-4000-8000-000000000005',
    'subnet_id': 'b1f5d6c4-0000-4000-8000-000000000006',
    'address': '192.0.2.7',
    'reservable': True,
    'created_at': 1767225600,
    'updated_at': None,
}


def floating_ip(
    floating_ip: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    """Show a floating IP, by Neutron's names."""
    form = time.form(version)
    return {
        'id': floating_ip['id'],
        'floating_network_id': floating_ip['network_id'],
        'subnet_id': floating_ip['subnet_id'],
        'floating_ip_address': floating_ip['address'],
        'reservable': floating_ip['reservable'],
        'created_at': form.stamp(floating_ip['created_at']),
        'updated_at': form.stamp(floating_ip['updated_at']),
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe the view of a floating IP."""
    form = time.form(version)
    return shape.described(
        'An address that can be reserved',
        {
            'id': meaning.said(meaning.ID),
            'floating_network_id': meaning.said(meaning.NETWORK),
            'subnet_id': meaning.said('Its subnet, by its id'),
            'floating_ip_address': meaning.said(meaning.ADDRESS),
            'reservable': meaning.said(meaning.RESERVABLE, shape.BOOLEAN),
            **form.stamps_schema,
        },
        floating_ip(EXAMPLE, version),
    )
