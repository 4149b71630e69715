# SPDX-License-Identifier: Apache-2.0
"""The view of a host."""

from collections.abc import Callable
from typing import Any

from microversion_parse import Version

from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import described
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Item
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import NULL
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_1
from blazar_sched.service.api.microversion import V1_2
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.views.time import STAMPS

_HOLD = Type({'enum': ['shared', 'dedicated']})
_NOTHING = 'Always null; Blazar has the field'


def _nothing(host: Item) -> None:
    return None


def _total(resource_class: str) -> Callable[[Item], int]:
    def get(host: Item) -> int:
        inventory = host['inventory'].get(resource_class)
        return 0 if inventory is None else int(inventory['total'])

    return get


# Blazar's clients treat each unknown key as a capability, so 1.0 shows only
# the fields that Blazar's hosts have.
FIELDS = (
    Field('id', meaning.HOST_ID, '7'),
    Field('hypervisor_hostname', 'Hypervisor hostname in Nova', 'compute-1'),
    Field('hypervisor_type', 'Hypervisor type in Nova', 'QEMU'),
    Field(
        'hypervisor_version', 'Hypervisor version in Nova', 8002000, INTEGER
    ),
    Field('vcpus', 'VCPUs in Placement', 16, INTEGER, _total('VCPU')),
    Field('cpu_info', 'CPU information from Nova', '{}'),
    Field(
        'memory_mb', 'Memory in Placement, in MB',
        65536, INTEGER, _total('MEMORY_MB'),
    ),
    Field(
        'local_gb', 'Disk in Placement, in GB',
        1000, INTEGER, _total('DISK_GB'),
    ),
    Field('availability_zone', 'Availability zone in Nova', 'nova'),
    Field('service_name', 'Name of the nova-compute service', 'compute-1'),
    Field('status', _NOTHING, None, NULL, _nothing),
    Field('reservable', meaning.RESERVABLE, True, BOOLEAN),
    Field('trust_id', _NOTHING, None, NULL, _nothing),
    *STAMPS,
    Field('hold', meaning.HOLD, 'shared', _HOLD, since=V1_1),
    Field('unbounded', meaning.UNBOUNDED, None, TEXT_OR_NULL, since=V1_1),
    Field('disabled', meaning.DISABLED, False, BOOLEAN, since=V1_1),
    Field('projects', meaning.PROJECTS, ['p7'], Many(TEXT), since=V1_1),
    Field('region', 'Region of the host', 'west', since=V1_1),
    Field(
        'traits', 'Traits of the host in Placement',
        ['HW_CPU_X86_AVX2'], Many(TEXT), since=V1_1,
    ),
    Field(
        'cleaning_time', meaning.CLEANING_TIME,
        None, INTEGER_OR_NULL, since=V1_2,
    ),
)


class _Host(Object):
    """A host, which has a key for each of its capabilities too."""

    def show(self, value: Item, version: Version) -> dict[str, Any]:
        shown = dict(value['capabilities'])
        minutes = value['cleaning_time']
        if version == V1_1 and minutes is not None:
            # 1.1 does not know the setting, and shows it as a capability.
            shown['cleaning_time'] = str(minutes)
        return shown | super().show(value, version)

    def example(self, version: Version, value: Any = None) -> dict[str, Any]:
        return {'gpu': 'true', **super().example(version)}


HOST = _Host(
    *FIELDS,
    meaning='A compute host registered as reservable',
    more=described(meaning.CAPABILITY, {'type': 'string'}),
)
