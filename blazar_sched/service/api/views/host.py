# SPDX-License-Identifier: Apache-2.0
"""How a host is shown."""

from typing import Any

from blazar_sched.service.api.views import time


def host(noun: dict[str, Any]) -> dict[str, Any]:
    """Show a host, its settings, and a key for each capability."""
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
        'created_at': time.stamp(noun['created_at']),
        'updated_at': time.stamp(noun['updated_at']),
    }
