# SPDX-License-Identifier: Apache-2.0
"""How a host is shown."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import validation
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time


def host(
    noun: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    """Show a host, its settings, and a key for each capability."""
    form = time.form(version)
    inventory = noun['inventory']

    def total(resource_class: str) -> int:
        return inventory.get(resource_class, {'total': 0})['total']

    return {
        **noun['capabilities'],
        'id': noun['id'],
        'hypervisor_hostname': noun['hypervisor_hostname'],
        'hypervisor_type': noun['hypervisor_type'],
        'hypervisor_version': noun['hypervisor_version'],
        'vcpus': total('VCPU'),
        'cpu_info': noun['cpu_info'],
        'memory_mb': total('MEMORY_MB'),
        'local_gb': total('DISK_GB'),
        'availability_zone': noun['availability_zone'],
        'service_name': noun['service_name'],
        'status': None,
        'reservable': noun['reservable'],
        'trust_id': None,
        'hold': noun['hold'],
        'unbounded': noun['unbounded'],
        'disabled': noun['disabled'],
        'projects': noun['projects'],
        'region': noun['region'],
        'traits': noun['traits'],
        'created_at': form.stamp(noun['created_at']),
        'updated_at': form.stamp(noun['updated_at']),
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe it; what is not listed is a capability."""
    form = time.form(version)
    own = shape.whole(
        {
            'id': shape.TEXT,
            'hypervisor_hostname': shape.TEXT,
            'hypervisor_type': shape.TEXT,
            'hypervisor_version': shape.INTEGER,
            'vcpus': shape.INTEGER,
            'cpu_info': shape.TEXT,
            'memory_mb': shape.INTEGER,
            'local_gb': shape.INTEGER,
            'availability_zone': shape.TEXT,
            'service_name': shape.TEXT,
            'status': {'type': 'null'},
            'reservable': shape.BOOLEAN,
            'trust_id': {'type': 'null'},
            'hold': {'enum': ['shared', 'dedicated']},
            'unbounded': shape.TEXT_OR_NULL,
            'disabled': shape.BOOLEAN,
            'projects': shape.many(shape.TEXT),
            'region': shape.TEXT,
            'traits': shape.many(shape.TEXT),
            'created_at': form.stamp_schema,
            'updated_at': form.stamp_schema,
        }
    )
    return {**own, 'additionalProperties': shape.TEXT}
