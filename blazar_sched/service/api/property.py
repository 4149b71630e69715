# SPDX-License-Identifier: Apache-2.0
"""Host properties, with their values: the routes and the views.

A requirement can use the name of a host property.
"""

from typing import Any

import falcon

from blazar_sched.domain.demand import PHYSICAL_HOST
from blazar_sched.service.api import listing
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.field import BOOLEAN
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import TEXT
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import ADMIN
from blazar_sched.service.api.rule import PROJECT_READER_OR_ADMIN
from blazar_sched.service.api.rule import Rule

_CHANGED = 'only in the answer to a change, as Blazar has it'
# A list without details has only the names.
PROPERTY = Object(
    Field('property', meaning.PROPERTY_NAME, 'gpu'),
    *(
        Field(name, f'{means}; {_CHANGED}', get=lambda _: None, required=False)
        for name, means in (
            ('id', 'Name of the property'),
            ('property_name', 'Name of the property'),
            ('resource_type', '`physical:host`'),
        )
    ),
    Field('private', meaning.PRIVATE, False, BOOLEAN, required=False),
    Field(
        'values', 'Values of the property on hosts', ['a100', 'h100'],
        Many(TEXT), required=False,
    ),
    name='Property',
    meaning='A capability of hosts that a requirement can name',
)
_PUBLIC_PROPERTY = Object(
    Field('property', meaning.PROPERTY_NAME, 'gpu'),
    Field(
        'values', 'Values of the property on hosts', ['a100', 'h100'],
        Many(TEXT),
    ),
    Field(
        'values_left_out', 'Number of values that are not shown', 0, INTEGER
    ),
)
PUBLIC_PROPERTIES = Object(
    Field('zones', 'Availability zones of the hosts', ['nova'], Many(TEXT)),
    Field(
        'properties', 'Properties that a requirement can name',
        type=Many(_PUBLIC_PROPERTY),
    ),
    Field(
        'properties_left_out', 'Number of properties that are not shown', 0,
        INTEGER,
    ),
    name='PublicProperties',
    meaning='The zones and the properties of hosts that a project may use',
)

QUERY = (
    Field(
        'detail', 'Whether to show the values of each property', type=BOOLEAN
    ),
    Field(
        'all',
        'Whether to list private properties too, for administrators only',
        type=BOOLEAN,
    ),
)
UPDATE = validation.by_version(
    Object(Field('private', meaning.PRIVATE, type=BOOLEAN)).schema
)

Body = dict[str, Any]


def list_properties(req: falcon.Request, caller: Caller) -> Body:
    """List the public properties; ``?detail`` shows their values too.

    ``?all`` lists the private properties too, if the caller is an
    administrator.
    """
    every = req.get_param_as_bool('all', default=False) and caller.is_admin
    detail = req.get_param_as_bool('detail', default=False)
    properties = listing.whole(caller.manager.list_properties)
    shown = [
        PROPERTY.show(p, caller.version)
        for p in properties
        if every or not p['private']
    ]
    if not detail:
        shown = [{'property': p['property']} for p in shown]
    return {'resource_properties': shown}


def list_public_properties(req: falcon.Request, caller: Caller) -> Body:
    """List the properties that a requirement of the project can name.

    The hosts are those in service that are open to the project. The names of
    hosts and private properties are left out.
    """
    return caller.manager.list_public_properties(project_id=caller.project_id)


def update_property(req: falcon.Request, caller: Caller, name: str) -> Body:
    """Make a property of hosts private or public."""
    validation.check_body(UPDATE, caller.version, req.media)
    changed = caller.manager.update_property(
        name=name, private=req.media['private']
    )
    blazars = {
        'id': name,
        'resource_type': PHYSICAL_HOST,
        'property_name': name,
    }
    return {'resource_property': {**changed, **blazars}}


_PATH = '/v1/os-hosts/properties'
ROUTES = (
    Route(
        'GET', _PATH, list_properties,
        Rule(
            'blazar:oshosts:get_resource_properties', ADMIN,
            'List the properties of hosts.',
        ),
        Answer(PROPERTY, 'resource_properties', many=True, as_is=True),
        query=QUERY,
    ),
    Route(
        'PATCH', f'{_PATH}/{{name}}', update_property,
        Rule('blazar:oshosts:update_resource_properties', ADMIN),
        Answer(PROPERTY, 'resource_property', as_is=True),
        variable=Field('name', meaning.PROPERTY_NAME), body=UPDATE,
    ),
    Route(
        'GET', '/v1/properties', list_public_properties,
        Rule('blazar:properties:get', PROJECT_READER_OR_ADMIN),
        Answer(PUBLIC_PROPERTIES), since=microversion.V1_1,
    ),
)
