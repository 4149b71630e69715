# SPDX-License-Identifier: Apache-2.0
"""Hosts: the routes, the view, and the schemas of request bodies.

Every name that is not a field of the host itself is a capability. ``hold``,
``unbounded``, ``cleaning_time``, ``disabled``, ``spare`` and ``projects`` are
settings of the host, and are sent in the same way: `manager.host` reads them.
"""

from collections.abc import Callable
from typing import Any

import falcon
from microversion_parse import Version

from blazar_sched.domain import reservation
from blazar_sched.service.api import meaning
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.collection import Collection
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import described
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import INTEGER_OR_NULL
from blazar_sched.service.api.field import Item
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import NULL
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.field import TEXT_OR_NULL
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.microversion import V1_1
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.schemas import text
from blazar_sched.service.api.times import DATE_OR_NULL
from blazar_sched.service.api.times import STAMPS
from blazar_sched.service.api.validation import Schema
from blazar_sched.service.bus import calls

_HOLD = Type({'enum': ['shared', 'dedicated']})
_NOTHING = 'Always null; Blazar has the field'


def _nothing(host: Item) -> None:
    return None


def _total(resource_class: str) -> Callable[[Item], int]:
    def get(host: Item) -> int:
        inventory = host['inventory'].get(resource_class)
        return 0 if inventory is None else int(inventory['total'])

    return get


# Blazar's clients treat each unknown key as a capability, so 1.0 shows only
# the fields that Blazar's hosts have.
FIELDS = (
    Field('id', meaning.HOST_ID, '7'),
    Field('hypervisor_hostname', 'Hypervisor hostname in Nova', 'compute-1'),
    Field('hypervisor_type', 'Hypervisor type in Nova', 'QEMU'),
    Field(
        'hypervisor_version', 'Hypervisor version in Nova', 8002000, INTEGER
    ),
    Field('vcpus', 'VCPUs in Placement', 16, INTEGER, _total('VCPU')),
    Field('cpu_info', 'CPU information from Nova', '{}'),
    Field(
        'memory_mb', 'Memory in Placement, in MB', 65536, INTEGER,
        _total('MEMORY_MB'),
    ),
    Field(
        'local_gb', 'Disk in Placement, in GB', 1000, INTEGER,
        _total('DISK_GB'),
    ),
    Field('availability_zone', 'Availability zone in Nova', 'nova'),
    Field('service_name', 'Name of the nova-compute service', 'compute-1'),
    Field('status', _NOTHING, None, NULL, _nothing),
    Field('reservable', meaning.RESERVABLE, True, BOOLEAN),
    Field('trust_id', _NOTHING, None, NULL, _nothing),
    *STAMPS,
    Field('hold', meaning.HOLD, 'shared', _HOLD, since=V1_1),
    Field('unbounded', meaning.UNBOUNDED, None, TEXT_OR_NULL, since=V1_1),
    Field('disabled', meaning.DISABLED, False, BOOLEAN, since=V1_1),
    Field('projects', meaning.PROJECTS, ['p7'], Many(TEXT), since=V1_1),
    Field('region', 'Region of the host', 'west', since=V1_1),
    Field(
        'traits', 'Traits of the host in Placement', ['HW_CPU_X86_AVX2'],
        Many(TEXT), since=V1_1,
    ),
    Field(
        'cleaning_time', meaning.CLEANING_TIME, None, INTEGER_OR_NULL,
        since=V1_1,
    ),
    Field(
        'available_from', meaning.AVAILABLE_FROM, None, DATE_OR_NULL,
        lambda host: host.get('available_from'), since=V1_1,
    ),
    Field(
        'available_until', meaning.AVAILABLE_UNTIL, None, DATE_OR_NULL,
        lambda host: host.get('available_until'), since=V1_1,
    ),
    Field('spare', meaning.SPARE, False, BOOLEAN, since=V1_1),
)


class _Host(Object):
    """A host, which has a key for each of its capabilities too."""

    def show(self, value: Item, version: Version) -> dict[str, Any]:
        return {**value['capabilities'], **super().show(value, version)}

    def example(self, version: Version, value: Any = None) -> dict[str, Any]:
        return {'gpu': 'true', **super().example(version)}


HOST = _Host(
    *FIELDS, name='Host', meaning='A compute host registered as reservable',
    more=described(meaning.CAPABILITY, {'type': 'string'}),
)

_MAX_CAPABILITIES = 200

_CAPABILITY_NAME = {
    'allOf': [
        {'maxLength': 64, 'x-refusal': 'Extra capability key too long'},
        text.line(64),
    ]
}


def _value(*types: str) -> Schema:
    return {'type': ['string', *types], 'maxLength': 4096}


def _time(*null: str) -> Schema:
    return {'type': ['string', *null], 'maxLength': 40}


def _settings(*null: str) -> dict[str, Schema]:
    return {
        'hold': described(meaning.HOLD, _value('integer', *null)),
        'unbounded': described(meaning.UNBOUNDED, _value('integer', *null)),
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
        'spare': described(
            meaning.SPARE, {'type': ['boolean', 'string', *null]}
        ),
        'available_from': described(meaning.AVAILABLE_FROM, _time(*null)),
        'available_until': described(meaning.AVAILABLE_UNTIL, _time(*null)),
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


SETTINGS = tuple(_settings())
# A request cannot set the other fields of a host.
_OWN = dict.fromkeys(
    ['name', *(f.name for f in FIELDS if f.name not in SETTINGS)],
    {'not': {}, 'x-refusal': 'is a field of the host, not a capability'},
)


def _body(*null: str) -> Schema:
    return {
        'type': 'object',
        'properties': {**_OWN, **_settings(*null)},
        'propertyNames': _CAPABILITY_NAME,
        'maxProperties': _MAX_CAPABILITIES,
        'additionalProperties': described(
            meaning.CAPABILITY, _value('number', 'boolean', *null)
        ),
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


Body = dict[str, Any]


def create_host(req: falcon.Request, caller: Caller) -> Body:
    """Register the compute host with the given name as reservable."""
    body = named(req.media)
    validation.check_body(CREATE, caller.version, body)
    values = _texts(body)
    name = values.pop('name')
    return caller.manager.create_host(name=name, values=values)


def update_host(req: falcon.Request, caller: Caller, host_id: str) -> Body:
    """Change a host's capabilities and settings; null deletes one."""
    validation.check_body(UPDATE, caller.version, req.media)
    return caller.manager.update_host(
        host_id=host_id, values=_texts(req.media)
    )


def _texts(body: Body) -> Body:
    """Return numbers and, but for settings, booleans as Blazar's text."""
    return {
        name: str(value)
        if type(value) in (int, float)
        or (type(value) is bool and name not in SETTINGS)
        else value
        for name, value in body.items()
    }


HOSTS = Collection(
    '/v1/os-hosts', Field('host_id', meaning.HOST_ID), 'host', 'hosts',
    'blazar:oshosts', ADMIN, ADMIN, HOST, calls=calls.HOSTS,
)
ROUTES = (
    HOSTS.to_list('List the reservable hosts.'),
    HOSTS.to_create(create_host, CREATE),
    HOSTS.to_show('Show a host.'),
    HOSTS.to_update(update_host, UPDATE),
    HOSTS.to_delete('Make a host no longer reservable.'),
)
