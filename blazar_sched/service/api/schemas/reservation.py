# SPDX-License-Identifier: Apache-2.0
"""The fields of a reservation that a request can set, and their schemas."""

from collections.abc import Iterable
from collections.abc import Mapping
import itertools
from typing import Any

from microversion_parse import Version

from blazar_sched.domain import flavor
from blazar_sched.domain import label
from blazar_sched.domain.reservation import BLAZARS_BEFORE_END
from blazar_sched.service import parts
from blazar_sched.service.api import meaning
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import COUNT
from blazar_sched.service.api.field import described
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Item
from blazar_sched.service.api.field import MAX_COUNT
from blazar_sched.service.api.field import properties
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_1
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.validation import Schema

HOST = 'physical:host'
VIRTUAL_INSTANCE = 'virtual:instance'
FLAVOR_INSTANCE = 'flavor:instance'
LIFETIME = 'instance:lifetime'
# The types whose reservations may be shared and may end before their servers.
ON_HOSTS = (HOST, VIRTUAL_INSTANCE, FLAVOR_INSTANCE)

_MAX_PARAMETERS = 100

_ID = described(meaning.RESERVATION_ID, {'type': 'string', 'maxLength': 36})
_TYPE = described(meaning.RESOURCE_TYPE, text.line(64))
_COUNT_OR_NONE = Type({'type': 'integer', 'minimum': 0, 'maximum': MAX_COUNT})
# The format informs readers of the OpenAPI document: the domain parses
# a requirement.
_REQUIREMENT: Schema = {
    'type': 'string',
    'format': 'requirement',
    'default': '',
    'description': 'JSON, as in `["==", "$gpu", "a100"]`',
}
REQUIREMENT = Type(_REQUIREMENT)
_REQUIREMENT_OR_NULL = Type({**_REQUIREMENT, 'type': ['string', 'null']})
RESOURCE_PROPERTIES = Field(
    'resource_properties', meaning.REQUIREMENT, '', _REQUIREMENT_OR_NULL
)
_AMOUNT = Field('amount', 'Number of instances', type=COUNT)
_AFFINITY = Field(
    'affinity',
    'Whether all instances are on one host (`true`), each instance on another '
    'host (`false`), or anywhere (`null`)',
    type=Type({'type': ['boolean', 'null'], 'default': None}),
)
# The size of a server.
SIZE = (
    Field('vcpus', 'VCPUs of each instance', type=COUNT),
    Field('memory_mb', 'Memory of each instance, in MB', type=COUNT),
    Field('disk_gb', 'Disk of each instance, in GB', type=_COUNT_OR_NONE),
)
_EPHEMERAL = Field(
    'ephemeral_gb',
    'Ephemeral disk of each instance, in GB, beside `disk_gb`; 0 if absent',
    type=Type({
        'type': 'integer', 'minimum': 0, 'maximum': MAX_COUNT, 'default': 0,
    }),
    get=lambda r: r['parameters'].get('ephemeral_gb', 0), since=V1_1,
)
EXTRA_SPECS = Field(
    'extra_specs',
    'Extra specs of the flavor of the reservation; none if absent',
    type=Type({
        'type': 'object',
        'default': {},
        'maxProperties': flavor.MAX_EXTRA_SPECS,
        'propertyNames': {
            'pattern': f'^{flavor.EXTRA_SPEC}$',
            'x-refusal': 'must be a key with a scope, and none that the '
            'service sets or that chooses resources or hosts',
        },
        'additionalProperties': described(
            'Value of the extra spec', text.line(255)
        ),
    }),
    get=lambda r: r['parameters'].get('extra_specs', {}), since=V1_1,
)

BEFORE_END = 'before_end'
ON_START = 'on_start'
_DEFAULT = 'default'


def _action(reservation: Item) -> str:
    action: str = reservation['parameters'].get(BEFORE_END, _DEFAULT)
    return action


_BLAZARS_BEFORE_END = Field(
    BEFORE_END,
    'Action before the end of the reservation; `snapshot` creates an image of '
    'each server',
    _DEFAULT, Type({'enum': list(BLAZARS_BEFORE_END), 'default': _DEFAULT}),
)
_BEFORE_END = Field(
    BEFORE_END,
    'Action before the end of the reservation: no action, if empty; `default` '
    'is the action that the operator has configured; `snapshot` creates an '
    'image of each server; `email` sends an e-mail to the creator of the '
    'lease; `webhook` sends a request to a service of the operator; the '
    'operator may have further actions',
    _DEFAULT, Type({'type': 'string', 'maxLength': 64, 'default': _DEFAULT}),
    _action, V1_1,
)

_ON_START = Field(
    ON_START,
    'Action once the lease has started: no action, if empty; `webhook` sends '
    'a request to a service of the operator; the operator may have further '
    'actions',
    '', Type({'type': 'string', 'maxLength': 64, 'default': ''}),
    lambda r: r['parameters'].get(ON_START, ''), V1_1,
)

_OF_PARTS: Mapping[str, tuple[Field, ...]] = {
    name: fields for each in parts.each('schemas', 'PARAMETERS')
    for name, fields in each.items()
}
# The parameters of the core's own resource types, and of those of parts. The
# manager checks whether another package has a driver for a resource type, and
# that driver checks its parameters.
PARAMETERS: Mapping[str, tuple[Field, ...]] = {
    HOST: (
        Field('min', 'Minimum number of hosts', 1, COUNT),
        Field('max', 'Maximum number of hosts', 2, COUNT),
        Field(
            'hypervisor_properties', meaning.REQUIREMENT, '',
            _REQUIREMENT_OR_NULL,
        ),
        RESOURCE_PROPERTIES,
        _BLAZARS_BEFORE_END,
        _BEFORE_END,
        _ON_START,
    ),
    VIRTUAL_INSTANCE: (
        *SIZE, _EPHEMERAL, EXTRA_SPECS, _AMOUNT, _AFFINITY,
        RESOURCE_PROPERTIES, _BEFORE_END, _ON_START,
    ),
    FLAVOR_INSTANCE: (
        # The id of a flavor in Nova, which may be any text.
        Field('flavor_id', meaning.RESERVED_FLAVOR, type=Type(text.line(255))),
        _AMOUNT,
        _AFFINITY,
        RESOURCE_PROPERTIES,
        _BEFORE_END,
        _ON_START,
    ),
    **_OF_PARTS,
}
_LIFETIME_ENDS = ['delete', 'shelve', 'snapshot']
# Adds the parameters shown of a server's own lifetime. No lease request can
# have such a reservation: booting a server creates it.
SHOWN: Mapping[str, tuple[Field, ...]] = {
    **PARAMETERS,
    LIFETIME: (
        Field(
            'instance_id', 'ID of the server',
            type=Type({'type': 'string', 'format': 'uuid'}),
        ),
        Field(
            'on_end',
            'What happens to the server at its end; `snapshot` deletes the '
            'server once it has an image',
            type=Type({'enum': _LIFETIME_ENDS}),
        ),
    ),
}
# Parameters that hold a requirement.
REQUIREMENTS = ('hypervisor_properties', 'resource_properties')

_ENDS = ['delete', 'shelve', 'keep']
# The fields of a reservation on hosts beside its parameters.
_SHARED = (
    Field(
        'projects',
        'IDs of further projects that may use the reservation; at most 50 '
        'different projects in all reservations of a lease',
        ['p7'],
        Type(
            {
                'type': 'array',
                'maxItems': 50,
                'uniqueItems': True,
                'items': {
                    **text.line(64),
                    # '..' would be another path of Keystone.
                    'pattern': '^[A-Za-z0-9_@-][A-Za-z0-9._@-]*$',
                    'x-refusal': 'must be the id of a project',
                },
            }
        ),
        since=V1_1,
    ),
    Field(
        'on_end',
        'What happens to the servers when the reservation ends; `delete` if '
        'absent',
        'shelve', Type({'enum': _ENDS}), since=V1_1,
    ),
)
LABELS = Field(
    'labels', 'Texts by key, by which the lease or the reservation is found',
    {'team': 'vision'},
    Type({
        'type': 'object',
        'maxProperties': label.MAX_LABELS,
        'propertyNames': {
            'pattern': f'^{label.KEY}$',
            'x-refusal': 'must be a key of up to 64 letters, digits and ._/-',
        },
        'additionalProperties': described(
            'Value of the label', text.line(label.MAX_VALUE)
        ),
    }),
    since=V1_1, required=False,
)
_MAGNETIC = Field(
    'magnetic',
    'Whether servers use the reservation without a hint; `false` if absent',
    True, BOOLEAN, since=V1_1,
)
USE: Mapping[str, tuple[Field, ...]] = {
    HOST: (*_SHARED, LABELS, _MAGNETIC),
    VIRTUAL_INSTANCE: (*_SHARED, LABELS),
    FLAVOR_INSTANCE: (*_SHARED, LABELS),
    **dict.fromkeys(_OF_PARTS, (LABELS,)),
}
# The fields of a new reservation, from 1.1 on, beside its type and its size.
BESIDE_SIZE = (_BEFORE_END, _ON_START, *USE[HOST])
# The fields of requests alone: in a response, `hosts` are the chosen hosts.
_HOSTS = (
    Field(
        'hosts',
        'Hypervisor hostnames of the only hosts to choose from, which are put '
        'into `resource_properties`; for callers that may see the names of '
        'hosts',
        ['compute-1'],
        Type({
            'type': 'array', 'minItems': 1, 'maxItems': 50,
            'uniqueItems': True, 'items': text.line(255),
        }),
        since=V1_1,
    ),
)
# The fields beside the parameters that an update can change, whatever the
# resource type.
_CHANGED_USE = (
    *USE[HOST],
    *_HOSTS,
    Field(
        'on_end', 'What happens to the servers when the reservation ends',
        type=Type({'enum': sorted({*_ENDS, *_LIFETIME_ENDS})}), since=V1_1,
    ),
    Field(
        'remove', 'Removes the reservation from the lease',
        type=Type({'const': True}), since=V1_1,
    ),
)


def new(version: Version) -> Schema:
    """Describe a new reservation; from 1.1 on, possibly by what a part has."""
    schema = _of_any_type(version)
    if version < V1_1:
        return schema
    for of_part in parts.each('schemas', 'RESERVATIONS'):
        for field, describe in of_part.items():
            schema = {
                'if': {'required': [field]}, 'then': describe(version),
                'else': schema,
            }
    return schema


def _of_any_type(version: Version) -> Schema:
    return {
        'type': 'object',
        'required': ['resource_type'],
        'properties': {'resource_type': _TYPE},
        'maxProperties': _MAX_PARAMETERS,
        'allOf': [
            *(_of_type(type_, version) for type_ in PARAMETERS),
            _of_others(PARAMETERS),
        ],
    }


def _of_type(resource_type: str, version: Version) -> Schema:
    """Describe the other fields of a reservation of `resource_type`."""
    parameters = properties(PARAMETERS[resource_type], version)
    hosts = _HOSTS if resource_type in ON_HOSTS else ()
    return {
        'if': {'properties': {'resource_type': {'const': resource_type}}},
        'then': {
            'properties': {
                'resource_type': {},
                **parameters,
                **properties(USE.get(resource_type, ()), version),
                **properties(hosts, version),
            },
            'required': [
                name
                for name, schema in parameters.items()
                if 'default' not in schema
            ],
            'additionalProperties': False,
        },
    }


def _of_others(types: Iterable[str]) -> Schema:
    """Describe what is read in a reservation of a type that is not in `types`.

    These fields are read in each version; only the manager knows the others.
    """
    return {
        'if': {
            'required': ['resource_type'],
            'properties': {'resource_type': {'not': {'enum': list(types)}}},
        },
        'then': {
            'properties': {
                **properties((*USE[HOST], *_HOSTS), V1_1),
                'product': {
                    'not': {},
                    'x-refusal':
                        'is in place of resource_type: use one of them',
                },
            },
        },
    }


def changed(version: Version) -> Schema:
    """Describe the changes of a reservation; from 1.1 on, a new one too."""
    known = _known(version)
    if version < V1_1:
        return known
    return {'if': {'required': ['id']}, 'then': known, 'else': new(version)}


def _known(version: Version) -> Schema:
    # Only the manager knows the type of an existing reservation; a parameter
    # that is absent stays as it is.
    parameters = {
        name: {k: v for k, v in schema.items() if k != 'default'}
        for fields in PARAMETERS.values()
        for name, schema in properties(fields, version).items()
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
                **parameters,
                **properties(_CHANGED_USE, version),
            },
            'additionalProperties': False,
        },
        'allOf': [_of_others(SHOWN)],
    }


_WHOLE_NUMBERS = (
    'min', 'max', 'vcpus', 'memory_mb', 'disk_gb', 'ephemeral_gb', 'amount',
)
_AFFINITIES = {
    '': None,
    'none': None,
    'true': True,
    '1': True,
    'false': False,
    '0': False,
}


def plain(reservation: Any) -> Any:
    """Return `reservation` with values in other forms converted.

    Blazar's own client sends ``affinity`` as the text 'None' or 'True', and
    scripts send all values from a command line as text. These values are
    converted to the form of the schema. A value in no known form is left for
    the schema to refuse.
    """
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


def of_blazar(reservation: Any) -> Any:
    """Return a reservation of a request in 1.0, without what Blazar ignores.

    Blazar ignores unknown keys. A key that only a later version has is left
    for the schema to refuse. A client may send back a reservation as 1.0 shows
    it: the flavors that are shown there are no change.
    """
    if not isinstance(reservation, dict):
        return reservation
    type_ = reservation.get('resource_type')
    if type_ is not None and type_ not in list(PARAMETERS):
        return reservation
    fields = itertools.chain(
        *(f for name, f in PARAMETERS.items() if type_ in (None, name)),
        _CHANGED_USE,
    )
    names = {'id', 'resource_type', *(field.name for field in fields)}
    # Clients of Nectar's fork send these fields to any Blazar.
    names -= {_EPHEMERAL.name, EXTRA_SPECS.name}
    read = {k: v for k, v in reservation.items() if k in names}
    if 'flavor_id' in read and read['flavor_id'] == read.get('id'):
        del read['flavor_id']
    shown = str(read.get('resource_properties')).startswith('{')
    if type_ == FLAVOR_INSTANCE and shown:
        del read['resource_properties']
    return read


def plain_all(reservations: Any) -> Any:
    """Return a list of reservations, each as `plain` returns it.

    What is no list is left for the schema to refuse.
    """
    if not isinstance(reservations, list):
        return reservations
    return list(map(plain, reservations))


def with_defaults(
    reservation: dict[str, Any], version: Version = V1_1
) -> dict[str, Any]:
    """Return a valid new `reservation` with every parameter of its type."""
    fields = PARAMETERS.get(reservation.get('resource_type', ''), ())
    defaults = {
        name: schema['default']
        for name, schema in properties(fields, version).items()
        if 'default' in schema
    }
    return {**defaults, **reservation}
