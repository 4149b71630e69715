# SPDX-License-Identifier: Apache-2.0
"""Schemas of request bodies about a host.

Every name that is not a field of the host itself is a capability. ``hold``,
``unbounded``, ``cleaning_time``, ``disabled`` and ``projects`` are settings of
the host, and are sent in the same way: `manager.host` reads them.
"""

from typing import Any

from microversion_parse import Version

from blazar_sched.domain import reservation
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import described
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.validation import Schema
from blazar_sched.service.api.views.host import FIELDS

_MAX_CAPABILITIES = 200

_CAPABILITY_NAME = {
    'allOf': [
        {'maxLength': 64, 'x-refusal': 'Extra capability key too long'},
        text.line(64),
    ]
}


def _value(*null: str) -> Schema:
    return {'type': ['string', 'integer', *null], 'maxLength': 4096}


def _settings(*null: str) -> dict[str, Schema]:
    return {
        'hold': described(meaning.HOLD, _value(*null)),
        'unbounded': described(meaning.UNBOUNDED, _value(*null)),
        'cleaning_time': described(
            meaning.CLEANING_TIME,
            {
                'type': ['integer', 'string', *null],
                'minimum': 0,
                'maxLength': 9,
            },
        ),
        'disabled': described(
            meaning.DISABLED, {'type': ['boolean', 'string', *null]}
        ),
        'projects': described(
            meaning.PROJECTS,
            {
                'type': ['array', 'string', *null],
                'items': text.line(reservation.MAX_PROJECT_ID),
                'maxItems': reservation.MAX_PROJECTS,
                'maxLength': 4096,
            },
        ),
    }


# A request cannot set the other fields of a host.
_OWN = dict.fromkeys(
    ['name', *(f.name for f in FIELDS if f.name not in _settings())],
    {'not': {}, 'x-refusal': 'is a field of the host, not a capability'},
)


def _body(*null: str) -> Schema:
    return {
        'type': 'object',
        'properties': {**_OWN, **_settings(*null)},
        'propertyNames': _CAPABILITY_NAME,
        'maxProperties': _MAX_CAPABILITIES,
        'additionalProperties': described(meaning.CAPABILITY, _value(*null)),
    }


def _create(version: Version) -> Schema:
    body = _body()
    body['required'] = ['name']
    body['properties']['name'] = described(
        'Hypervisor hostname of the compute host', text.line(255)
    )
    return body


def _update(version: Version) -> Schema:
    # null deletes a setting or a capability.
    return {**_body('null'), 'minProperties': 1}


CREATE = validation.by_version(_create)
UPDATE = validation.by_version(_update)


def named(document: Any) -> Any:
    """Return `document` with the name under ``name``.

    Blazar accepts the name under ``id`` too.
    """
    if not isinstance(document, dict) or 'name' in document:
        return document
    return {'name' if k == 'id' else k: v for k, v in document.items()}
