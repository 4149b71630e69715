# SPDX-License-Identifier: Apache-2.0
"""How a floating IP is shown."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time


def floating_ip(
    noun: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    """Show where it is, by Neutron's names."""
    form = time.form(version)
    return {
        'id': noun['id'],
        'floating_network_id': noun['network_id'],
        'subnet_id': noun['subnet_id'],
        'floating_ip_address': noun['address'],
        'reservable': noun['reservable'],
        'created_at': form.stamp(noun['created_at']),
        'updated_at': form.stamp(noun['updated_at']),
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe it."""
    form = time.form(version)
    return shape.whole(
        {
            'id': shape.TEXT,
            'floating_network_id': shape.TEXT,
            'subnet_id': shape.TEXT,
            'floating_ip_address': shape.TEXT,
            'reservable': shape.BOOLEAN,
            'created_at': form.stamp_schema,
            'updated_at': form.stamp_schema,
        }
    )
