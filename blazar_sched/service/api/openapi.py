# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document, built from the route table and the schemas.

Each version of the API has its own document. A request body is described by
the same schema that validates the request body.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import http
import inspect
import re
from typing import Any

from microversion_parse import Version

from blazar_sched.domain import exception
from blazar_sched.service.api import errors
from blazar_sched.service.api import meaning
from blazar_sched.service.api import microversion
from blazar_sched.service.api import validation
from blazar_sched.service.api.field import described
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import many
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import properties
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.field import whole
from blazar_sched.service.api.schemas import allocation as allocation_schemas
from blazar_sched.service.api.schemas import capacity as capacity_schemas
from blazar_sched.service.api.schemas import extension as extension_schemas
from blazar_sched.service.api.schemas import floating_ip as floating_ip_schemas
from blazar_sched.service.api.schemas import host as host_schemas
from blazar_sched.service.api.schemas import idempotency as idempotency_schemas
from blazar_sched.service.api.schemas import lease as lease_schemas
from blazar_sched.service.api.schemas import lease_request as request_schemas
from blazar_sched.service.api.schemas import maintenance as maintenance_schemas
from blazar_sched.service.api.schemas import offer as offer_schemas
from blazar_sched.service.api.schemas import property as property_schemas
from blazar_sched.service.api.schemas import series as series_schemas
from blazar_sched.service.api.schemas import timeline as timeline_schemas
from blazar_sched.service.api.validation import Schema
from blazar_sched.service.api.views.allocation import ALLOCATION
from blazar_sched.service.api.views.capacity import CAPACITY
from blazar_sched.service.api.views.extension import EXTENSION
from blazar_sched.service.api.views.flavor import FLAVOR
from blazar_sched.service.api.views.floating_ip import FLOATING_IP
from blazar_sched.service.api.views.host import HOST
from blazar_sched.service.api.views.lease import LEASE
from blazar_sched.service.api.views.lease import listed
from blazar_sched.service.api.views.lease_request import LEASE_REQUEST
from blazar_sched.service.api.views.lease_request import LISTED_LEASE_REQUEST
from blazar_sched.service.api.views.maintenance import LISTED_MAINTENANCE
from blazar_sched.service.api.views.maintenance import MAINTENANCE
from blazar_sched.service.api.views.offer import HELD_OFFER
from blazar_sched.service.api.views.offer import OFFER
from blazar_sched.service.api.views.offer import OFFERS
from blazar_sched.service.api.views.property import PROPERTY
from blazar_sched.service.api.views.property import PUBLIC_PROPERTIES
from blazar_sched.service.api.views.series import LISTED_SERIES
from blazar_sched.service.api.views.series import SERIES
from blazar_sched.service.api.views.timeline import TIMELINE
from blazar_sched.service.api.views.version import LINKS
from blazar_sched.service.api.views.version import VERSION

Document = dict[str, Any]

JSON = 'application/json'


def _error_names() -> list[Schema]:
    """Describe every name that an error can have."""
    of_the_api = {
        name: (status, http.HTTPStatus(status).phrase)
        for status, name in errors.NAMES.items()
    }
    named = {
        c.__name__: (c.status, (inspect.getdoc(c) or '').partition('\n\n')[0])
        for c in vars(exception).values()
        if isinstance(c, type)
        and issubclass(c, exception.BlazarSchedError)
        and c is not exception.BlazarSchedError
    }
    return [
        {'const': name, 'description': described, 'x-status': status}
        for name, (status, described) in sorted((of_the_api | named).items())
    ]


_ERROR = Object(
    Field('error_code', 'HTTP status', 400, INTEGER),
    Field(
        'error_message',
        'Message for people; it begins with the name of the field that is '
        'wrong, if any',
        'name: Missing parameter name',
    ),
    Field(
        'error_name', 'Name of the error, for programs', errors.NAMES[400],
        Type({'type': 'string', 'anyOf': _error_names()}),
    ),
    Field(
        'offer',
        'Amount and window for which there is room, if a lease is refused for '
        'lack of room; nothing is reserved for the offer',
        type=OFFER, since=microversion.V1_1, required=False,
    ),
    meaning='The reason why a request is refused',
)
# The name of each noun in the document, and the noun's schema by version.
NOUNS: dict[str, Callable[[Version], Schema]] = {
    'Error': _ERROR.noun,
    'Allocation': ALLOCATION.noun,
    'Capacity': CAPACITY.noun,
    'Extension': EXTENSION.noun,
    'Flavor': FLAVOR.noun,
    'FloatingIP': FLOATING_IP.noun,
    'Host': HOST.noun,
    'Lease': LEASE.noun,
    'ListedLease': listed,
    'ListedMaintenance': LISTED_MAINTENANCE.noun,
    'Maintenance': MAINTENANCE.noun,
    'Offer': HELD_OFFER.noun,
    'Offers': OFFERS.noun,
    'LeaseRequest': LEASE_REQUEST.noun,
    'ListedLeaseRequest': LISTED_LEASE_REQUEST.noun,
    'ListedSeries': LISTED_SERIES.noun,
    'Property': PROPERTY.noun,
    'PublicProperties': PUBLIC_PROPERTIES.noun,
    'Series': SERIES.noun,
    'Timeline': TIMELINE.noun,
    'Version': VERSION.noun,
}
# The nouns of 1.0.
_BLAZARS_NOUNS = {
    'Error', 'Allocation', 'FloatingIP', 'Host', 'Lease', 'ListedLease',
    'Property', 'Version',
}
_TEXT = {'type': 'string'}
# The schemas of path variables, by the variable's name.
VARIABLES = properties(
    (
        Field('lease_id', meaning.LEASE_ID),
        Field('maintenance_id', meaning.MAINTENANCE_ID),
        Field('offer_id', meaning.OFFER_ID),
        Field('request_id', meaning.REQUEST_ID),
        Field('series_id', meaning.SERIES_ID),
        Field('host_id', meaning.HOST_ID),
        Field('floating_ip_id', meaning.FLOATING_IP_ID),
        Field('name', meaning.PROPERTY_NAME),
    ),
    microversion.V1_0,
)
# The error statuses of any request; then those of a request that needs a
# token, of a request that changes a resource or shows what a change would do,
# of a request with a body, and of a request with a path variable.
ANY = {400, 406, 500, 503}
WITH_TOKEN = {401, 403}
CHANGING = {409}
WITH_BODY = {404, 413, 415}
WITH_VARIABLE = {404}
REFUSALS = sorted(ANY | WITH_TOKEN | CHANGING | WITH_BODY | WITH_VARIABLE)


_TAG: Document = {
    'ETag': {
        'description': 'Tag of the response, for If-None-Match',
        'schema': _TEXT,
    }
}
_NOT_MODIFIED: Document = {
    'description': 'The caller has the response', 'headers': _TAG
}


def _noun(name: str) -> Schema:
    return {'$ref': f'#/components/schemas/{name}'}


def _one(key: str, name: str) -> Schema:
    return whole({key: _noun(name)})


def _many(key: str, name: str) -> Schema:
    return whole({key: many(_noun(name))})


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """The input and output of a handler.

    :param answer: the schema of the response body, None if there is no body
    :param body: the validator of the request body, by version
    :param query: the query parameters
    :param headers: the headers that only this operation reads
    :param tagged: whether the response has an entity tag
    :param changing: whether the operation has the refusals of a change even
        though it changes nothing
    """

    answer: Schema | None = None
    body: validation.ByVersion | None = None
    query: tuple[Field, ...] = ()
    headers: tuple[Field, ...] = ()
    tagged: bool = False
    changing: bool = False


_LEASES = _many('leases', 'ListedLease')
_LEASES['properties']['leases_links'] = described(
    'Link to further leases, if `limit` leaves any out',
    LINKS.schema(microversion.V1_0),
)

# The operations by the name of the handler.
OPERATIONS = {
    'show_document': Operation({'type': 'object'}),
    'list_versions': Operation(_many('versions', 'Version')),
    'list_leases': Operation(_LEASES, query=lease_schemas.QUERY),
    'show_lease': Operation(_one('lease', 'Lease')),
    'create_lease': Operation(
        _one('lease', 'Lease'),
        lease_schemas.CREATE,
        lease_schemas.CHANGING_QUERY,
        idempotency_schemas.HEADERS,
    ),
    'update_lease': Operation(
        _one('lease', 'Lease'),
        lease_schemas.UPDATE,
        lease_schemas.CHANGING_QUERY,
    ),
    'delete_lease': Operation(query=lease_schemas.CHANGING_QUERY),
    'show_extension': Operation(
        _one('extension', 'Extension'), query=extension_schemas.QUERY,
        changing=True,
    ),
    'list_series': Operation(_many('series', 'ListedSeries')),
    'show_series': Operation(_one('series', 'Series')),
    'create_series': Operation(
        _one('series', 'Series'),
        series_schemas.CREATE,
        lease_schemas.CHANGING_QUERY,
        idempotency_schemas.HEADERS,
    ),
    'update_series': Operation(
        _one('series', 'Series'), series_schemas.UPDATE,
        lease_schemas.CHANGING_QUERY,
    ),
    'delete_series': Operation(),
    'list_lease_requests': Operation(_many('requests', 'ListedLeaseRequest')),
    'show_lease_request': Operation(_one('request', 'LeaseRequest')),
    'create_lease_request': Operation(
        _one('request', 'LeaseRequest'), request_schemas.CREATE,
        headers=idempotency_schemas.HEADERS,
    ),
    'cancel_lease_request': Operation(),
    'list_maintenances': Operation(_many('maintenances', 'ListedMaintenance')),
    'show_maintenance': Operation(_one('maintenance', 'Maintenance')),
    'create_maintenance': Operation(
        _one('maintenance', 'Maintenance'), maintenance_schemas.CREATE,
        lease_schemas.CHANGING_QUERY,
    ),
    'update_maintenance': Operation(
        _one('maintenance', 'Maintenance'), maintenance_schemas.UPDATE,
        lease_schemas.CHANGING_QUERY,
    ),
    'delete_maintenance': Operation(),
    'list_hosts': Operation(_many('hosts', 'Host')),
    'show_host': Operation(_one('host', 'Host')),
    'create_host': Operation(_one('host', 'Host'), host_schemas.CREATE),
    'update_host': Operation(_one('host', 'Host'), host_schemas.UPDATE),
    'delete_host': Operation(),
    'list_allocations': Operation(
        _many('allocations', 'Allocation'), query=allocation_schemas.QUERY
    ),
    'show_allocation': Operation(
        _one('allocation', 'Allocation'), query=allocation_schemas.QUERY
    ),
    'update_allocation': Operation(
        _one('allocation', 'Allocation'), allocation_schemas.UPDATE
    ),
    'list_properties': Operation(
        _many('resource_properties', 'Property'),
        query=property_schemas.QUERY,
    ),
    'update_property': Operation(
        _one('resource_property', 'Property'), property_schemas.UPDATE
    ),
    'list_floating_ips': Operation(
        _many('floatingips', 'FloatingIP')
    ),
    'show_floating_ip': Operation(_one('floatingip', 'FloatingIP')),
    'create_floating_ip': Operation(
        _one('floatingip', 'FloatingIP'), floating_ip_schemas.CREATE
    ),
    'delete_floating_ip': Operation(),
    'show_capacity': Operation(
        _one('capacity', 'Capacity'), query=capacity_schemas.QUERY
    ),
    'show_timeline': Operation(
        _one('timeline', 'Timeline'), query=timeline_schemas.QUERY,
        headers=timeline_schemas.HEADERS, tagged=True,
    ),
    'list_public_properties': Operation(_noun('PublicProperties')),
    'list_flavors': Operation(_many('flavors', 'Flavor')),
    'list_offers': Operation(_many('offers', 'Offer')),
    'search_offers': Operation(_noun('Offers'), offer_schemas.SEARCH),
    'show_offer': Operation(_one('offer', 'Offer')),
    'delete_offer': Operation(),
}


def document(
    routes: Iterable[Any], version: Version
) -> Document:
    """Build the document of one version of the API.

    :param routes: the routes of `routes.ROUTES` to describe
    """
    paths: dict[str, Document] = {}
    for route in routes:
        if version < route.since:
            continue
        described = _describe(route, version)
        paths.setdefault(route.path, {})[route.method.lower()] = described
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'Reservations',
            'description': inspect.cleandoc(microversion.__doc__),
            'version': str(version),
            'license': {'name': 'Apache-2.0', 'identifier': 'Apache-2.0'},
        },
        'paths': paths,
        'components': {
            'schemas': {
                name: schema(version)
                for name, schema in NOUNS.items()
                if version > microversion.V1_0 or name in _BLAZARS_NOUNS
            },
            'parameters': {'Version': _version_header(version)},
            'responses': {
                str(status): _refusal(status) for status in REFUSALS
            },
            'securitySchemes': {
                'token': {
                    'type': 'apiKey',
                    'in': 'header',
                    'name': 'X-Auth-Token',
                    'description': 'Token of Keystone',
                }
            },
        },
    }


def _describe(
    route: Any, version: Version
) -> Document:
    operation = OPERATIONS[route.handler.__name__]
    summary, _, more = (inspect.getdoc(route.handler) or '').partition('\n')
    variables = re.findall(r'{(\w+)}', route.path)
    described: Document = {
        'summary': summary,
        'description': more.strip(),
        'parameters': [
            {'$ref': '#/components/parameters/Version'},
            *_parameters(
                'path', {v: VARIABLES.get(v, _TEXT) for v in variables}
            ),
            *_parameters('query', properties(operation.query, version)),
            *_parameters('header', properties(operation.headers, version)),
        ],
        'responses': {
            str(route.status): _success(operation),
            **({'304': _NOT_MODIFIED} if operation.tagged else {}),
            **{
                str(status): {'$ref': f'#/components/responses/{status}'}
                for status in _refusals(route, operation, variables)
            },
        },
        'security': [{'token': []}] if route.rule else [],
    }
    if route.rule:
        described['x-policy'] = route.rule
    if operation.body is not None:
        described['requestBody'] = {
            'required': True,
            'content': {JSON: {'schema': operation.body[version].schema}},
        }
    return described


def _parameters(
    place: str, schemas: Mapping[str, Schema]
) -> list[Document]:
    return [
        {
            'name': name,
            'in': place,
            'required': place == 'path',
            'description': schema.get('description', ''),
            'schema': {k: v for k, v in schema.items() if k != 'description'},
        }
        for name, schema in schemas.items()
    ]


def _version_header(version: Version) -> Document:
    return {
        'name': microversion.HEADER,
        'in': 'header',
        'required': version != microversion.KNOWN[0],
        'description': (
            f'Version of the API, {microversion.VERSIONS[0]} if absent. The '
            'same header of the response has the version that was used.'
        ),
        'schema': {'const': f'{microversion.SERVICE_TYPE} {version}'},
    }


def _success(operation: Operation) -> Document:
    if operation.answer is None:
        return {'description': 'Success'}
    return {
        'description': 'Success',
        'content': {JSON: {'schema': operation.answer}},
        **({'headers': _TAG} if operation.tagged else {}),
    }


def _refusals(
    route: Any, operation: Operation, variables: Iterable[str]
) -> list[int]:
    statuses = set(ANY)
    if route.rule:
        statuses |= WITH_TOKEN
    if route.method != 'GET' or operation.changing:
        statuses |= CHANGING
    if operation.body is not None:
        statuses |= WITH_BODY
    if variables:
        statuses |= WITH_VARIABLE
    return sorted(statuses)


def _refusal(status: int) -> Document:
    return {
        'description': http.HTTPStatus(status).phrase,
        'content': {JSON: {'schema': _noun('Error')}},
    }
