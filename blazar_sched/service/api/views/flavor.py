# SPDX-License-Identifier: Apache-2.0
"""The view of a flavor."""

from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT

FLAVOR = Object(
    Field('id', 'ID of the flavor in Nova', 'm1.small', TEXT),
    Field('name', 'Name of the flavor', 'small', TEXT),
    Field('vcpus', 'Number of vCPUs', 2, INTEGER),
    Field('memory_mb', 'Memory in MB', 2048, INTEGER),
    Field('disk_gb', 'Size of the root disk in GB', 20, INTEGER),
    Field('ephemeral_gb', 'Size of the ephemeral disk in GB', 0, INTEGER),
    Field('swap_mb', 'Size of the swap disk in MB', 0, INTEGER), name='Flavor',
    meaning='A flavor of Nova that a reservation can name',
)
