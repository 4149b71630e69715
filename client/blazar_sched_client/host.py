# SPDX-License-Identifier: Apache-2.0
"""Hosts: compute hosts registered as reservable."""

from typing import Any

from openstack import resource

from blazar_sched_client._base import Resource


class Host(Resource):
    """A compute host registered as reservable."""

    resource_key = 'host'
    resources_key = 'hosts'
    base_path = '/os-hosts'
    allow_create = True
    allow_fetch = True
    allow_commit = True
    allow_delete = True
    allow_list = True

    _store_unknown_attrs_as_properties = True

    #: Hypervisor hostname in Nova.
    name: str = resource.Body('name', alias='hypervisor_hostname')
    #: Capabilities of the host, by name; None as a value deletes one.
    properties: dict[str, Any] = resource.Body('properties')
    #: Hypervisor hostname in Nova.
    hypervisor_hostname: str = resource.Body('hypervisor_hostname')
    #: Hypervisor type in Nova.
    hypervisor_type: str = resource.Body('hypervisor_type')
    #: Hypervisor version in Nova.
    hypervisor_version: int = resource.Body('hypervisor_version', type=int)
    #: VCPUs in Placement.
    vcpus: int = resource.Body('vcpus', type=int)
    #: CPU information from Nova.
    cpu_info: str = resource.Body('cpu_info')
    #: Memory in Placement, in MB.
    memory_mb: int = resource.Body('memory_mb', type=int)
    #: Disk in Placement, in GB.
    local_gb: int = resource.Body('local_gb', type=int)
    #: Availability zone in Nova.
    availability_zone: str = resource.Body('availability_zone')
    #: Name of the nova-compute service.
    service_name: str = resource.Body('service_name')
    #: Always None; Blazar has the field.
    status: str | None = resource.Body('status')
    #: Whether the host can be reserved; False while the host has failed.
    reservable: bool = resource.Body('reservable', type=bool)
    #: Always None; Blazar has the field.
    trust_id: str | None = resource.Body('trust_id')
    #: Time of creation.
    created_at: str = resource.Body('created_at')
    #: Time of the last change.
    updated_at: str | None = resource.Body('updated_at')
    #: ``shared`` or ``dedicated``.
    hold: str = resource.Body('hold')
    #: Policy of the host for servers that declare no end.
    unbounded: str | None = resource.Body('unbounded')
    #: Whether the host gets no new allocations.
    disabled: bool = resource.Body('disabled')
    #: IDs of the projects whose reservations can use the host.
    projects: list[str] = resource.Body('projects')
    #: Region of the host.
    region: str = resource.Body('region')
    #: Traits of the host in Placement.
    traits: list[str] = resource.Body('traits', type=list)
    #: Minutes that reservations keep between each other.
    cleaning_time: int | None = resource.Body('cleaning_time')
    #: Time before which nothing may be on the host.
    available_from: str | None = resource.Body('available_from')
    #: Time from which on nothing may be on the host.
    available_until: str | None = resource.Body('available_until')
    #: Whether the host is kept for leases that lose a host.
    spare: bool = resource.Body('spare')
