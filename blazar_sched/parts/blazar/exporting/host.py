# SPDX-License-Identifier: Apache-2.0
"""Conversion of hosts to rows of Blazar's tables."""

from collections.abc import Iterator
import uuid

from blazar_sched.domain import inventory
from blazar_sched.domain.host import Host
from blazar_sched.parts.blazar import tables as blazar

# The fields of a host that Blazar's hosts do not have.
_LOST = (
    'unbounded', 'cleaning_time', 'disabled', 'spare', 'projects',
    'available_from', 'available_until', 'maintenances',
)  # fmt: skip


def notes(host: Host) -> Iterator[str]:
    """Yield what is lost of an exported host."""
    # A cleaning time of 0 minutes differs from the cloud's.
    lost = [n for n in _LOST if getattr(host, n) not in (None, False, ())]
    if lost:
        yield f'host {host.hypervisor_hostname}: lost are {", ".join(lost)}'


def to_row(host: Host, id_: str, trust_id: str) -> blazar.Row:
    """Return the row of a host that Blazar does not have yet."""

    def total(name: str) -> int:
        held = host.inventory.get(name)
        return held.total if held else 0

    return {
        'id': id_,
        'hypervisor_hostname': host.hypervisor_hostname,
        'service_name': host.service_name,
        'hypervisor_type': host.hypervisor_type,
        'hypervisor_version': host.hypervisor_version,
        'cpu_info': host.cpu_info,
        'availability_zone': host.availability_zone,
        'vcpus': total(inventory.VCPU),
        'memory_mb': total(inventory.MEMORY_MB),
        'local_gb': total(inventory.DISK_GB),
        'trust_id': trust_id,
        'created_at': host.created_at,
    }


def inventory_rows(host: Host, id_: str) -> Iterator[blazar.Row]:
    """Yield the rows of the inventory of a host."""
    for name, held in host.inventory.items():
        yield {
            'id': str(uuid.uuid4()),
            'computehost_id': id_,
            'resource_class': name,
            'total': held.total,
            'reserved': held.reserved,
            'min_unit': held.min_unit,
            'max_unit': held.total if held.max_unit is None else held.max_unit,
            'step_size': held.step_size,
            'allocation_ratio': held.allocation_ratio,
            'created_at': host.created_at,
        }


def trait_rows(host: Host, id_: str) -> Iterator[blazar.Row]:
    """Yield the rows of the traits of a host."""
    for trait in host.traits:
        yield {
            'id': str(uuid.uuid4()),
            'computehost_id': id_,
            'trait': trait,
            'created_at': host.created_at,
        }
