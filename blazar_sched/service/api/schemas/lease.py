# SPDX-License-Identifier: Apache-2.0
"""What a client may send about a lease."""

from typing import Any

from blazar_sched.service.api import validation

# The most that fits the index; its amounts are 32 bits wide.
_MOST = 2**31 - 1
_MAX_RESERVATIONS = 100

_NAME = {'type': 'string', 'minLength': 1, 'maxLength': 80}
_DATE = {'type': ['string', 'null'], 'maxLength': 40}
_COUNT = {'type': 'integer', 'minimum': 1, 'maximum': _MOST}
_SIZE = {'type': 'integer', 'minimum': 0, 'maximum': _MOST}
_REQUIREMENT = {'type': 'string', 'default': ''}

# The parameters of each resource type.
PARAMETERS: dict[str, dict[str, Any]] = {
    'physical:host': {
        'min': _COUNT,
        'max': _COUNT,
        'hypervisor_properties': _REQUIREMENT,
        'resource_properties': _REQUIREMENT,
        'before_end': {
            'enum': ['', 'default'],
            'default': 'default',
        },
    },
    'virtual:instance': {
        'vcpus': _COUNT,
        'memory_mb': _COUNT,
        'disk_gb': _SIZE,
        'amount': _COUNT,
        'affinity': {'type': ['boolean', 'null'], 'default': None},
        'resource_properties': _REQUIREMENT,
    },
}
# Parameters that hold a requirement.
REQUIREMENTS = ('hypervisor_properties', 'resource_properties')


def _of_type(resource_type: str, parameters: dict[str, Any]) -> dict:
    """Say what else a reservation of `resource_type` has."""
    return {
        'if': {'properties': {'resource_type': {'const': resource_type}}},
        'then': {
            'properties': {'resource_type': {}, **parameters},
            'required': [
                name
                for name, schema in parameters.items()
                if 'default' not in schema
            ],
            'additionalProperties': False,
        },
    }


_NEW_RESERVATION = {
    'type': 'object',
    'required': ['resource_type'],
    'properties': {'resource_type': {'enum': list(PARAMETERS)}},
    'allOf': [_of_type(*item) for item in PARAMETERS.items()],
}

# Which type a reservation has is the manager's to know.
_CHANGED_RESERVATION = {
    'type': 'object',
    'required': ['id'],
    'properties': {
        'id': {'type': 'string', 'maxLength': 36},
        'resource_type': {'enum': list(PARAMETERS)},
        **PARAMETERS['physical:host'],
        **PARAMETERS['virtual:instance'],
    },
    'additionalProperties': False,
}

CREATE = validation.validator(
    {
        'type': 'object',
        'required': ['name', 'reservations'],
        'properties': {
            'name': _NAME,
            # Absent: now.
            'start_date': _DATE,
            # Absent or null: never.
            'end_date': _DATE,
            # Absent or null: as long before the end as configured.
            'before_end_date': _DATE,
            'reservations': {
                'type': 'array',
                'minItems': 1,
                'maxItems': _MAX_RESERVATIONS,
                'items': _NEW_RESERVATION,
            },
            # Blazar's clients always send the list, nearly always empty.
            'events': {'type': 'array', 'maxItems': 0},
        },
        'additionalProperties': False,
    }
)

UPDATE = validation.validator(
    {
        'type': 'object',
        'properties': {
            'name': _NAME,
            'start_date': {'type': 'string', 'maxLength': 40},
            'end_date': _DATE,
            'before_end_date': _DATE,
            'reservations': {
                'type': 'array',
                'maxItems': _MAX_RESERVATIONS,
                'items': _CHANGED_RESERVATION,
            },
        },
        'additionalProperties': False,
    }
)

_WHOLE_NUMBERS = ('min', 'max', 'vcpus', 'memory_mb', 'disk_gb', 'amount')
_AFFINITIES = {
    '': None,
    'none': None,
    'true': True,
    '1': True,
    'false': False,
    '0': False,
}


def plain(document: Any) -> Any:
    """Return `document` with numbers for what clients send as text.

    Blazar's own client sends ``affinity`` as the text 'None' or 'True', and
    scripts send all they have read from a command line as text. What does
    not look like it should is left for the schema to refuse.
    """
    reservations = isinstance(document, dict) and document.get('reservations')
    if not isinstance(reservations, list):
        return document
    return {**document, 'reservations': [_plain(r) for r in reservations]}


def _plain(reservation: Any) -> Any:
    if not isinstance(reservation, dict):
        return reservation
    read = dict(reservation)
    for name in _WHOLE_NUMBERS:
        text = read.get(name)
        if isinstance(text, str) and text.isascii() and text.isdigit():
            # As many digits as any number that is let through.
            read[name] = int(text[:20])
    if isinstance(read.get('affinity'), str | int):
        text = str(read['affinity']).lower()
        read['affinity'] = _AFFINITIES.get(text, read['affinity'])
    return read


def with_defaults(reservation: dict[str, Any]) -> dict[str, Any]:
    """Return a valid new `reservation` with every parameter of its type."""
    schemas = PARAMETERS[reservation['resource_type']]
    defaults = {
        name: schema['default']
        for name, schema in schemas.items()
        if 'default' in schema
    }
    return {**defaults, **reservation}
