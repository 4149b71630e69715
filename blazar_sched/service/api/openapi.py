# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document, built from the route table and the schemas.

Each version of the API has its own document. A request body is described by
the same schema that validates the request body.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import http
import inspect
import itertools
from typing import Any

from microversion_parse import Version

from blazar_sched.domain import exception
from blazar_sched.service import parts
from blazar_sched.service.api import errors
from blazar_sched.service.api import microversion
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import INTEGER
from blazar_sched.service.api.field import Object
from blazar_sched.service.api.field import properties
from blazar_sched.service.api.field import Type
from blazar_sched.service.api.refusal import IN_THE_WAY
from blazar_sched.service.api.refusal import OFFER
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.validation import Schema

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
        for c in (
            *vars(exception).values(), *itertools.chain.from_iterable(
                parts.each('exception', 'EXCEPTIONS')
            ),
        )
        if isinstance(c, type)
        and issubclass(c, exception.BlazarSchedError)
        and c is not exception.BlazarSchedError
    }
    return [
        {'name': name, 'description': described, 'status': status}
        for name, (status, described) in sorted((of_the_api | named).items())
    ]


ERROR = Object(
    Field('error_code', 'HTTP status', 400, INTEGER),
    Field(
        'error_message',
        'Message for people; it begins with the name of the field that is '
        'wrong, if any',
        'name: Missing parameter name',
    ),
    Field(
        'error_name', 'Name of the error, for programs', errors.NAMES[400],
        # The driver of a third party may have others.
        Type({'type': 'string', 'x-names': _error_names()}),
    ),
    Field(
        'offer',
        'Amount and window for which there is room, if a lease is refused for '
        'lack of room; nothing is reserved for the offer',
        type=OFFER, since=microversion.V1_1, required=False,
    ),
    *IN_THE_WAY, name='Error', meaning='The reason why a request is refused',
)
_TEXT = {'type': 'string'}
# The error statuses of any request; then those of a request that needs a
# token, of a request that changes a resource or shows what a change would do,
# of a request with a body, and of a request with a path variable.
ANY = {400, 406, 500, 503}
WITH_TOKEN = {401, 403}
CHANGING = {409}
WITH_BODY = {404, 413, 415}
WITH_VARIABLE = {404}
REFUSALS = sorted(ANY | WITH_TOKEN | CHANGING | WITH_BODY | WITH_VARIABLE)


_SERVER: Document = {
    'url': '{endpoint}',
    'variables': {'endpoint': {
        'default': 'http://127.0.0.1:1234',
        'description': (
            'Endpoint of the service type reservation in the catalog of '
            'Keystone, without /v1'
        ),
    }},
}
_TAG: Document = {
    'ETag': {
        'description': 'Tag of the response, for If-None-Match',
        'schema': _TEXT,
    }
}
_NOT_MODIFIED: Document = {
    'description': 'The caller has the response', 'headers': _TAG
}


def document(routes: Iterable[Route], version: Version) -> Document:
    """Build the document of one version of the API.

    :param routes: the routes of `routes.ROUTES` to describe
    """
    paths: dict[str, Document] = {}
    operations: set[str] = set()
    shown = {ERROR.name: ERROR}
    for route in routes:
        if version < route.since:
            continue
        described = _describe(route, version)
        # The list of versions is at two paths, and an id is used once.
        if described['operationId'] in operations:
            del described['operationId']
        else:
            operations.add(described['operationId'])
        paths.setdefault(route.path, {})[route.method.lower()] = described
        if route.answer is not None and route.answer.shown is not None:
            shown[route.answer.shown.name] = route.answer.shown
    return {
        'openapi': '3.1.0',
        'info': {
            'title': 'Reservations',
            'description': inspect.cleandoc(microversion.__doc__),
            'version': str(version),
            'license': {'name': 'Apache-2.0', 'identifier': 'Apache-2.0'},
        },
        'servers': [_SERVER],
        'tags': [
            {'name': tag} for tag in dict.fromkeys(map(_tag, routes)) if tag
        ],
        'paths': paths,
        'components': {
            'schemas': {
                name: each.noun(version)
                for name, each in sorted(shown.items())
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


def _describe(route: Route, version: Version) -> Document:
    more = (inspect.getdoc(route.handler) or '').removeprefix(route.summary)
    variables = () if route.variable is None else (route.variable,)
    described: Document = {
        'operationId': route.handler.__name__,
        'tags': [tag] if (tag := _tag(route)) else [],
        'summary': route.summary,
        'description': more.strip(),
        'parameters': [
            {'$ref': '#/components/parameters/Version'},
            *_parameters('path', properties(variables, version)),
            *_parameters('query', properties(route.query, version)),
            *_parameters('header', properties(route.headers, version)),
        ],
        'responses': {
            str(route.status): _success(route),
            **({'304': _NOT_MODIFIED} if route.tagged else {}),
            **{
                str(status): {'$ref': f'#/components/responses/{status}'}
                for status in _refusals(route)
            },
        },
        'security': [{'token': []}] if route.rule else [],
    }
    if route.rule:
        described['x-policy'] = route.rule.name
    if route.body is not None:
        described['requestBody'] = {
            'required': True,
            'content': {JSON: {'schema': route.body[version].schema}},
        }
    return described


def _tag(route: Route) -> str:
    """Return the collection of a route; empty for the versions."""
    return (*route.path.split('/'), '', '')[2]


def _parameters(place: str, schemas: Mapping[str, Schema]) -> list[Document]:
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
        'schema': {
            'type': 'string',
            'enum': [f'{microversion.SERVICE_TYPE} {version}'],
        },
    }


def _success(route: Route) -> Document:
    if route.answer is None:
        return {'description': 'Success'}
    return {
        'description': 'Success',
        'content': {JSON: {'schema': route.answer.schema()}},
        **({'headers': _TAG} if route.tagged else {}),
    }


def _refusals(route: Route) -> list[int]:
    statuses = set(ANY)
    if route.rule:
        statuses |= WITH_TOKEN
    if route.method != 'GET' or route.changing:
        statuses |= CHANGING
    if route.body is not None:
        statuses |= WITH_BODY
    if route.variable is not None:
        statuses |= WITH_VARIABLE
    return sorted(statuses)


def _refusal(status: int) -> Document:
    return {
        'description': http.HTTPStatus(status).phrase,
        'content': {JSON: {'schema': Answer(ERROR).schema()}},
    }
