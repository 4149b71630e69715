# SPDX-License-Identifier: Apache-2.0
"""The table of all routes of the API.

The policy is checked before the handler of a route runs, so that no handler
can omit the check.
"""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import functools
import itertools
import re
import types

import falcon
from microversion_parse import Version
from oslo_context import context

from blazar_sched.domain import exception
from blazar_sched.service import parts
from blazar_sched.service.api import allocation
from blazar_sched.service.api import auth
from blazar_sched.service.api import capacity
from blazar_sched.service.api import errors
from blazar_sched.service.api import etag
from blazar_sched.service.api import flavor
from blazar_sched.service.api import host
from blazar_sched.service.api import lease
from blazar_sched.service.api import limit
from blazar_sched.service.api import microversion
from blazar_sched.service.api import openapi
from blazar_sched.service.api import policy
from blazar_sched.service.api import property
from blazar_sched.service.api import validation
from blazar_sched.service.api import version
from blazar_sched.service.api import waiting
from blazar_sched.service.api.caller import Caller
from blazar_sched.service.api.caller import Manager
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.route import Answer
from blazar_sched.service.api.route import Route
from blazar_sched.service.api.rule import Rule
from blazar_sched.service.api.schemas import lease as schemas
from blazar_sched.service.bus import calls

# The id of a lease and most other objects, or the id of a host.
_ID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{1,19}')

# The number of characters kept of the name of an unknown parameter.
_MAX_SHOWN = 64

# The path of the OpenAPI document, whose own name ends in .json.
DOCUMENT = '/openapi'


# Each path is also valid with .json at its end, see app.RequestChecks.
_CORE = (
    *lease.ROUTES,
    *host.ROUTES,
    *allocation.ROUTES,
    *property.ROUTES,
    *capacity.ROUTES,
    *limit.ROUTES,
    *flavor.ROUTES,
)


def of(running: Sequence[str] | None = None) -> tuple[Route, ...]:
    """Return the routes of the core and of the parts that run.

    A route of a part takes the place of the route of the core with the same
    method and path.

    :param running: the names of the parts, by default all that are installed
    """
    def show_document(
        req: falcon.Request, caller: Caller | None
    ) -> openapi.Document:
        """Show the OpenAPI document of the requested version."""
        return openapi.document(found, req.env[microversion.VERSION])

    by_request = {(each.method, each.path): each for each in (
        *version.ROUTES,
        Route('GET', DOCUMENT, show_document, None, Answer(None)),
        *_CORE,
        *itertools.chain.from_iterable(parts.each('api', 'ROUTES', running)),
    )}
    found = tuple(by_request.values())
    return found


# The routes of a service that runs every part.
ROUTES = of()


def add_to(
    app: errors.App, routes: Iterable[Route], manager: Manager,
    enforcer: policy.Enforcer, waits: waiting.Waiting,
) -> None:
    """Add routes to `app`, with handlers that call `manager`."""
    responders: dict[str, dict[str, Callable[..., None]]] = defaultdict(dict)
    for route in routes:
        respond = _responder(route, manager, enforcer, waits)
        responders[route.path][f'on_{route.method.lower()}'] = respond
        if route.method == 'GET':
            # HEAD has the response of GET without the body.
            responders[route.path]['on_head'] = respond
    for path, by_name in responders.items():
        app.add_route(path, types.SimpleNamespace(**by_name))


def _responder(
    route: Route, manager: Manager, enforcer: policy.Enforcer,
    waits: waiting.Waiting,
) -> Callable[..., None]:
    def respond(
        req: falcon.Request, resp: falcon.Response, **variables: str
    ) -> None:
        version = req.env[microversion.VERSION]
        if version < route.since:
            raise falcon.HTTPNotFound(
                description=microversion.needed(
                    f'{route.method} {route.path}', route.since
                )
            )
        if '' in variables.values():
            raise falcon.HTTPNotFound
        caller = None
        if route.rule is not None:
            ctxt = req.env[auth.CONTEXT]
            ctxt.resource_uuid = _logged_id(variables)
            _authorize(req, ctxt, route.rule, enforcer)
            _check_query(route, req)
            caller = Caller(
                ctxt,
                calls.sent_by(
                    lambda method, **arguments: manager.call(
                        ctxt.to_dict(), method, **arguments
                    )
                ),
                enforcer.is_admin(ctxt), version,
                functools.partial(enforcer.authorize, ctxt), waits,
                req.env.get(auth.HAS_PROJECT),
            )
        found = route.handler(req, caller, **variables)
        resp.status = route.status
        if caller is not None and route.status == 201:
            # The log lines about the request have the new id.
            caller.context.resource_uuid = found['id']
        _answer(route, found, version, req, resp)

    return respond


def _answer(
    route: Route, found: object, version: Version, req: falcon.Request,
    resp: falcon.Response,
) -> None:
    """Write into the response what a handler has returned."""
    if isinstance(found, etag.Tagged):
        found.set_headers(resp)
        if found.body is None or etag.any_known(req):
            resp.status = falcon.HTTP_304
            return
        found = found.body
    if isinstance(found, waiting.Early):
        resp.set_header('Retry-After', str(found.retry_after))
        found = found.body
    if route.answer is not None:
        resp.media = route.answer.show(found, version)
        if route.tagged and resp.get_header('ETag') is None:
            etag.tag_body(req, resp)


def _authorize(
    req: falcon.Request, ctxt: context.RequestContext, rule: Rule,
    enforcer: policy.Enforcer,
) -> None:
    """Check the policy, unless the operator permits the request to anyone.

    :raises NotAuthorized: if the policy does not allow the request
    """
    if auth.PUBLIC not in req.env:
        enforcer.authorize(ctxt, rule.name)


def _logged_id(variables: dict[str, str]) -> str | None:
    """Return the id in a path, for the log lines about the request.

    The log lines of the manager have the id, too. A text that cannot be an id
    is left out, because it could be any text.
    """
    id_ = next(iter(variables.values()), '')
    return id_ if _ID.fullmatch(id_) else None


def _check_query(route: Route, req: falcon.Request) -> None:
    """Refuse a parameter that is unknown, of a newer version, or repeated.

    A request with a misspelt dry_run would be executed otherwise, and a list
    with a misspelt filter would be the list of everything. A request of 1.0
    that only reads may have any parameter, as in Blazar.

    :raises InvalidInput: naming the parameter
    """
    version = req.env[microversion.VERSION]
    if route.method == 'GET' and version < microversion.V1_1:
        return
    known = _parameters(route)
    for name, value in req.params.items():
        shown = name[:_MAX_SHOWN]
        if name not in known:
            raise exception.InvalidInput(
                f'{shown} {_why_refused(name, route)}', field=shown
            )
        if version < known[name].since:
            raise exception.InvalidInput(
                microversion.needed(name, known[name].since), field=name
            )
        schema = known[name].type.schema(version)
        if isinstance(value, list) and schema.get('type') != 'array':
            raise exception.InvalidInput(
                f'{name} must be given once', field=name
            )


def _why_refused(name: str, route: Route) -> str:
    if name != schemas.DRY_RUN:
        known = validation.did_you_mean(name, _parameters(route))
        return f'is no query parameter of {route.method} {route.path}{known}'
    supporting = ', '.join(
        f'{each.method} {each.path}'
        for each in ROUTES
        if schemas.DRY_RUN in _parameters(each)
    )
    return f'is only supported by {supporting}'


def _parameters(route: Route) -> dict[str, Field]:
    """Return the query parameters of a route, by name."""
    return {field.name: field for field in route.query}
