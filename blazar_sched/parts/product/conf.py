# SPDX-License-Identifier: Apache-2.0
"""The options of products."""

from typing import Any

from oslo_config import cfg

from blazar_sched.conf import api
from blazar_sched.conf import manager
from blazar_sched.conf.json_objects import JsonObjects
from blazar_sched.conf.json_objects import LINE
from blazar_sched.conf.json_objects import MAX_INT
from blazar_sched.conf.json_objects import requirement
from blazar_sched.domain.demand import FLAVOR_INSTANCE
from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.domain.demand import VIRTUAL_INSTANCE
from blazar_sched.parts.product.product import Product

_COUNT = {'type': 'integer', 'minimum': 1, 'maximum': MAX_INT}
# The fields of each resource type.
_SIZES: dict[str, dict[str, Any]] = {
    PHYSICAL_HOST: {},
    VIRTUAL_INSTANCE: {
        'vcpus': _COUNT, 'memory_mb': _COUNT,
        'disk_gb': {**_COUNT, 'minimum': 0},
    },
    FLAVOR_INSTANCE: {'flavor_id': LINE},
}
_SIZE = {k: v for size in _SIZES.values() for k, v in size.items()}
_SCHEMA = {
    'properties': {
        'name': LINE,
        'description': {**LINE, 'maxLength': 1000},
        'resource_type': {'enum': list(_SIZES)},
        **_SIZE,
        'resource_properties': {'type': 'array'},
        'max_duration': _COUNT,
        'max_units': _COUNT,
        'projects': {'type': 'array', 'items': LINE},
    },
    'required': ['name', 'resource_type'],
}


def _read(fields: dict[str, Any]) -> Product:
    """Return the product with these fields.

    :raises ValueError: if the fields are not those of the resource type
    :raises InvalidInput: if the requirement is wrong
    """
    type_ = fields.pop('resource_type')
    for name in fields.keys() & _SIZE.keys() ^ _SIZES[type_].keys():
        needs = 'needs' if name in _SIZES[type_] else 'has no'
        raise ValueError(f'{type_} {needs} {name}')
    parameters = {name: fields.pop(name) for name in _SIZES[type_]}
    parameters['resource_properties'] = requirement(
        fields.pop('resource_properties', [])
    )
    fields['projects'] = tuple(fields.get('projects', ()))
    return Product(resource_type=type_, parameters=parameters, **fields)


_public = cfg.BoolOpt(
    'public_products', default=False,
    help='Whether ``/v1/products`` is also answered without a token, with '
    'the products that every project may reserve, and how much of them is '
    'free. Such an answer is kept for 5 seconds, and each API makes at '
    'most one new answer a second; other requests without a token are '
    'refused until then.',
)
_product = cfg.MultiOpt(
    'product', item_type=JsonObjects('product', _SCHEMA, _read), default=[],
    mutable=True,
    help='Product that users see in the list of products: a JSON object such '
    'as ``{"name": "a100", "resource_type": "physical:host", '
    '"resource_properties": ["==", "$$gpu", "a100"], "max_duration": 604800, '
    '"max_units": 4}``, with each $ written as $$. ``name`` and '
    '``resource_type`` are required, for ``virtual:instance`` also ``vcpus``, '
    '``memory_mb`` and ``disk_gb``, and for ``flavor:instance`` also '
    '``flavor_id``. ``description`` is a line for users; ``max_duration`` is '
    'the longest lease in seconds; ``max_units`` is the largest number of '
    'hosts or instances that all projects may have at the same time; '
    '``projects`` are the IDs of the projects that may reserve the product, '
    'by default all. The option may be repeated; of two products of one name '
    'the last one counts. Set the same values for all managers.',
)

OPTIONS = {api.GROUP: [_public], manager.GROUP: [_product]}


def products(conf: cfg.ConfigOpts) -> dict[str, Product]:
    """Return the products of the configuration by name."""
    return {each.name: each for each in conf.manager.product if each}
