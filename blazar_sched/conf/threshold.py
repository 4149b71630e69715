# SPDX-License-Identifier: Apache-2.0
"""The option of thresholds, whose values are JSON objects."""

import json
from typing import Any
import uuid

from oslo_config import cfg

from blazar_sched.conf.json_objects import JsonObjects
from blazar_sched.conf.json_objects import LINE
from blazar_sched.conf.json_objects import MAX_INT
from blazar_sched.conf.json_objects import requirement
from blazar_sched.domain.threshold import Threshold

_DEFAULTS: dict[str, Any] = {
    'project_id': '', 'resource_properties': [], 'flavor_id': None,
    'within': 0,
}
_SCHEMA = {
    'properties': {
        'name': LINE,
        'below': {'type': 'integer', 'minimum': 1, 'maximum': MAX_INT},
        'within': {'type': 'integer', 'minimum': 0, 'maximum': MAX_INT},
        'resource_properties': {'type': 'array'},
        'flavor_id': LINE,
        'project_id': LINE,
    },
    'required': ['name', 'below'],
}


def _read(values: dict[str, Any]) -> Threshold:
    """Return the threshold with these fields.

    :raises InvalidInput: if the requirement is wrong
    """
    fields = {**_DEFAULTS, **values}
    fields['resource_properties'] = requirement(fields['resource_properties'])
    id_ = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(fields, sort_keys=True))
    return Threshold(id=str(id_), **fields)


opt = cfg.MultiOpt(
    'capacity_threshold',
    item_type=JsonObjects('threshold', _SCHEMA, _read),
    default=[],
    mutable=True,
    help='Number of free hosts, or of free instances of a flavor, below which '
    'the operator is notified: a JSON object such as ``{"name": "A100 hosts", '
    '"below": 5, "within": 604800, "resource_properties": ["==", "$$gpu", '
    '"a100"]}``, with each $ written as $$. ``name`` and ``below`` are '
    'required; ``within`` is the number of seconds from now on for which the '
    'hosts or instances must be free; ``flavor_id`` counts instances in place '
    'of hosts; ``project_id`` also counts the hosts that are restricted to '
    'this project. The option may be repeated. Set the same values for all '
    'managers.',
)


def thresholds(conf: cfg.ConfigOpts) -> list[Threshold]:
    """Return the thresholds of the configuration."""
    return [each for each in conf.manager.capacity_threshold if each]
