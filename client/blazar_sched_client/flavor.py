# SPDX-License-Identifier: Apache-2.0
"""Flavors of Nova that a reservation can name."""

from openstack import resource

from blazar_sched_client._base import Resource


class Flavor(Resource):
    """A flavor of Nova that a reservation can name."""

    resources_key = 'flavors'
    base_path = '/flavors'
    allow_list = True

    #: Number of vCPUs.
    vcpus: int = resource.Body('vcpus', type=int)
    #: Memory in MB.
    memory_mb: int = resource.Body('memory_mb', type=int)
    #: Size of the root disk in GB.
    disk_gb: int = resource.Body('disk_gb', type=int)
    #: Size of the ephemeral disk in GB.
    ephemeral_gb: int = resource.Body('ephemeral_gb', type=int)
    #: Size of the swap disk in MB.
    swap_mb: int = resource.Body('swap_mb', type=int)
