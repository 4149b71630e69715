# SPDX-License-Identifier: Apache-2.0
"""The option of thresholds, whose values are JSON objects."""

import json
from typing import Any
import uuid

import jsonschema
from oslo_config import cfg
from oslo_config import types

from blazar_sched.domain import exception
from blazar_sched.domain import requirements
from blazar_sched.domain.threshold import Threshold

_MAX_INT = 2**31 - 1
# A line that each database can store.
_LINE = {
    'type': 'string', 'maxLength': 255,
    'pattern': r'^[^\x00-\x1f\x7f\ud800-\udfff]+\Z',
}
_DEFAULTS: dict[str, Any] = {
    'project_id': '', 'resource_properties': [], 'flavor_id': None,
    'within': 0,
}
_VALIDATOR = jsonschema.Draft202012Validator({
    'type': 'object',
    'properties': {
        'name': _LINE,
        'below': {'type': 'integer', 'minimum': 1, 'maximum': _MAX_INT},
        'within': {'type': 'integer', 'minimum': 0, 'maximum': _MAX_INT},
        'resource_properties': {'type': 'array'},
        'flavor_id': _LINE,
        'project_id': _LINE,
    },
    'required': ['name', 'below'],
    'additionalProperties': False,
})


class _Type(types.MultiString):
    """JSON objects, each of which is read as a threshold."""

    def __call__(self, value: Any) -> Any:
        """Return the threshold of a text; the default is read already.

        :returns: None for an empty text, as a sample of the option has it
        :raises ValueError: if the text is no threshold
        """
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return _read(json.loads(value))
        except (ValueError, exception.InvalidInput) as e:
            raise ValueError(f'{value[:200]!r} is no threshold: {e}') from e


def _read(values: Any) -> Threshold:
    """Return the threshold with these fields.

    :raises ValueError: naming the field that is wrong
    :raises InvalidInput: if the requirement is wrong
    """
    for error in _VALIDATOR.iter_errors(values):
        raise ValueError(': '.join((*error.path, error.message)))
    fields = {**_DEFAULTS, **values}
    properties = fields['resource_properties']
    text = json.dumps(properties) if properties else ''
    requirements.parse(text, 'resource_properties')
    fields['resource_properties'] = text
    id_ = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(fields, sort_keys=True))
    return Threshold(id=str(id_), **fields)


opt = cfg.MultiOpt(
    'capacity_threshold',
    item_type=_Type(),
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
