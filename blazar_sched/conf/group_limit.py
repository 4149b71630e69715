# SPDX-License-Identifier: Apache-2.0
"""The option of group limits, whose values are JSON objects."""

from typing import Any

import os_resource_classes as orc
from oslo_config import cfg

from blazar_sched.conf.enforcement import CUSTOM
from blazar_sched.conf.json_objects import JsonObjects
from blazar_sched.conf.json_objects import LINE
from blazar_sched.conf.json_objects import MAX_INT
from blazar_sched.conf.json_objects import requirement
from blazar_sched.domain.group_limit import GroupLimit

_SCHEMA = {
    'properties': {
        'name': LINE,
        'resource_properties': {'type': 'array'},
        'resource_class': {
            'type': 'string', 'anyOf': [
                {'enum': orc.STANDARDS}, {'pattern': rf'^{CUSTOM.pattern}\Z'},
            ],
        },
        'counted_property': LINE,
        'max': {'type': 'integer', 'minimum': 0, 'maximum': MAX_INT},
        'share': {'type': 'number', 'minimum': 0, 'maximum': 1},
    },
    'required': ['name'],
    'oneOf': [{'required': ['max']}, {'required': ['share']}],
    'not': {'required': ['resource_class', 'counted_property']},
}


def _read(fields: dict[str, Any]) -> GroupLimit:
    properties = fields.pop('resource_properties', [])
    return GroupLimit(resource_properties=requirement(properties), **fields)


opt = cfg.MultiOpt(
    'group_limit', item_type=JsonObjects('group limit', _SCHEMA, _read),
    default=[],
    help='Limit on what all leases together may reserve on a group of hosts '
    'at the same time, such as the power of a rack or licences: a JSON object '
    'such as ``{"name": "rack 7", "resource_properties": ["==", "$$rack", '
    '"7"], "counted_property": "watts", "max": 12000}``, with each $ written '
    'as $$. ``name`` and one of ``max`` and ``share`` are required; ``share`` '
    'is a part of the group from 0 to 1. The group has the hosts that meet '
    '``resource_properties``, by default all. What counts is the amount of '
    '``resource_class``, or each host on which a lease has a reservation, '
    'with the number in its property ``counted_property`` or with 1. The '
    'option may be repeated; of two group limits of one name the last one '
    'counts. Set the same values for all managers.',
)


def group_limits(conf: cfg.ConfigOpts) -> tuple[GroupLimit, ...]:
    """Return the group limits of the configuration."""
    limits = {each.name: each for each in conf.manager.group_limit if each}
    return tuple(limits.values())
