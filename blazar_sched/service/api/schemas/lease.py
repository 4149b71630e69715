# SPDX-License-Identifier: Apache-2.0
"""Schemas of request bodies about a lease, and of a query of a lease list."""

from typing import Any

import microversion_parse

from blazar_sched.domain import state_machine
from blazar_sched.service.api import listing
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.schemas import floating_ip
from blazar_sched.service.api.schemas import meaning
from blazar_sched.service.api.schemas import text

# The greatest amount that fits the index, whose amounts have 32 bits.
_MOST = 2**31 - 1
_MAX_RESERVATIONS = 100

_MAX_PARAMETERS = 100

_NAME = meaning.said(meaning.NAME, text.line(80))
_ID = meaning.said(meaning.ID, {'type': 'string', 'maxLength': 36})
_TYPE = meaning.said(meaning.RESOURCE_TYPE, text.line(64))
# Formats inform readers of the OpenAPI document: times and requirements are
# parsed by the domain.
DATE = {
    'type': 'string',
    'format': 'lease-time',
    'maxLength': 40,
    'description': (
        '`2026-01-31 09:30`, with seconds and a zone if wanted; UTC without'
    ),
}
_COUNT = {'type': 'integer', 'minimum': 1, 'maximum': _MOST}
_COUNT_OR_NONE = {**_COUNT, 'minimum': 0}
REQUIREMENT = {
    'type': 'string',
    'format': 'requirement',
    'default': '',
    'description': (
        'What its hosts have to be like; JSON, as in '
        '`["==", "$gpu", "a100"]`'
    ),
}
_REQUIREMENT_OR_NULL = {**REQUIREMENT, 'type': ['string', 'null']}
_AMOUNT = meaning.said('How many of them', _COUNT)
_AFFINITY = {
    'type': ['boolean', 'null'],
    'default': None,
    'description': (
        'Whether all of them are on one host (`true`), each on another '
        '(`false`), or anywhere (`null`)'
    ),
}
# The size of a server.
SIZE = {
    'vcpus': meaning.said('VCPUs of each', _COUNT),
    'memory_mb': meaning.said('MB of memory of each', _COUNT),
    'disk_gb': meaning.said('GB of disk of each', _COUNT_OR_NONE),
}

BEFORE_END = 'before_end'
_ACTION = {
    'type': 'string',
    'maxLength': 64,
    'default': 'default',
    'description': (
        'What is done before its end: nothing, if empty; `default` is as the '
        'operator has set it; `snapshot` makes an image of each of its '
        'servers, `email` writes to who has made the lease, `webhook` tells '
        "the operator's own service; the operator may have others"
    ),
}
_BLAZARS_ACTION = {
    'enum': ['', 'default', 'snapshot'],
    'default': 'default',
    'description': (
        'What is done before its end; `snapshot` makes an image of each of '
        'its servers'
    ),
}

# The parameters of this package's own resource types. The manager checks
# whether another package has a driver for a resource type, and that driver
# checks its parameters.
PARAMETERS: dict[str, dict[str, Any]] = {
    'physical:host': {
        'min': meaning.said('The fewest hosts that it takes', _COUNT),
        'max': meaning.said('The most hosts that it gets', _COUNT),
        'hypervisor_properties': _REQUIREMENT_OR_NULL,
        'resource_properties': _REQUIREMENT_OR_NULL,
        BEFORE_END: _BLAZARS_ACTION,
    },
    'virtual:instance': {
        **SIZE,
        'amount': _AMOUNT,
        'affinity': _AFFINITY,
        'resource_properties': _REQUIREMENT_OR_NULL,
    },
    'flavor:instance': {
        # The id of a flavor in Nova, which may be any text.
        'flavor_id': meaning.said(meaning.RESERVED_FLAVOR, text.line(255)),
        'amount': _AMOUNT,
        'affinity': _AFFINITY,
        'resource_properties': _REQUIREMENT_OR_NULL,
    },
    'virtual:floatingip': {
        'network_id': floating_ip.NETWORK,
        'amount': _AMOUNT,
        'required_floatingips': {
            'type': 'array',
            'items': floating_ip.ADDRESS,
            'maxItems': 1000,
            'default': [],
            'description': 'Addresses that have to be among them',
        },
    },
}
# The parameters shown of a server's own lifetime. No lease request can have
# such a reservation: booting a server creates it.
LIFETIME = 'instance:lifetime'
SHOWN: dict[str, dict[str, Any]] = {
    **PARAMETERS,
    LIFETIME: {
        'instance_id': {
            'type': 'string',
            'format': 'uuid',
            'description': 'The server, by its id',
        },
        'on_end': {
            'enum': ['delete', 'shelve', 'snapshot'],
            'description': (
                'What becomes of the server; `snapshot` deletes it once there '
                'is an image of it'
            ),
        },
    },
}
# Parameters that hold a requirement.
REQUIREMENTS = ('hypervisor_properties', 'resource_properties')

# The types whose reservations may be shared and may end before their servers.
HOST = 'physical:host'
ON_HOSTS = (HOST, 'virtual:instance', 'flavor:instance')
# The attributes of a reservation of these types beside its parameters, from
# 1.1 on.
USE: dict[str, dict[str, Any]] = {
    'projects': {
        'type': 'array',
        'maxItems': 50,
        'uniqueItems': True,
        'items': text.line(64),
        'description': (
            'Who may use it beside its own project; at most 50 different '
            'projects in all reservations of a lease'
        ),
    },
    'on_end': {
        'enum': ['delete', 'shelve', 'keep'],
        'description': 'What becomes of its servers; `delete` if absent',
    },
}
# The further attribute of a reservation of whole hosts.
MAGNETIC = {
    'magnetic': {
        'type': 'boolean',
        'description': 'Whether its servers need no hint; `false` if absent',
    },
}
# The attributes that an update may change in a reservation of any type, from
# 1.1 on.
_CHANGED_USE = {
    **USE,
    **MAGNETIC,
    'on_end': {
        'enum': sorted(
            {*USE['on_end']['enum'], *SHOWN[LIFETIME]['on_end']['enum']}
        ),
        'description': 'What becomes of its servers when it ends',
    },
    'remove': {'const': True, 'description': 'The lease loses it'},
}


def parameters(
    resource_type: str, version: microversion_parse.Version
) -> dict[str, Any]:
    """Describe the parameters of one of the resource types of this package."""
    ours = version >= microversion.V1_2 and resource_type in ON_HOSTS
    return {**SHOWN[resource_type], **({BEFORE_END: _ACTION} if ours else {})}


def use(
    resource_type: str, version: microversion_parse.Version
) -> validation.Schema:
    """Describe the attributes of a reservation beside its parameters."""
    if version < microversion.V1_1 or resource_type not in ON_HOSTS:
        return {}
    return {**USE, **(MAGNETIC if resource_type == HOST else {})}


def _changed_use(
    version: microversion_parse.Version,
) -> validation.Schema:
    return _CHANGED_USE if version >= microversion.V1_1 else {}


def _of_type(
    resource_type: str, version: microversion_parse.Version
) -> validation.Schema:
    """Describe the other attributes of a reservation of `resource_type`."""
    own = parameters(resource_type, version)
    return {
        'if': {'properties': {'resource_type': {'const': resource_type}}},
        'then': {
            'properties': {
                'resource_type': {}, **own,
                **use(resource_type, version),
            },
            'required': [
                name
                for name, schema in own.items()
                if 'default' not in schema
            ],
            'additionalProperties': False,
        },
    }


def _new_reservation(
    version: microversion_parse.Version,
) -> validation.Schema:
    return {
        'type': 'object',
        'required': ['resource_type'],
        'properties': {'resource_type': _TYPE},
        'maxProperties': _MAX_PARAMETERS,
        'allOf': [_of_type(type_, version) for type_ in PARAMETERS],
    }


def _changed_reservation(
    version: microversion_parse.Version,
) -> validation.Schema:
    # Only the manager knows the type of an existing reservation; a parameter
    # that is absent stays as it is.
    own = {
        name: {k: v for k, v in schema.items() if k != 'default'}
        for type_ in PARAMETERS
        for name, schema in parameters(type_, version).items()
    }
    return {
        'type': 'object',
        'required': ['id'],
        'properties': {'id': _ID, 'resource_type': _TYPE},
        'maxProperties': _MAX_PARAMETERS,
        # A resource type of another package has to be named.
        'if': {'properties': {'resource_type': {'enum': list(SHOWN)}}},
        'then': {
            'properties': {
                'id': {},
                'resource_type': {},
                **own,
                **_changed_use(version),
            },
            'additionalProperties': False,
        },
    }


def _known_or_new(
    version: microversion_parse.Version,
) -> validation.Schema:
    changed = _changed_reservation(version)
    if version < microversion.V1_1:
        return changed
    return {
        'if': {'required': ['id']},
        'then': changed,
        'else': _new_reservation(version),
    }


def _absent_for(meaning: str) -> validation.Schema:
    """Describe a time that may be null, or absent from a new lease."""
    return {
        **DATE,
        'type': ['string', 'null'],
        'description': f'{DATE["description"]}; null is {meaning}',
    }


_DEFAULT = 'as the operator has set it'


def _before_end(null: str) -> validation.Schema:
    return meaning.said('When its end is announced', _absent_for(null))


def _end(version: microversion_parse.Version) -> validation.Schema:
    bounded = version < microversion.V1_1
    form = DATE if bounded else _absent_for('never')
    return meaning.said(meaning.END, form)


def _reservations(item: validation.Schema) -> validation.Schema:
    return {
        'type': 'array',
        'maxItems': _MAX_RESERVATIONS,
        'items': item,
        'description': meaning.RESERVATIONS,
    }


def _create(version: microversion_parse.Version) -> validation.Schema:
    bounded = version < microversion.V1_1
    return {
        'type': 'object',
        'required': ['name', 'end_date'] if bounded else ['name'],
        'properties': {
            'name': _NAME,
            'start_date': meaning.said(meaning.START, _absent_for('now')),
            'end_date': _end(version),
            'before_end_date': _before_end(_DEFAULT),
            'reservations': _reservations(_new_reservation(version)),
            # Blazar's clients always send the list, nearly always empty.
            'events': meaning.said(
                meaning.EVENTS,
                {
                    'type': 'array',
                    'maxItems': 0,
                    'description': 'empty in a request',
                },
            ),
        },
        'additionalProperties': False,
    }


def _update(version: microversion_parse.Version) -> validation.Schema:
    null = 'as it was' if version < microversion.V1_1 else _DEFAULT
    return {
        'type': 'object',
        'properties': {
            'name': _NAME,
            'start_date': meaning.said(meaning.START, DATE),
            'end_date': _end(version),
            'before_end_date': _before_end(null),
            'reservations': _reservations(_known_or_new(version)),
        },
        'additionalProperties': False,
    }


# The maximum length of an id, and of a text in the query of a list.
MAX_ID = 36
MAX_TEXT = 255
STATUSES = list(state_machine.MACHINES[state_machine.LEASE].states)
QUERY: dict[str, dict[str, Any]] = {
    'name': text.asked(MAX_TEXT, 'Only those of this name'),
    'status': {'enum': STATUSES, 'description': 'Only those in this status'},
    'project_id': text.asked(
        MAX_TEXT, "Only this project's; an admin's to ask"
    ),
    **listing.QUERY,
}
# The header that identifies a request: a request repeated under the same key
# creates no second lease.
KEY_HEADER = 'Idempotency-Key'
HEADERS = {
    KEY_HEADER: {
        'type': 'string',
        'pattern': '^[ -~]{1,255}$',
        'description': (
            'Names the request: whoever had no answer sends it again under '
            'the same key, and is answered with the lease that it made'
        ),
    }
}
# The query parameter that asks for a response without any change.
DRY_RUN = 'dry_run'


def changing_query(
    version: microversion_parse.Version,
) -> dict[str, validation.Schema]:
    """Describe the query parameters of a request that changes a lease."""
    if version < microversion.V1_2:
        return {}
    return {
        DRY_RUN: {
            'type': 'boolean',
            'description': (
                'Whether to answer as the request would be answered now, and '
                'change nothing'
            ),
        }
    }


CREATE = validation.by_version(_create)
UPDATE = validation.by_version(_update)

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
    """Return `document` with values in other forms converted.

    Blazar's own client sends ``affinity`` as the text 'None' or 'True', and
    scripts send all values from a command line as text. These values are
    converted to the form of the schema. A value in no known form is left for
    the schema to refuse.
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
            # Enough digits for any number that the schema allows.
            read[name] = int(text[:20])
    for name in REQUIREMENTS:
        # Heat sends null for a property that its template leaves out.
        if name in read and read[name] is None:
            read[name] = ''
    if type(read.get('flavor_id')) is int:
        # The client sends an id that consists of digits as a number.
        read['flavor_id'] = str(read['flavor_id'])
    if isinstance(read.get('affinity'), str | int):
        text = str(read['affinity']).lower()
        read['affinity'] = _AFFINITIES.get(text, read['affinity'])
    return read


def with_defaults(reservation: dict[str, Any]) -> dict[str, Any]:
    """Return a valid new `reservation` with every parameter of its type."""
    schemas = PARAMETERS.get(reservation['resource_type'], {})
    defaults = {
        name: schema['default']
        for name, schema in schemas.items()
        if 'default' in schema
    }
    return {**defaults, **reservation}
