# SPDX-License-Identifier: Apache-2.0
"""The view of a product."""

from collections.abc import Callable
from typing import Any

from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Item
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.schemas.reservation import HOST


def _parameter(name: str) -> Callable[[Item], Any]:
    return lambda product: product['parameters'].get(name)


def _size(name: str, meaning: str) -> Field:
    return Field(name, meaning, None, INTEGER_OR_NULL, _parameter(name))


PRODUCT = Object(
    Field('name', 'Name of the product', 'a100'),
    Field('description', 'Description', 'A host with 8 A100'),
    Field('resource_type', meaning.RESOURCE_TYPE, HOST),
    _size('vcpus', 'VCPUs of each instance, null for another size'),
    _size('memory_mb', 'Memory of each instance in MB, likewise'),
    _size('disk_gb', 'Disk of each instance in GB, likewise'),
    Field(
        'flavor_id', 'ID of the flavor of each instance, null for none', None,
        TEXT_OR_NULL, _parameter('flavor_id'),
    ),
    Field(
        'max_duration', 'Longest lease in seconds, null for any', 604800,
        INTEGER_OR_NULL,
    ),
    Field(
        'max_units',
        'Largest number of hosts or instances that all projects may have at '
        'the same time, null for any',
        4, INTEGER_OR_NULL,
    ),
    Field(
        'free',
        'Number of hosts or instances that are free throughout the window', 3,
        INTEGER,
    ),
    name='Product', meaning='What the operator publishes for reservations',
)
