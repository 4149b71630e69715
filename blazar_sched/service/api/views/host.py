# SPDX-License-Identifier: Apache-2.0
"""The view of a host, and its schema."""

from typing import Any

import microversion_parse

from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views import shape
from blazar_sched.service.api.views import time

_NOVAS = "Nova's"
_NOTHING = meaning.said('Nothing; Blazar has the field', {'type': 'null'})

# A host in the form of the manager; the document has the view of a version.
EXAMPLE = {
    'id': '7',
    'hypervisor_hostname': 'compute-1',
    'service_name': 'compute-1',
    'hypervisor_type': 'QEMU',
    'hypervisor_version': 8002000,
    'cpu_info': '{}',
    'availability_zone': 'nova',
    'inventory': {
        'VCPU': {'total': 16},
        'MEMORY_MB': {'total': 65536},
        'DISK_GB': {'total': 1000},
    },
    'hold': 'shared',
    'unbounded': None,
    'cleaning_time': None,
    'disabled': False,
    'projects': ['p7'],
    'region': 'west',
    'traits': ['HW_CPU_X86_AVX2'],
    'reservable': True,
    'capabilities': {'gpu': 'true'},
    'created_at': 1767225600,
    'updated_at': None,
}
# The further fields of a host from 1.1 on.
_OWN_SCHEMA = {
    'hold': meaning.said(meaning.HOLD, {'enum': ['shared', 'dedicated']}),
    'unbounded': meaning.said(meaning.UNBOUNDED, shape.TEXT_OR_NULL),
    'disabled': meaning.said(meaning.DISABLED, shape.BOOLEAN),
    'projects': meaning.said(meaning.PROJECTS, shape.many(shape.TEXT)),
    'region': meaning.said("Nova's region"),
    'traits': meaning.said("Placement's traits of it", shape.many(shape.TEXT)),
}


def host(
    host: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    """Show a host, its settings, and a key for each capability."""
    form = time.form(version)
    inventory = host['inventory']

    def total(resource_class: str) -> int:
        amount: int = inventory.get(resource_class, {'total': 0})['total']
        return amount

    return {
        **host['capabilities'],
        **_own(host, version),
        'id': host['id'],
        'hypervisor_hostname': host['hypervisor_hostname'],
        'hypervisor_type': host['hypervisor_type'],
        'hypervisor_version': host['hypervisor_version'],
        'vcpus': total('VCPU'),
        'cpu_info': host['cpu_info'],
        'memory_mb': total('MEMORY_MB'),
        'local_gb': total('DISK_GB'),
        'availability_zone': host['availability_zone'],
        'service_name': host['service_name'],
        'status': None,
        'reservable': host['reservable'],
        'trust_id': None,
        'created_at': form.stamp(host['created_at']),
        'updated_at': form.stamp(host['updated_at']),
    }


def schema(version: microversion_parse.Version) -> validation.Schema:
    """Describe the view of a host; an unlisted key is a capability."""
    form = time.form(version)
    own = shape.described(
        'A compute host registered as reservable',
        {
            'id': meaning.said(meaning.ID),
            'hypervisor_hostname': meaning.said("Nova's name of it"),
            'hypervisor_type': meaning.said(_NOVAS),
            'hypervisor_version': meaning.said(_NOVAS, shape.INTEGER),
            'vcpus': meaning.said("VCPUs, Placement's", shape.INTEGER),
            'cpu_info': meaning.said(_NOVAS),
            'memory_mb': meaning.said(
                "MB of memory, Placement's", shape.INTEGER
            ),
            'local_gb': meaning.said(
                "GB of disk, Placement's", shape.INTEGER
            ),
            'availability_zone': meaning.said(_NOVAS),
            'service_name': meaning.said('The name of its nova-compute'),
            'status': _NOTHING,
            'reservable': meaning.said(meaning.RESERVABLE, shape.BOOLEAN),
            'trust_id': _NOTHING,
            **form.stamps_schema,
            **_own_schema(version),
        },
        host(EXAMPLE, version),
    )
    return {
        **own, 'additionalProperties': meaning.said(meaning.CAPABILITY)
    }


def _own(
    host: dict[str, Any], version: microversion_parse.Version
) -> dict[str, Any]:
    """Show the fields that Blazar's hosts do not have.

    Blazar's clients treat each unknown key as a capability, so 1.0 shows none
    of these fields. 1.1 does not know ``cleaning_time``, and shows it like a
    capability.
    """
    if version < microversion.V1_1:
        return {}
    own = {name: host[name] for name in _OWN_SCHEMA}
    minutes = host['cleaning_time']
    if version >= microversion.V1_2:
        own['cleaning_time'] = minutes
    elif minutes is not None:
        own['cleaning_time'] = str(minutes)
    return own


def _own_schema(
    version: microversion_parse.Version,
) -> dict[str, validation.Schema]:
    if version < microversion.V1_1:
        return {}
    own = dict(_OWN_SCHEMA)
    if version >= microversion.V1_2:
        own['cleaning_time'] = meaning.said(
            meaning.CLEANING_TIME, shape.INTEGER_OR_NULL
        )
    return own
